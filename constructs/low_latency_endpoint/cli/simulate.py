"""``low-latency simulate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .load_inputs import seconds_of
from .options import Html, Json, SettingsFile, flag, grouped, option
from .process import check_packages

if TYPE_CHECKING:
    from ..plan.latency_plan import Plan
    from ..settings import EndpointSettings
    from ..simulate import InstanceStart, Shape
    from ..simulate.load_test_result import LoadTestResult


@dataclass
class SimulationOptions:
    """What is simulated, and what is shown of it."""

    endpoint: str | None = option(
        "Which endpoint of the file; the first without it.", metavar="NAME"
    )
    compare_routing: bool = flag("Compare the routing strategies.")
    search: str | None = option(
        'Search fleets and policies: "p99<200ms at 1000 TPS, cheapest".', metavar="GOAL"
    )
    traffic: str | None = option(
        "Traffic over time: steady, daily-wave, spike, deploy, zone-loss, or all; with the "
        "plan's scaling, or with the policies of --search, which takes spike without it.",
        metavar="SHAPE",
    )
    traffic_from: Path | None = option(
        "Recorded traffic over time: CSV of times and counts, or CloudWatch's answer with sums "
        "of Invocations (JSON).",
        metavar="FILE",
    )
    from_load_test: Path | None = option(
        "Service times and throughput as a load test measured them.", metavar="FILE"
    )
    tps: float | None = option("Requests per second at the peak; the settings' without it.")
    instances: int | None = option("Instances; the plan's at peak without it.")
    routing: str | None = option("Routing strategy; the plan's without it.", metavar="STRATEGY")
    service_time: str | None = option(
        "Mean time of a request that has an instance to itself, such as 45ms.", metavar="DURATION"
    )
    variation: float | None = option("Standard deviation of service times divided by their mean.")
    concurrency: int | None = option("Requests that an instance works on at once.")
    slope: float | None = option("By how much each neighbour lengthens a request: batching.")
    instance_start: str | None = option(
        "How long a new instance takes until it serves: 258s, or its phases: "
        "provision=60s,image=333s,model=168s,container=127s,warm=10s. 300 s without it.",
        metavar="DURATION",
    )
    replications: int | None = option("Independent runs. Without it 8; 4 over time.")
    requests: int | None = option(
        "Requests of each run at a steady load. Without it as many as p99 needs at that load, up "
        "to two million."
    )
    seed: int = option("The same seed gives the same results.", 1)
    processes: int | None = option("Processes; as many as there are processors without it.")
    price: list[str] | None = option(
        "What an instance type costs for an hour; over the settings' prices. Repeat it.",
        metavar="ITEM=USD",
    )
    json: Json = False
    html: Html = None
    point: int | None = option(
        "With --search: the point of its tables to adopt; the best fixed fleet without it.",
        metavar="NUMBER",
    )
    adopt: Path | None = option(
        "With --search: write the plan with that point, its numbers naming the simulation as "
        "their source (Markdown).",
        metavar="FILE",
    )
    safety_factor: float | None = option(
        "With --search: share of its measured limit that an instance may be loaded with at the "
        "peak; the settings' without it."
    )
    without_zone_reserve: bool = flag(
        "With --search: try fleets too that cannot hold the peak when a zone is lost."
    )
    write: bool = flag("With --search: write that point into the settings file; comments stay.")

    def check(self) -> None:
        """Refuse what would be dropped in silence."""
        over_time = self.traffic is not None or self.traffic_from is not None
        if self.traffic is not None and self.traffic_from is not None:
            raise typer.BadParameter("give one of --traffic and --traffic-from")
        if self.compare_routing and (self.search is not None or over_time):
            raise typer.BadParameter("give one of --compare-routing, --search and --traffic")
        if self.search is None:
            for name in ("point", "adopt", "write", "safety_factor", "without_zone_reserve"):
                if getattr(self, name) not in (None, False):
                    raise typer.BadParameter(f"--{name.replace('_', '-')} goes with --search")
        else:
            for name, why in (
                ("tps", "the goal says how many"),
                ("instances", "the search walks over them"),
                ("routing", "the search tries the strategies"),
            ):
                if getattr(self, name) is not None:
                    raise typer.BadParameter(f"--{name} does not go with --search: {why}")
        if self.compare_routing and self.routing is not None:
            raise typer.BadParameter(
                "--routing does not go with --compare-routing, which compares the strategies"
            )
        if self.variation is not None and self.from_load_test and self.service_time is None:
            raise typer.BadParameter(
                "--variation does not go with --from-load-test, which measured "
                "it; add --service-time to assume both"
            )

    @property
    def shapes(self) -> list[Shape]:
        """The traffic over time; none for a steady peak."""
        from ..simulate import read_recorded_traffic, shape, shapes

        if self.traffic_from is not None:
            return [read_recorded_traffic(self.traffic_from)]
        if self.traffic is None:
            return []
        return list(shapes().values()) if self.traffic == "all" else [shape(self.traffic)]


@grouped
def simulate(settings: SettingsFile, options: SimulationOptions) -> None:
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
    from ..simulate.search_goals import parse_goal
    from .simulate_cost import simulated_cost
    from .simulate_report import SimulationReport

    if options.html is not None:
        check_packages("jinja2")
    options.check()
    goal = parse_goal(options.search) if options.search is not None else None
    name, plan, stated = _planned(settings, options.endpoint)
    load_test = read_load_test_result(options.from_load_test) if options.from_load_test else None
    model = model_of_plan(
        plan,
        throughput=stated.throughput.measured if stated.throughput else None,
        load_test=load_test,
        service_seconds=None
        if options.service_time is None
        else seconds_of(options.service_time, "--service-time"),
        variation=options.variation,
        concurrency=options.concurrency,
        slope=options.slope,
        peak_tps=goal.tps if goal else options.tps,
        instances=options.instances,
        routing=options.routing.upper().replace("-", "_") if options.routing else None,
        deployment=simulated_deployment(stated),
        start=_instance_start(options.instance_start),
    )
    shapes = options.shapes
    if shapes and options.search is None and options.instances is not None and model.scales:
        raise typer.BadParameter(
            "--instances goes with a fleet that does not scale: over time "
            "scaling decides, within the settings' instances"
        )
    report = SimulationReport(
        name,
        settings,
        model,
        plan,
        {"seed": options.seed, "processes": options.processes or os.cpu_count() or 1},
        options.replications,
        options.requests,
        simulated_cost(settings, name, options.price or ()),
    )
    if goal is not None:
        report.search(
            goal,
            shapes,
            options.point,
            options.adopt,
            write=options.write,
            safety_factor=options.safety_factor,
            zone_reserve=not options.without_zone_reserve,
        )
    elif shapes:
        report.over_time(shapes)
    elif options.compare_routing:
        report.compare()
    else:
        report.steady()
    if load_test:
        report.warnings += _misfits(load_test, name, stated)
    report.show(options.json, options.html)


def _instance_start(text: str | None) -> InstanceStart | None:
    """The phases of an instance's start, or all of it in one."""
    from ..simulate.fleet_changes import START_PHASES, InstanceStart

    if text is None:
        return None
    if "=" not in text:
        return InstanceStart(container_start=seconds_of(text, "--instance-start"))
    phases = {}
    for part in text.split(","):
        name, _, duration = part.partition("=")
        if name.strip() not in START_PHASES:
            raise typer.BadParameter(
                f"--instance-start: {name!r} is not one of {', '.join(START_PHASES)}"
            )
        phases[START_PHASES[name.strip()]] = seconds_of(duration.strip(), "--instance-start")
    return InstanceStart(**phases)


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
    from ..plan.rules import ONE_VARIANT_SIMULATED
    from ..settings import load_settings, plan_endpoint

    settings = load_settings(path)
    chosen = name or next(iter(settings.endpoints))
    if chosen in settings.endpoints and (others := settings.endpoints[chosen].variants):
        first = settings.endpoints[chosen].variant_name
        raise ONE_VARIANT_SIMULATED.error(
            got=f"{chosen} with {', '.join([first, *others])}",
            allowed="an endpoint without variants",
        )
    return chosen, plan_endpoint(settings, chosen), settings.endpoints[chosen]
