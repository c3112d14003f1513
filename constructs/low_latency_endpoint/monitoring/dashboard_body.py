"""The dashboard's body: what an on-call engineer asks, in the order they ask it.

Pure data, as CloudWatch takes it (`Dashboard Body Structure and Syntax
<https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html>`_).
Latencies are shown in milliseconds: every panel divides SageMaker's microseconds by metric math.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from ..errors.frozen import dataclass
from ..report.numbers import milliseconds, readable
from .dashboard_panels import (
    PERIOD,
    TARGET,
    CanaryPanels,
    DashboardPanel,
    TokenPanels,
    shadow_panels,
)

_COLUMNS = 24
_HALF, _HEIGHT = _COLUMNS // 2, 6
# One hue per quantity, everywhere the same; percentiles from light to dark.
_BLUE = {"p50": "#9ecae1", "p90": "#4292c6", "p99": "#084594"}
_MODEL, _OVERHEAD = "#2171b5", "#fd8d3c"
# At most five pools, from dark to light: one hue for all, another for what GPUs do.
_POOLS = (
    ("#084594", "#2171b5", "#4292c6", "#6baed6", "#9ecae1"),
    ("#54278f", "#756bb1", "#9e9ac8", "#bcbddc", "#dadaeb"),
)
_ERRORS = {
    "Invocation4XXErrors": "#fdae6b",
    "Invocation5XXErrors": "#d62728",
    "InvocationModelErrors": "#9467bd",
}


Limits = Mapping[str, float | Mapping[str, float]]
"""Milliseconds by statistic, or by severity and statistic."""


class _Limit(NamedTuple):
    """Where an alarm starts, in milliseconds; severity with its blank, or empty."""

    severity: str
    statistic: str
    value: float

    @property
    def label(self) -> str:
        return f"{self.severity}alarm: {self.statistic} above {milliseconds(self.value, 6)}"


class PoolType(NamedTuple):
    """One instance type of several pools, with its vCPUs and GPUs (0 when unknown or without)."""

    name: str
    vcpus: int
    gpus: int


@dataclass(frozen=True, kw_only=True)
class DashboardVariant:
    """What the panels need to know of a variant."""

    name: str
    # of one instance; 0 when unknown (the panel then shows the raw metric) or without GPUs
    vcpus: int = 0
    gpus: int = 0
    multi_model: bool = False
    max_instances: int | None = None  # None when the variant does not scale
    scaling_target: float | None = None  # invocations per instance and minute
    # the types of several instance pools, each drawn for itself; else empty
    pools: tuple[PoolType, ...] = ()
    # percent of the whole instance above which an alarm is on, by ``"CPU"``, ``"memory"``,
    # ``"GPU"``, ``"GPU memory"``
    utilization_limits: Mapping[str, float] = field(default_factory=dict)
    # share of the invocations above which an alarm is on, by metric
    error_limits: Mapping[str, float] = field(default_factory=dict)
    # whether to draw the traffic of each zone. By default not, since the graph would be empty
    # where nothing publishes that dimension.
    zones: bool = False


def dashboard_body(
    *,
    endpoint_name: str,
    region: str,
    variants: Sequence[DashboardVariant],
    thresholds: Limits,
    targets: Mapping[str, float] | None = None,
    alarm_arns: Sequence[str] = (),
    shadow: DashboardVariant | None = None,
    tokens: Sequence[TokenPanels] = (),
    canary: CanaryPanels | None = None,
) -> dict[str, Any]:
    """The body, ready for JSON."""
    targets = targets or {}
    limits = list(_limits(thresholds))
    graphs = []
    for variant in variants:
        suffix = f" · {variant.name}" if len(variants) > 1 else ""
        panels = _Panels(endpoint_name, region, variant, suffix)
        graphs += [
            panels.target(limits, targets),
            panels.split(),
            *(canary.graphs(endpoint_name, region, targets) if canary else ()),
            panels.traffic(),
            panels.errors(),
            panels.utilization(),
            panels.load(),
            panels.instances(),
        ]
        if variant.pools:
            graphs += [panels.latency_by_type(limits), panels.instances_by_type()]
        if variant.multi_model:
            graphs.append(panels.multi_model())
        if variant.zones:
            graphs.append(panels.zones())
        canary = None  # callers see the endpoint, whichever variant answers
    if shadow is not None:
        graphs += shadow_panels(endpoint_name, region, variants[0].name, shadow.name)
        panels = _Panels(endpoint_name, region, shadow, f" · shadow {shadow.name}")
        graphs += [panels.instances(), panels.utilization()]
    widgets: list[dict[str, Any]] = [
        _widget("text", 0, 0, _COLUMNS, 2, {"markdown": _header(endpoint_name, limits, targets)})
    ]
    top = 2
    if alarm_arns:
        height = 1 + (len(alarm_arns) + 2) // 3
        widgets.append(
            _widget(
                "alarm", 0, top, _COLUMNS, height, {"title": "Alarms", "alarms": list(alarm_arns)}
            )
        )
        top += height
    widgets += _in_pairs("metric", graphs, top)
    top += (len(graphs) + 1) // 2 * _HEIGHT
    charts = [
        chart
        for token in tokens
        for chart in token.charts(
            endpoint_name, region, f" · {token.variant}" if len(variants) > 1 else ""
        )
    ]
    widgets += _in_pairs("chart", charts, top)
    return {"start": "-PT3H", "periodOverride": "inherit", "widgets": widgets}


def _in_pairs(kind: str, graphs: Sequence[dict[str, Any]], top: int) -> Iterator[dict[str, Any]]:
    for index, graph in enumerate(graphs):
        x, y = (index % 2) * _HALF, top + (index // 2) * _HEIGHT
        yield _widget(kind, x, y, _HALF, _HEIGHT, graph)


def _widget(
    kind: str, x: int, y: int, width: int, height: int, properties: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": kind,
        "x": x,
        "y": y,
        "width": width,
        "height": height,
        "properties": properties,
    }


def _limits(thresholds: Limits) -> Iterator[_Limit]:
    for name, value in thresholds.items():
        if isinstance(value, Mapping):
            yield from (_Limit(f"{name} ", *each) for each in value.items())
        else:
            yield _Limit("", name, value)


def _header(endpoint_name: str, limits: Sequence[_Limit], targets: Mapping[str, float]) -> str:
    target = ", ".join(
        f"{statistic} {milliseconds(value, 6)}" for statistic, value in targets.items()
    )
    alarms = ", ".join(
        f"{limit.severity}{limit.statistic} {milliseconds(limit.value, 6)}" for limit in limits
    )
    return (
        f"# {endpoint_name}\n"
        f"Callers' target: **{target or 'none'}**. Alarm on ModelLatency above: "
        f"**{alarms or 'none'}**. Slow? `low-latency diagnose {endpoint_name}`"
    )


class _Panels:
    """The panels of one variant."""

    def __init__(
        self, endpoint_name: str, region: str, variant: DashboardVariant, suffix: str
    ) -> None:
        self._endpoint_name = endpoint_name
        self._region = region
        self._variant = variant
        self._suffix = suffix
        self._dimensions = ("EndpointName", endpoint_name, "VariantName", variant.name)

    def _panel(self, title: str, left: str, **options: Any) -> DashboardPanel:
        return DashboardPanel(title + self._suffix, self._region, left, **options)

    def target(self, limits: Sequence[_Limit], targets: Mapping[str, float]) -> dict[str, Any]:
        panel = self._panel("Is the target met?", "ModelLatency in ms")
        for statistic in dict.fromkeys(
            ["p50", "p90", "p99", *(limit.statistic for limit in limits), *targets]
        ):
            key, color = statistic.lower().replace(".", "_"), _BLUE.get(statistic, "")
            panel.latency(self._dimensions, "ModelLatency", statistic, key, statistic, color)
        for limit in limits:
            panel.line(limit.value, limit.label)
        for statistic, value in targets.items():
            panel.line(
                value,
                f"callers' target of the whole call: {statistic} {milliseconds(value, 6)}",
                TARGET,
            )
        return panel.properties()

    def split(self) -> dict[str, Any]:
        panel = self._panel("Where does the time go?", "average in ms", stacked=True)
        for name, key, color in (
            ("ModelLatency", "model", _MODEL),
            ("OverheadLatency", "overhead", _OVERHEAD),
        ):
            panel.latency(self._dimensions, name, "Average", key, name, color)
        return panel.properties()

    def traffic(self) -> dict[str, Any]:
        panel = self._panel("Traffic", "requests per second", right_label="in flight")
        panel.raw(self._dimensions, "Invocations", "Sum", "invocations")
        panel.formula("invocations / PERIOD(invocations)", "tps", "requests per second", _MODEL)
        panel.shown(
            self._dimensions,
            "ConcurrentRequestsPerModel",
            "Maximum",
            "most in flight per instance",
            "#7f7f7f",
            "right",
        )
        return panel.properties()

    def errors(self) -> dict[str, Any]:
        panel = self._panel("Errors", "percent of the invocations")
        panel.raw(self._dimensions, "Invocations", "Sum", "invocations")
        for number, (name, color) in enumerate(_ERRORS.items()):
            panel.raw(self._dimensions, name, "Sum", f"errors{number}")
            panel.formula(
                f"IF(invocations > 0, 100 * errors{number} / invocations, 0)",
                f"share{number}",
                name,
                color,
            )
        panel.limits({name: 100 * share for name, share in self._variant.error_limits.items()})
        return panel.properties()

    def load(self) -> dict[str, Any]:
        target = self._variant.scaling_target
        panel = self._panel("What does each instance get?", "invocations per instance and minute")
        panel.raw(self._dimensions, "InvocationsPerInstance", "Sum", "each")
        panel.formula("each * 60 / PERIOD(each)", "load", "invocations per instance", _MODEL)
        if target is not None:
            panel.line(target, f"scaling target {readable(target)}")
        return panel.properties()

    def instances(self) -> dict[str, Any]:
        most = self._variant.max_instances
        panel = self._panel("Instances", "instances that serve")
        panel.raw(self._dimensions, "Invocations", "Sum", "invocations")
        panel.raw(self._dimensions, "InvocationsPerInstance", "Sum", "each")
        # Without requests nobody knows how many serve: a gap, and no 0.
        panel.formula(
            "IF(each > 0, invocations / each)", "instances", "instances that serve", TARGET
        )
        if most is not None:
            panel.line(most, f"maximum, as deployed: {most}")
        return panel.properties()

    def utilization(self) -> dict[str, Any]:
        variant = self._variant
        panel = self._panel("Utilization of the instance", "percent")
        if variant.pools:
            self._utilization_by_type(panel)
            panel.limits(self._utilization_limits(any(pool.gpus for pool in variant.pools)))
            return panel.properties()
        shares = [
            ("CPUUtilization", "cpu", "CPU", variant.vcpus, _MODEL),
            ("MemoryUtilization", "memory", "memory", 1, "#2ca02c"),
        ]
        if variant.gpus:
            shares += [
                ("GPUUtilization", "gpu", "GPU", variant.gpus, "#9467bd"),
                ("GPUMemoryUtilization", "gpu_memory", "GPU memory", variant.gpus, "#e377c2"),
            ]
        for name, key, label, units, color in shares:
            panel.raw(self._dimensions, name, "Average", f"{key}_raw")
            panel.formula(f"{key}_raw / {units or 1}", key, label, color)
        panel.limits(self._utilization_limits(bool(variant.gpus)))
        return panel.properties()

    def _utilization_limits(self, gpus: bool) -> dict[str, float]:
        limits = self._variant.utilization_limits
        return {name: limit for name, limit in limits.items() if gpus or "GPU" not in name}

    def _utilization_by_type(self, panel: DashboardPanel) -> None:
        """Each type with its own number of vCPUs and GPUs: their sum over types means nothing."""
        for number, pool in enumerate(self._variant.pools):
            dimensions = (*self._dimensions, "InstanceType", pool.name)
            shares = [("CPUUtilization", "cpu", "CPU", pool.vcpus, _POOLS[0])]
            if pool.gpus:
                shares.append(("GPUUtilization", "gpu", "GPU", pool.gpus, _POOLS[1]))
            for name, key, label, units, colors in shares:
                panel.raw(dimensions, name, "Average", f"{key}{number}_raw")
                panel.formula(
                    f"{key}{number}_raw / {units or 1}",
                    f"{key}{number}",
                    f"{label} of {pool.name}",
                    colors[number],
                )

    def latency_by_type(self, limits: Sequence[_Limit]) -> dict[str, Any]:
        panel = self._panel("How fast is each instance type?", "ModelLatency p99 in ms")
        for number, pool in enumerate(self._variant.pools):
            dimensions, color = (*self._dimensions, "InstanceType", pool.name), _POOLS[0][number]
            panel.latency(dimensions, "ModelLatency", "p99", f"type{number}", pool.name, color)
        for limit in limits:
            if limit.statistic == "p99":
                panel.line(limit.value, limit.label)
        return panel.properties()

    def instances_by_type(self) -> dict[str, Any]:
        panel = self._panel("Which instance types serve?", "requests per minute", stacked=True)
        for number, pool in enumerate(self._variant.pools):
            dimensions = (*self._dimensions, "InstanceType", pool.name)
            panel.shown(dimensions, "Invocations", "Sum", pool.name, _POOLS[0][number])
        return panel.properties()

    def multi_model(self) -> dict[str, Any]:
        panel = self._panel("Models loaded on demand", "ms", right_label="models, hit percent")
        for name, key, label in (
            ("ModelLoadingWaitTime", "wait", "wait for a model"),
            ("ModelDownloadingTime", "download", "download"),
            ("ModelLoadingTime", "load", "load"),
        ):
            panel.latency(self._dimensions, name, "Average", key, label)
        panel.raw(self._dimensions, "ModelCacheHit", "Average", "hit_share")
        panel.formula(
            "hit_share * 100", "hits", "requests with a loaded model, percent", "#2ca02c", "right"
        )
        panel.shown(
            self._dimensions, "LoadedModelCount", "Average", "models loaded", "#7f7f7f", "right"
        )
        return panel.properties()

    def zones(self) -> dict[str, Any]:
        # A search, because AWS does not say which setting publishes this set of dimensions, nor
        # whether AvailabilityZone holds a name or an ID.
        panel = self._panel("Zones", "requests per minute")
        schema = "AWS/SageMaker,EndpointName,VariantName,Region,AvailabilityZone,InstanceType"
        panel.formula(
            f'SEARCH(\'{{{schema}}} MetricName="Invocations" '
            f'EndpointName="{self._endpoint_name}" VariantName="{self._variant.name}"\', '
            f"'Sum', {PERIOD})",
            "zones",
            "",
        )
        return panel.properties()
