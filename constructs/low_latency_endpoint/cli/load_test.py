"""``low-latency load-test``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .load_inputs import (
    check_installed,
    check_writable,
    content_type_of,
    payloads_of,
    region_of,
    seconds_of,
    stated_in,
)
from .options import (
    Accept,
    AllowedErrors,
    Constant,
    ContentType,
    Expect,
    Html,
    Json,
    Payload,
    PlainHttp,
    Profile,
    Region,
    Seed,
    Stream,
    Timeout,
    Zonal,
)

if TYPE_CHECKING:
    from ..load_test.endpoint_settings import StatedEndpoint
    from ..load_test.fleet.running import FleetRun
    from ..load_test.judging import LatencyGoal
    from ..load_test.payloads import Payloads
    from ..load_test.run_plans import RunPlan
    from ..load_test.steps import Target

_CONFIRM_SECONDS, _STEP_SECONDS = 300.0, 60.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("load-test")(load_test)


def load_test(
    endpoint: Annotated[str, typer.Argument(show_default=False, help="Name of the endpoint.")],
    rate: Annotated[list[str] | None, typer.Option(
        metavar="TPS", help="Open loop: requests per second, whoever "
        "waits; 10..200 for a ramp. Repeat it for further steps.")] = None,
    users: Annotated[list[int] | None, typer.Option(
        metavar="N", help="Closed loop: callers that each wait for their "
        "answer. Repeat it for further steps.")] = None,
    replay: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Open loop: a recorded traffic shape.")] = None,
    find_limit: Annotated[bool, typer.Option(
        "--find-limit", help="Find the highest rate that holds the "
        "target: rising, then bisecting, then confirming.")] = False,
    confirm: Annotated[bool, typer.Option(
        "--confirm", help="Send what production will: --rate, or the "
        "settings' peak_tps.")] = False,
    duration: Annotated[str | None, typer.Option(
        metavar="TIME", help="Length of each step. Default: 60s; 5m with "
        "--confirm.")] = None,
    alone: Annotated[str | None, typer.Option(
        metavar="TIME", help="How long one caller at a time is measured "
        "first: the service time; 0s for not at all. Default: a sixth of a step, at most 10s.",
    )] = None,
    constant: Constant = False,
    up_to: Annotated[float | None, typer.Option(
        metavar="TPS", help="With --find-limit: where rising ends.")] = None,
    seed: Seed = 1,
    settings: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Settings file: latency target, peak, "
        "warm-up payload.")] = None,
    target: Annotated[list[str] | None, typer.Option(
        metavar="STAT=TIME", help="How long callers may wait, such as "
        "p99=200ms; with --stream for the first byte, too: ttfb-p99=80ms. Default: the settings'.",
    )] = None,
    allowed_errors: AllowedErrors = 0.001,
    precision: Annotated[float, typer.Option(
        help="With --find-limit: how close to look, as a share.")] = 0.05,
    instances: Annotated[int | None, typer.Option(
        min=1, help="Instances that serve, or copies of the inference component. Default: what "
        "SageMaker says; --find-limit needs it where that is not known.")] = None,
    payload: Payload = None,
    content_type: ContentType = None,
    accept: Accept = None,
    expect: Expect = None,
    stream: Stream = False,
    variant: Annotated[str | None, typer.Option(
        help="Send to this production variant only.")] = None,
    target_model: Annotated[str | None, typer.Option(
        help="Of a multi-model endpoint.")] = None,
    inference_component: Annotated[str | None, typer.Option(
        help="Of an endpoint that hosts several.")] = None,
    timeout: Timeout = "60s",
    zonal: Zonal = None,
    allow_plain_http: PlainHttp = False,
    output: Annotated[Path | None, typer.Option(
        "--output", "-o", metavar="FILE", help="Write the result as JSON: "
        "plan and simulate read it with --from-load-test.")] = None,
    html: Html = None,
    csv: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a line per step.")] = None,
    json: Json = False,
    metrics_wait: Annotated[str, typer.Option(
        metavar="TIME", help="How long to wait for CloudWatch, which is a "
        "minute or two late; 0s to leave it out. With it, steps of a minute or more settle until a "
        "full minute begins.")] = "3m",
    processes: Annotated[int, typer.Option(
        help="Generator processes on this machine.")] = 1,
    fleet: Annotated[int | None, typer.Option(
        metavar="N", help="Send from N tasks of the endpoint's load-test "
        "fleet, in its client zones, instead of from here; see docs/load-test-fleet.md.")] = None,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Load an endpoint, and say what it holds and what limits it. Costs what the requests cost.

    Latency counts from the moment at which a request was due, so that a stall shows. A percentile
    is judged with its interval; a run that the generator limited is called invalid.

    Exit codes: 0 held, a limit found, or all up to --up-to held; 1 not; 2 usage, or nothing could
    be sent.

    \b
    Examples:
      low-latency load-test sentiment --rate 50 --rate 100 --payload body.json --html report.html
      low-latency load-test sentiment --find-limit --settings endpoint.yaml -o result.json
      low-latency plan endpoint.yaml --from-load-test result.json
      low-latency load-test sentiment --confirm --settings endpoint.yaml
      low-latency load-test sentiment --fleet 4 --find-limit --settings endpoint.yaml
    """
    if fleet is not None and processes != 1:
        raise typer.BadParameter("--processes are of this machine; with --fleet give more tasks")
    check_installed(html)
    files = [each for each in (output, html, csv) if each is not None]
    check_writable(files)
    from ..load_test.load_testing import load_test as tested
    from ..load_test.result_file import write_text
    from ..load_test.steps import Target
    from ..load_test.steps_table import steps_csv

    stated = stated_in(settings, endpoint)
    goal = _goal(target, allowed_errors, stated)
    plan = _plan(rate or [], users or [], replay, find_limit, confirm, goal, stated, {
        "duration": duration, "alone": alone, "poisson": not constant, "seed": seed,
        "up_to": up_to, "precision": precision})
    payloads = payloads_of(payload, stated)
    to = Target(
        (stated.endpoint_name if stated and stated.endpoint_name else endpoint),
        region_of(profile, region, stated), tuple(zonal or ()),
        content_type=content_type_of(content_type, payload, stated),
        accept=accept, target_variant=variant,
        target_model=target_model or (stated.target_model if stated else None),
        inference_component=inference_component, streaming=stream,
        timeout_seconds=seconds_of(timeout, "--timeout"), expected=expect,
        allow_plain_http=allow_plain_http)
    from .load_test_view import Live, summary

    waiting = seconds_of(metrics_wait, "--metrics-wait")
    plan = replace(plan, whole_minutes=waiting > 0)
    with Live(to, plan, quiet=json) as live:
        run = None if fleet is None else _fleet_run(to, payloads, plan, fleet, profile, live.note)
        report = tested(to, payloads, plan, processes=processes, profile=profile,
                        generator=run.open if run is not None else None,
                        metrics_wait=waiting or None, emit=live.event, say=live.say,
                        warn=live.note, peak_tps=stated.peak_tps if stated else None,
                        safety_factor=stated.safety_factor if stated else None,
                        instances=instances,
                        planned_instances=stated.planned_instances if stated else None)
    if output is not None:
        write_text(output, report.to_json())
    if csv is not None:
        write_text(csv, steps_csv(report))
    if html is not None:
        from ..load_test.report import write_page

        write_page(report, html)
    for file in files:
        typer.echo(f"wrote {file}", err=True)
    if run is not None:
        typer.echo(f"wrote {run.keep(report.to_dict())}", err=True)
    if json:
        typer.echo(report.to_json(), nl=False)
    else:
        summary(report, output)
    if report.invalid or not report.run.held:
        raise typer.Exit(1)


