"""``low-latency load-test``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors.shell_words import shell_word
from ..report.numbers import plain_number
from .load_inputs import ResultFiles, Sending, seconds_of
from .options import (
    ENDPOINT_YAML,
    EndpointName,
    Html,
    Markdown,
    Prices,
    flag,
    grouped,
    naming,
    option,
)
from .output import print_document, say

if TYPE_CHECKING:
    from ..facts.prices import Price
    from ..load_test.engine.payloads import Payloads
    from ..load_test.engine.target import Target
    from ..load_test.fleet.fleet_generator import FleetGenerator
    from ..load_test.search.judging import LatencyGoal
    from ..load_test.search.run_plans import RunPlan
    from ..load_test.search.settings_file import StatedEndpoint

_CONFIRM_SECONDS, _STEP_SECONDS = 300.0, 60.0


@dataclass
class Load:
    """What is sent, step by step."""

    tps: list[str] | None = option(
        "Open loop: send at this rate, regardless of outstanding requests; 10..200 for a ramp. "
        "Repeat for more steps.",
        metavar="TPS",
    )
    users: list[int] | None = option(
        "Closed loop: this many callers, each waiting for its response. Repeat for more steps.",
        metavar="N",
    )
    replay: Path | None = option("Open loop: replay recorded traffic.", metavar="FILE")
    find_limit: bool = flag(
        "Find the highest rate that meets the target: raise it, bisect, then confirm."
    )
    confirm: bool = flag(
        "Send the load of production: --tps, or the highest peak of the settings file."
    )
    duration: str | None = option(
        "Length of each step. Default: 60s, or 5m with --confirm.", metavar="TIME"
    )
    alone: str | None = option(
        "How long to measure the service time first, with one caller; 0s skips it. Default: a sixth "
        "of a step, at most 10s.",
        metavar="TIME",
    )
    up_to: float | None = option("With --find-limit: highest rate to try.", metavar="TPS")
    precision: float = option(
        "With --find-limit: precision of the limit, as a share of it.", 0.05, metavar="SHARE"
    )
    peak_tps: float | None = option(
        "With --find-limit: requests per second of production; the result says how many instances "
        "hold them. Default: from the settings file.",
        metavar="TPS",
    )
    fleet: int | None = option(
        "Send from N tasks of the endpoint's load-test fleet in its client zones instead of from "
        "this machine; see docs/how-to/load-test-fleet.md.",
        metavar="N",
    )

    def check_peak(self) -> None:
        """Refuse a peak that no limit divides, and one out of range."""
        from ..facts.limits import PEAK_TPS

        if self.peak_tps is None:
            return
        if not self.find_limit:
            raise typer.BadParameter("--peak-tps goes with --find-limit")
        PEAK_TPS.check(self.peak_tps, "--peak-tps")


@dataclass
class Measuring:
    """What is judged, and of which part of the endpoint."""

    target: list[str] | None = option(
        "Latency target, such as p99=200ms. For streams also ttfb-p99=80ms (first byte). For "
        "language models also ttft-p95=500ms (first token), itl-p95=50ms (between tokens) and "
        "tpot-p95=50ms (per output token). Default: from the settings file.",
        metavar="STAT=TIME",
    )
    instances: int | None = option(
        "Number of instances in service, or of copies of the inference component. Default: read "
        "from SageMaker. --find-limit needs it if SageMaker does not tell.",
        min=1,
        metavar="N",
    )
    variant: str | None = option(
        "Production variant to send to. Default: all, by their weights.", metavar="NAME"
    )
    target_model: str | None = option("Model to invoke on a multi-model endpoint.", metavar="NAME")
    inference_component: str | None = option("Inference component to invoke.", metavar="NAME")
    metrics_wait: str = option(
        "How long to wait for CloudWatch, which is a minute or two late; 0s skips it. If it waits, "
        "a step of a minute or more settles until a full minute begins and counts from there; of a "
        "search only the step that confirms.",
        "3m",
        metavar="TIME",
    )


@grouped
def load_test(
    load: Load,
    measuring: Measuring,
    sending: Sending,
    results: ResultFiles,
    endpoint: EndpointName = None,
    price: Prices = None,
    html: Html = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a CSV file with a line per step.")
    ] = None,
    markdown: Markdown = False,
) -> None:
    """Load an endpoint, and find out how much it can take and what limits it. Requests cost money.

    Latency counts from the moment a request was due, so that a stall shows. Each percentile is
    judged with its confidence interval. A run that the generator limited is reported as invalid.

    \b
    Exit codes:
      0  target met, limit found, or target met up to --up-to
      1  target missed or not decided, or the result is invalid
      2  usage error, or nothing could be sent

    \b
    Examples:
      low-latency load-test sentiment --tps 50 --tps 100 --html report.html
      low-latency load-test --find-limit -o result.json
      low-latency plan --from-load-test result.json
      low-latency load-test --confirm
      low-latency load-test chat --find-limit --tokens input=512,output=128 \\
        --target ttft-p95=500ms --target itl-p95=50ms
      low-latency load-test --fleet 4 --find-limit
    """
    if load.fleet is not None and sending.processes != 1:
        raise typer.BadParameter("--processes is for this machine; with --fleet give more tasks")
    load.check_peak()
    results.check(html, csv)
    endpoint = sending.endpoint(endpoint)
    from ..load_test.search.load_testing import load_test as tested
    from ..load_test.search.result_file import write_text
    from ..load_test.search.steps_table import steps_csv

    stated_endpoint = sending.stated(endpoint)
    plan = _plan(
        load,
        sending,
        _goal(measuring.target, sending.allowed_errors, stated_endpoint),
        stated_endpoint,
    )
    payloads = sending.payloads(stated_endpoint)
    to = sending.target(
        endpoint,
        stated_endpoint,
        target_variant=measuring.variant,
        target_model=measuring.target_model,
        inference_component=measuring.inference_component,
    )
    from ..facts.prices import price_of
    from ..load_test.report import document
    from ..plan.request_size import request_size, size_difference
    from .load_test_view import LoadTestDisplay

    prices = _prices(price, stated_endpoint, to.region)
    waiting = seconds_of(measuring.metrics_wait, "--metrics-wait")
    plan = replace(plan, whole_minutes=waiting > 0)
    stated_bytes = stated_endpoint.payload_bytes if stated_endpoint else None
    size = request_size(stated_bytes, None)
    other_size = size_difference(size, payloads.largest_bytes, "load test")
    with LoadTestDisplay(to, plan, quiet=results.json or markdown) as live:
        if other_size:
            live.note(other_size)
        run = (
            None
            if load.fleet is None
            else _fleet_run(to, payloads, load.fleet, sending.profile, live.note)
        )
        report = tested(
            to,
            payloads,
            plan,
            processes=sending.processes,
            profile=sending.profile,
            generator=run.__enter__ if run is not None else None,
            metrics_wait=waiting or None,
            emit=live.event,
            say=live.say,
            warn=live.note,
            instances=measuring.instances,
            planned_instances=stated_endpoint.planned_instances
            if stated_endpoint is not None
            else None,
        )
    report = replace(report, price=price_of(report.fleet.instance_type, to.region, prices))
    if stated_endpoint is not None:
        report = replace(
            report, peak_tps=stated_endpoint.peak_tps, safety_factor=stated_endpoint.safety_factor
        )
    if load.peak_tps is not None:
        report = replace(report, peak_tps=load.peak_tps)
    if results.output is not None:
        write_text(results.output, report.to_json())
    command = _plan_command(sending.settings, stated_endpoint, results.output, load.peak_tps)
    if csv is not None:
        write_text(csv, steps_csv(report))
    if html is not None:
        from ..load_test.report import write_page

        write_page(report, html, command)
    results.said(html, csv)
    if results.json:
        say(report.to_json(), nl=False)
    else:
        print_document(document(report, command), markdown=markdown)
    if report.invalid or not report.run.held:
        raise typer.Exit(1)


def _plan_command(
    settings: Path | None,
    stated: StatedEndpoint | None,
    written: Path | None,
    peak_tps: float | None,
) -> str:
    """The command that puts the limit into the settings file; empty without one."""
    if settings is None and not ENDPOINT_YAML.exists():
        return ""
    used = naming(settings or ENDPOINT_YAML)
    file = "result.json" if written is None else shell_word(written)
    has_peak = stated is not None and stated.peak_tps is not None
    peak = f" --peak-tps {plain_number(peak_tps)}" if peak_tps is not None else ""
    notes = [
        *([] if written else ["write it with -o"]),
        *([] if has_peak or peak else ["a file without throughput needs --peak-tps too"]),
    ]
    command = f"low-latency plan{used} --from-load-test {file}{peak}"
    return f"{command} ({'; '.join(notes)})" if notes else command


def _fleet_run(
    target: Target,
    payloads: Payloads,
    workers: int,
    profile: str | None,
    tell: Callable[[str], None],
) -> FleetGenerator:
    from ..account.sessions import open_clients
    from ..load_test.fleet.fleet_generator import FleetGenerator

    client, _ = open_clients(profile, target.region)
    return FleetGenerator.of_endpoint(client, target, payloads, workers=workers, tell=tell)


def _prices(
    given: list[str] | None, stated: StatedEndpoint | None, region: str
) -> dict[str, Price]:
    """As the settings state them, and over them the options; before anything is sent."""
    from ..facts.prices import parse_price, price_of, your_price

    prices = dict(stated.prices) if stated is not None else {}
    prices |= {item: your_price(usd) for item, usd in map(parse_price, given or ())}
    for item in prices:
        price_of(item, region, prices)
    return prices


def _plan(
    load: Load, sending: Sending, goal: LatencyGoal, stated: StatedEndpoint | None
) -> RunPlan:
    from ..load_test.engine.arrivals import ReplayedArrivals
    from ..load_test.search import run_plans
    from ..load_test.search.judging import LATENCY_NEEDED
    from ..load_test.search.run_plans import LOAD_FORM, SearchPlan
    from ..plan.recorded_traffic import read_recording

    given = [
        name
        for name, value in (
            ("--tps", bool(load.tps) and not load.confirm),
            ("--users", load.users),
            ("--replay", load.replay),
            ("--find-limit", load.find_limit),
            ("--confirm", load.confirm),
        )
        if value
    ]
    if len(given) != 1:
        raise LOAD_FORM.error(
            got=" and ".join(given) or "none",
            allowed="one of --tps, --users, --replay, --find-limit, --confirm",
        )
    seconds = _CONFIRM_SECONDS if load.confirm else _STEP_SECONDS
    if load.duration is not None:
        seconds = seconds_of(load.duration, "--duration")
    alone = None if load.alone is None else seconds_of(load.alone, "--alone")
    common: dict[str, Any] = {
        "seconds": seconds,
        "goal": goal,
        "alone_seconds": alone,
        "seed": sending.seed,
    }
    if load.users:
        return run_plans.users_plan(load.users, **common)
    if load.find_limit:
        if not goal.targets:
            raise LATENCY_NEEDED.error(got="none", allowed="--target, or settings with a latency")
        search: dict[str, Any] = {"highest_rate": load.up_to} if load.up_to else {}
        return run_plans.limit_plan(
            SearchPlan(
                goal,
                seconds,
                min(10.0, seconds / 2) if alone is None else alone,
                precision=load.precision,
                poisson=not sending.constant,
                seed=sending.seed,
                **search,
            )
        )
    common["poisson"] = not sending.constant
    if load.replay is not None:
        recording = read_recording(load.replay)
        say(f"{load.replay}: {recording}", err=True)
        recorded = ReplayedArrivals.of_recording(recording)
        if recorded.doubt:
            say(f"Warning: {recorded.doubt}.", err=True)
        if sending.constant and recorded.rates is None:
            raise typer.BadParameter("--constant does not go with recorded single requests")
        recorded = replace(recorded, poisson=not sending.constant)
        if load.duration is None:
            common["seconds"] = recorded.seconds
        return run_plans.rate_plan([recorded], **common)
    if not load.confirm:
        return run_plans.rate_plan([_rate(each) for each in load.tps or ()], **common)
    if not goal.targets:
        raise LATENCY_NEEDED.error(got="none", allowed="--target, or settings with a latency")
    peak = [_rate(each) for each in load.tps or ()] or [stated.highest_tps if stated else None]
    if len(peak) != 1 or not isinstance(peak[0], float | int):
        raise LOAD_FORM.error(
            got="--confirm without the load of production",
            allowed="one --tps, or --settings with throughput.peak_tps",
            fix="Give --tps the requests per second that production sends.",
        )
    return run_plans.confirm_plan(peak[0], **common)


def _rate(text: str) -> Any:
    """Requests per second, or a ramp."""
    from ..load_test.engine.arrivals import RampArrivals
    from ..report.numbers import number_of

    try:
        values = [number_of(part) for part in text.split("..")]
        if len(values) > 2:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(
            f"--tps {text}: give requests per second such as 200, or a ramp such as 10..200"
        ) from None
    return values[0] if len(values) == 1 else RampArrivals(values[0], values[1])


def _goal(
    target: list[str] | None, allowed_errors: float, stated: StatedEndpoint | None
) -> LatencyGoal:
    from ..load_test.search.judging import PREFIXES, LatencyGoal
    from .options import parse_targets

    given = parse_targets(target or [], PREFIXES)
    targets = {name: value / 1000 for name, value in given.items()}
    if not targets and stated is not None:
        targets = stated.targets
    return LatencyGoal(targets, allowed_errors)
