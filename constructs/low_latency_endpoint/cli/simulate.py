"""``low-latency simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .load_inputs import seconds_of
from .options import Html, Json, SettingsFile
from .process import check_packages

if TYPE_CHECKING:
    from ..plan.latency_plan import Plan
    from ..settings import EndpointSettings
    from ..simulate import Shape
    from ..simulate.load_test_result import LoadTestResult


def simulate(
    settings: SettingsFile,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which endpoint of the file; the first without it."),
    ] = None,
    compare_routing: Annotated[
        bool, typer.Option("--compare-routing", help="Compare the routing strategies.")
    ] = False,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL", help='Search fleets and policies: "p99<200ms at 1000 TPS, cheapest".'
        ),
    ] = None,
    traffic: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            help="Traffic over time: steady, daily-wave, spike, deploy, zone-loss, or "
            "all; with the plan's scaling, or with the policies of --search, "
            "which takes spike without it.",
        ),
    ] = None,
    traffic_from: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Recorded traffic over time: CSV of times and counts, or CloudWatch's "
            "answer with sums of Invocations (JSON).",
        ),
    ] = None,
    from_load_test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Service times and throughput as a load test measured them."
        ),
    ] = None,
    tps: Annotated[
        float | None,
        typer.Option(help="Requests per second at the peak; the settings' without it."),
    ] = None,
    instances: Annotated[
        int | None, typer.Option(help="Instances; the plan's at peak without it.")
    ] = None,
    routing: Annotated[
        str | None,
        typer.Option(metavar="STRATEGY", help="Routing strategy; the plan's without it."),
    ] = None,
    service_time: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Mean time of a request that has an instance to itself, such as 45ms.",
        ),
    ] = None,
    variation: Annotated[
        float | None,
        typer.Option(help="Standard deviation of service times divided by their mean."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Requests that an instance works on at once.")
    ] = None,
    slope: Annotated[
        float | None, typer.Option(help="By how much each neighbour lengthens a request: batching.")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(help="Independent runs. Without it 8; 4 over time.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.")] = 1,
    processes: Annotated[
        int | None, typer.Option(help="Processes; as many as there are processors without it.")
    ] = None,
    json: Json = False,
    html: Html = None,
    point: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="With --search: the point of its tables to adopt; the best fixed "
            "fleet without it.",
        ),
    ] = None,
    adopt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --search: write the plan with that point, its numbers naming "
            "the simulation as their source (Markdown).",
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="With --search: write that point into the settings file; comments stay."
        ),
    ] = False,
) -> None:
    """Say what would happen: latency, use and cost of an endpoint, without renting it.

    Answers with a sentence, then a table, then what it assumed. Quicker with the extra
    [simulation]; the results are the same.

    \b
    Examples:
      low-latency simulate endpoint.yaml
      low-latency simulate endpoint.yaml --compare-routing --from-load-test result.json
      low-latency simulate endpoint.yaml --search "p99<200ms at 1000 TPS, cheapest"
      low-latency simulate endpoint.yaml --search "p99<200ms at 1000 TPS" --point 3 --write
      low-latency simulate endpoint.yaml --traffic spike --html spike.html
    """
    import os

    from ..settings.simulated_deployment import simulated_deployment
    from ..simulate.assumptions import model_of_plan
    from ..simulate.load_test_result import read_load_test_result
    from .simulate_report import Report

    if html is not None:
        check_packages("jinja2")
    _check_options(
        compare_routing=compare_routing,
        search=search,
        traffic=traffic,
        traffic_from=traffic_from,
        tps=tps,
        instances=instances,
        routing=routing,
        point=point,
        adopt=adopt,
        write=write,
        variation=variation,
        measured=from_load_test is not None and service_time is None,
    )
    name, plan, stated = _planned(settings, endpoint)
    load_test = read_load_test_result(from_load_test) if from_load_test else None
    model = model_of_plan(
        plan,
        throughput=stated.throughput.measured if stated.throughput else None,
        latency=stated.latency.target,
        load_test=load_test,
        service_seconds=None
        if service_time is None
        else seconds_of(service_time, "--service-time"),
        variation=variation,
        concurrency=concurrency,
        slope=slope,
        peak_tps=tps,
        instances=instances,
        routing=routing.upper().replace("-", "_") if routing else None,
        deployment=simulated_deployment(stated),
    )
    shapes = _shapes(traffic, traffic_from)
    if shapes and search is None and instances is not None and model.scales:
        raise typer.BadParameter(
            "--instances goes with a fleet that does not scale: over time "
            "scaling decides, within the settings' instances"
        )
    report = Report(
        name,
        settings,
        model,
        plan,
        {"seed": seed, "processes": processes or os.cpu_count() or 1},
        replications,
    )
    if search is not None:
        report.search(search, shapes, point, adopt, write=write)
    elif shapes:
        report.over_time(shapes)
    elif compare_routing:
        report.compare()
    else:
        report.steady()
    if load_test:
        report.warnings += _misfits(load_test, name, stated)
    report.show(json, html)


def _check_options(
    *,
    compare_routing: bool,
    search: str | None,
    traffic: str | None,
    traffic_from: Path | None,
    variation: float | None,
    measured: bool,
    write: bool,
    **given: Any,
) -> None:
    """Refuse what would be dropped in silence."""
    over_time = traffic is not None or traffic_from is not None
    if traffic is not None and traffic_from is not None:
        raise typer.BadParameter("give one of --traffic and --traffic-from")
    if compare_routing and (search is not None or over_time):
        raise typer.BadParameter("give one of --compare-routing, --search and --traffic")
    if search is None:
        for name in ("point", "adopt"):
            if given[name] is not None:
                raise typer.BadParameter(f"--{name} goes with --search")
        if write:
            raise typer.BadParameter("--write goes with --search")
    else:
        for name, why in (
            ("tps", "the goal says how many"),
            ("instances", "the search walks over them"),
            ("routing", "the search tries the strategies"),
        ):
            if given[name] is not None:
                raise typer.BadParameter(f"--{name} does not go with --search: {why}")
    if compare_routing and given["routing"] is not None:
        raise typer.BadParameter(
            "--routing does not go with --compare-routing, which compares the strategies"
        )
    if variation is not None and measured:
        raise typer.BadParameter(
            "--variation does not go with --from-load-test, which measured "
            "it; add --service-time to assume both"
        )


def _shapes(traffic: str | None, recorded: Path | None) -> list[Shape]:
    from ..simulate import read_recorded_traffic, shape, shapes

    if recorded is not None:
        return [read_recorded_traffic(recorded)]
    if traffic is None:
        return []
    return list(shapes().values()) if traffic == "all" else [shape(traffic)]


def _misfits(load_test: LoadTestResult, key: str, stated: EndpointSettings) -> list[str]:
    """What does not fit between a load test and the settings."""
    from ..plan.load_test_validity import other_instance_type

    found = []
    if (
        load_test.endpoint
        and stated.endpoint_name
        and load_test.endpoint not in (stated.endpoint_name, key)
    ):
        found.append(
            f"the load test called {load_test.endpoint}, the settings' endpoint is "
            f"{stated.endpoint_name}"
        )
    if other := other_instance_type(load_test.instance_type, stated.instance_type):
        found.append(other)
    return found


def _planned(path: Path, name: str | None) -> tuple[str, Plan, EndpointSettings]:
    from ..settings import load_settings, plan_endpoint

    settings = load_settings(path)
    chosen = name or next(iter(settings.endpoints))
    return chosen, plan_endpoint(settings, chosen), settings.endpoints[chosen]