def _fleet_run(target: Target, payloads: Payloads, plan: RunPlan, workers: int,
               profile: str | None, tell: Callable[[str], None]) -> FleetRun:
    from ..load_test.fleet.running import FleetRun
    from ..operations.sessions import open_clients

    client, _ = open_clients(profile, target.region)
    return FleetRun(client, target, payloads, workers=workers, tell=tell,
                    expected_seconds=plan.seconds)


def _plan(rates: list[str], users: list[int], replay: Path | None, find_limit: bool,
          confirm: bool, goal: LatencyGoal, stated: StatedEndpoint | None,
          options: dict[str, Any]) -> RunPlan:
    from ..load_test import run_plans
    from ..load_test.arrivals import ReplayedArrivals
    from ..load_test.judging import LATENCY_NEEDED
    from ..load_test.limit_search import SearchPlan
    from ..load_test.run_plans import LOAD_FORM

    given = [name for name, value in (
        ("--rate", bool(rates) and not confirm), ("--users", users), ("--replay", replay),
        ("--find-limit", find_limit), ("--confirm", confirm)) if value]
    if len(given) != 1:
        raise LOAD_FORM.error(got=" and ".join(given) or "none",
                              allowed="one of --rate, --users, --replay, --find-limit, --confirm")
    seconds = _CONFIRM_SECONDS if confirm else _STEP_SECONDS
    if options["duration"] is not None:
        seconds = seconds_of(options["duration"], "--duration")
    alone = None if options["alone"] is None else seconds_of(options["alone"], "--alone")
    common: dict[str, Any] = {"seconds": seconds, "goal": goal, "alone_seconds": alone,
                              "seed": options["seed"]}
    if users:
        return run_plans.users_plan(users, **common)
    if find_limit:
        if not goal.targets:
            raise LATENCY_NEEDED.error(got="none", allowed="--target or --settings")
        search = {"highest_rate": options["up_to"]} if options["up_to"] else {}
        return run_plans.limit_plan(SearchPlan(
            goal, seconds, min(10.0, seconds / 2) if alone is None else alone,
            precision=options["precision"], poisson=options["poisson"], seed=options["seed"],
            **search))
    common["poisson"] = options["poisson"]
    if replay is not None:
        recorded = ReplayedArrivals.of_file(
            replay, peak_rate=stated.peak_tps if stated else None)
        if options["duration"] is None:
            common["seconds"] = recorded.seconds
        return run_plans.rate_plan([recorded], **common)
    if not confirm:
        return run_plans.rate_plan([_rate(each) for each in rates], **common)
    if not goal.targets:
        raise LATENCY_NEEDED.error(got="none", allowed="--target or --settings")
    peak = [_rate(each) for each in rates] or [stated.peak_tps if stated else None]
    if len(peak) != 1 or not isinstance(peak[0], float | int):
        raise LOAD_FORM.error(got="--confirm without the load of production",
                              allowed="one --rate, or --settings with throughput.peak_tps",
                              mend="Give --rate the requests per second that production sends.")
    return run_plans.confirm_plan(peak[0], **common)


def _rate(text: str) -> Any:
    """Requests per second, or a ramp."""
    from ..load_test.arrivals import RampArrivals

    try:
        values = [float(part) for part in text.split("..")]
        if len(values) > 2:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(
            f"--rate {text}: give requests per second such as 200, or a ramp such as 10..200"
        ) from None
    return values[0] if len(values) == 1 else RampArrivals(values[0], values[1])



def _goal(target: list[str] | None, allowed_errors: float,
          stated: StatedEndpoint | None) -> LatencyGoal:
    from ..load_test.judging import FIRST_BYTE, LatencyGoal
    from ..operations.diagnosis.breaches import TARGET_FORM
    from ..operations.diagnosis.options import parse_latencies

    targets: dict[str, float] = {}
    for prefix in ("", FIRST_BYTE):
        given = parse_latencies([text.removeprefix(prefix) for text in target or []
                                 if text.startswith(FIRST_BYTE) == bool(prefix)], TARGET_FORM)
        targets |= {prefix + name: value / 1000 for name, value in given.items()}
    if not targets and stated is not None:
        targets = stated.targets
    return LatencyGoal(targets, allowed_errors)
