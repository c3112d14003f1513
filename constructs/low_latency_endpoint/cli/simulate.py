"""``low-latency simulate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import rule
from .load_inputs import check_traffic, recorded_shape, seconds_of
from .options import (
    ENDPOINT_YAML,
    Html,
    Json,
    Markdown,
    Prices,
    SettingsFile,
    TrafficPeriod,
    argument,
    flag,
    grouped,
    option,
)
from .process import check_packages

if TYPE_CHECKING:
    from ..plan.plan import Plan
    from ..settings import Settings
    from ..simulate import InstanceStart, Shape
    from ..simulate.load_test_result import LoadTestResult


REPLAYED = rule(
    "LLS160",
    "single requests are simulated at their recorded times",
    fix="Leave --period and --tps out. For another rate, give a file of counts and --tps.",
)


@dataclass
class SimulationOptions:
    """What is simulated, and what is shown of it."""

    endpoint: str | None = argument(
        "Name of the endpoint. Default: the first in the settings file.", metavar="ENDPOINT"
    )
    settings: SettingsFile = ENDPOINT_YAML
    compare_routing: bool = flag(
        "Compare the routing strategies; without a settings file by --tps, --instances and "
        "--service-time."
    )
    traffic: str | None = option(
        "Traffic over time: steady, daily-wave, spike, deploy, zone-loss, or all. Simulates the "
        "scaling of the plan.",
        metavar="SHAPE",
    )
    traffic_from: Path | None = option(
        "Recorded traffic over time: CSV with the time of each request, which is replayed, or with "
        "times and counts; or CloudWatch JSON with sums of Invocations.",
        metavar="FILE",
    )
    period: TrafficPeriod = None
    from_load_test: Path | None = option(
        "Result file of a load test: use its service times and throughput.", metavar="FILE"
    )
    tps: float | None = option(
        "Requests per second at the peak. Default: from the settings file.", metavar="TPS"
    )
    instances: int | None = option(
        "Number of instances. Default: the plan's at the peak.", metavar="N"
    )
    routing: str | None = option("Routing strategy. Default: the plan's.", metavar="STRATEGY")
    service_time: str | None = option(
        "Mean service time of a request alone on an instance, such as 45ms.", metavar="TIME"
    )
    variation: float | None = option(
        "Standard deviation of the service time divided by its mean.", metavar="SHARE"
    )
    concurrency: int | None = option(
        "Requests that an instance processes at the same time.", metavar="N"
    )
    slope: float | None = option(
        "Share by which each concurrent request slows the others down, as in batching.",
        metavar="SHARE",
    )
    instance_start: str | None = option(
        "Time from the scaling decision until a new instance takes traffic, such as 258s, or by "
        "phase: provision=60s,image=333s,model=168s,container=127s,warm=10s. Default: 5m.",
        metavar="TIME",
    )
    replications: int | None = option(
        "Number of independent runs. Default: 8, or 4 for traffic over time.", metavar="N"
    )
    requests: int | None = option(
        "Requests per run at a steady load. Default: as many as p99 needs, at most two million.",
        metavar="N",
    )
    seed: int = option("Random seed. The same seed gives the same result.", 1, metavar="N")
    processes: int | None = option(
        "Processes on this machine, at most one per processor. Default: that many.", metavar="N"
    )
    price: Prices = None
    json: Json = False
    markdown: Markdown = False
    html: Html = None

    def check(self) -> None:
        over_time = self.traffic is not None or self.traffic_from is not None
        check_traffic(self.traffic, self.traffic_from, self.period)
        if self.compare_routing and over_time:
            raise typer.BadParameter("give one of --compare-routing and --traffic")
        if self.compare_routing and self.routing is not None:
            raise typer.BadParameter(
                "--routing does not go with --compare-routing, which compares the strategies"
            )
        if self.variation is not None and self.from_load_test and self.service_time is None:
            raise typer.BadParameter(
                "--variation does not go with --from-load-test, which measured "
                "it; add --service-time to assume both"
            )
        if over_time and self.requests is not None:
            raise typer.BadParameter(
                "--requests goes with a steady load: over time the traffic says how many come"
            )
        if not over_time and self.instance_start is not None:
            raise typer.BadParameter(
                "--instance-start goes with --traffic or --traffic-from: nothing starts at a steady "
                "load"
            )
        if not over_time and not self.compare_routing:
            self._check_service_time_is_known()

    def _check_service_time_is_known(self) -> None:
        """Refuse what is tried in several sizes where nobody says how long a call takes."""
        if self.service_time is not None or self.from_load_test is not None:
            return
        for name in ("variation", "concurrency"):
            if getattr(self, name) is not None:
                raise typer.BadParameter(
                    f"--{name} goes with --service-time or --from-load-test: without them several "
                    "service times are tried, each with its own"
                )

    @property
    def states_all(self) -> bool:
        """Whether strategies are compared by stated numbers, as there is no settings file."""
        return (
            self.compare_routing and self.settings == ENDPOINT_YAML and not ENDPOINT_YAML.exists()
        )

    def check_stated(self) -> None:
        """Refuse to compare without a settings file what is not stated."""
        needed = {
            "--tps": self.tps,
            "--instances": self.instances,
            "--service-time or --from-load-test": self.service_time or self.from_load_test,
        }
        missing = [name for name, value in needed.items() if value is None]
        if missing:
            raise typer.BadParameter(
                f"without a settings file, --compare-routing needs {' and '.join(missing)} too"
            )

    def _check_single_requests(self, recorded: Shape) -> None:
        """Refuse what a recording of single requests would leave without effect."""
        without = {"--period": self.period, "--tps": self.tps}
        given = [name for name, value in without.items() if value is not None]
        if recorded.times and given:
            raise REPLAYED.error(
                got=" and ".join(given),
                where=str(self.traffic_from),
                allowed=f"a recording of single requests without {' and '.join(given)}",
            )

    @property
    def shapes(self) -> list[Shape]:
        """The traffic over time; none for a steady peak."""
        from ..simulate import shape, shapes

        if self.traffic_from is not None:
            recorded = recorded_shape(self.traffic_from, self.period)
            self._check_single_requests(recorded)
            return [recorded]
        if self.traffic is None:
            return []
        return list(shapes().values()) if self.traffic == "all" else [shape(self.traffic)]


@grouped
def simulate(options: SimulationOptions) -> None:
    """Predict latency, utilization and cost of an endpoint without deploying it.

    Prints a sentence, a table, and the assumptions. The extra [simulation] makes it faster with the
    same results.

    \b
    Exit codes:
      0  simulated
      2  usage error or invalid settings file

    \b
    Examples:
      low-latency simulate
      low-latency simulate --compare-routing --from-load-test result.json
      low-latency simulate --compare-routing --service-time 40ms --concurrency 4 \\
        --tps 300 --instances 5
      low-latency simulate sentiment --tps 1500 --instances 10 --service-time 45ms
      low-latency simulate --settings large.yaml --traffic spike --html spike.html
    """
    import os

    from ..simulate.assumptions import model_of_plan
    from ..simulate.load_test_result import read_load_test_result
    from .simulate_report import SimulationReport, simulated_cost

    if options.html is not None:
        check_packages("jinja2")
    options.check()
    name, plan, settings = _stated(options) if options.states_all else _planned(options)
    stated = settings.endpoints[name]
    load_test = read_load_test_result(options.from_load_test) if options.from_load_test else None
    shapes = options.shapes
    model = model_of_plan(
        plan,
        throughput=stated.throughput,
        load_test=load_test,
        service_seconds=None
        if options.service_time is None
        else seconds_of(options.service_time, "--service-time"),
        variation=options.variation,
        concurrency=options.concurrency,
        slope=options.slope,
        peak_tps=_recorded_peak(shapes) or options.tps,
        instances=options.instances,
        routing=options.routing.upper().replace("-", "_") if options.routing else None,
        start=_instance_start(options.instance_start),
    )
    if shapes and options.instances is not None and model.scales:
        raise typer.BadParameter(
            "--instances goes with a fleet that does not scale: over time "
            "scaling decides, within the settings' instances"
        )
    report = SimulationReport(
        name,
        None if options.states_all else options.settings,
        model,
        plan,
        {"seed": options.seed, "processes": options.processes or os.cpu_count() or 1},
        options.replications,
        options.requests,
        simulated_cost(settings, name, options.price or ()),
    )
    if shapes:
        report.over_time(shapes)
    elif options.compare_routing:
        report.compare()
    else:
        report.steady()
    if load_test:
        report.warnings += _misfits(load_test, name, settings)
    report.show(options.json, options.html, markdown=options.markdown)


def _recorded_peak(shapes: list[Shape]) -> float | None:
    """The peak of recorded single requests, which come at their own rate; else ``None``."""
    return next((shape.recorded_peak for shape in shapes if shape.times), None)


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


def _misfits(load_test: LoadTestResult, key: str, settings: Settings) -> list[str]:
    """What does not fit between a load test and the settings."""
    from ..plan.load_test_validity import other_endpoint, other_instance_type

    names = {name: stated.endpoint_name for name, stated in settings.endpoints.items()}
    planned_type = settings.endpoints[key].instance_type
    misfits = (
        other_endpoint(load_test.endpoint, key, names),
        other_instance_type(load_test.instance_type, planned_type),
    )
    return [misfit for misfit in misfits if misfit]


def _stated(options: SimulationOptions) -> tuple[str, Plan, Settings]:
    """The same of a fixed fleet of which only the command line tells."""
    from ..settings import plan_endpoint
    from ..settings.loading import settings_of

    options.check_stated()
    name = options.endpoint or "endpoint"
    fleet = {
        # Of which nothing is simulated; what is states the command line.
        "containers": [{"image": {"uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"}}],
        "instance_type": "ml.m5.large",
        "instances": {"min": options.instances, "max": options.instances},
        "scaling": {"enabled": False},
    }
    zones = {"ids": ["use1-az1", "use1-az2"]}
    settings, findings = settings_of({"client_zones": zones, "endpoints": {name: fleet}})
    for _, error in findings:
        raise error
    return name, plan_endpoint(settings, name), settings


def _planned(options: SimulationOptions) -> tuple[str, Plan, Settings]:
    """The key of the endpoint, its plan, and the settings that state it."""
    from ..facts.rules import ONE_VARIANT_SIMULATED
    from ..settings import load_settings, plan_endpoint

    settings = load_settings(options.settings)
    name = options.endpoint
    chosen = settings.key_of(name) if name else next(iter(settings.endpoints))
    if others := settings.endpoints[chosen].variants:
        first = settings.endpoints[chosen].variant_name
        raise ONE_VARIANT_SIMULATED.error(
            got=f"{chosen} with {', '.join([first, *others])}",
            allowed="an endpoint without variants",
        )
    return chosen, plan_endpoint(settings, chosen), settings
