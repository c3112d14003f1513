"""Numbers that a finding advises: the plan judges each, else the finding says what to measure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...errors import ConfigurationError
from ...options.scaling import InstanceCounts, ScalingOptions
from ...options.throughput import MeasuredThroughput
from ...plan.endpoint_request import EndpointRequest
from ...plan.latency_plan import make_plan
from ...plan.plan import Plan
from ...plan.serving import Serving
from ...report.numbers import plain_number, readable
from .findings import Remedy
from .thresholds import SATURATED_PERCENT
from .view import TrackedMetric, VariantView

#: A fleet this many times as large as ever served or may serve is not advised (assumed).
_PROPORTION = 4
#: Full at less than this share of what a load test found: then the load is not what fills them.
_OF_LOAD_TEST = 0.5
#: Requests in work on an instance at once, in the mean, below which they do not fill a processor.
_IN_WORK = 0.5
#: As few as a plan takes, where CloudWatch names no zones.
_ZONES = ("use1-az1", "use1-az2")

_MEASURE = "measure what one instance holds with a load test"


def instances_remedy(
    view: VariantView, key: str, needed: int | None, times: list[datetime], why: str
) -> Remedy:
    """A number of instances, where the load asks for it and the plan takes it."""
    if needed is None:
        return Remedy(key, why)
    idle = unfilled(view, times)
    if idle:
        return Remedy(key, f"no number: {idle}")
    doubt = _doubt(view, instances=InstanceCounts(max=needed), least=needed)
    if doubt:
        return Remedy(key, f"no number: {doubt}; {_MEASURE}")
    if needed == view.instances_by_utilization(times):
        bound = (
            "at least: full instances do not show all that is asked of them"
            if _full(view, times)
            else "at 60 to 70 % utilization, as AWS advises"
        )
        why = f"{why}; {bound}" if why else bound
    return Remedy(key, why, str(needed))


def peak_remedy(view: VariantView, tps: float) -> Remedy:
    """The highest traffic seen, as what the plan is made for."""
    peak, why = _round_up(tps), "the plan's maximum follows from it"
    plan = view.measurements.plan
    if plan and plan.tps_per_instance:
        doubt = _doubt(view, _throughput(view, peak, plan.tps_per_instance))
        if doubt:
            return Remedy("throughput.peak_tps", f"no number: {doubt}; {_MEASURE}")
    return Remedy("throughput.peak_tps", why, str(peak))


def target_remedy(
    view: VariantView, tracked: TrackedMetric, held: float, times: list[datetime], why: str
) -> Remedy:
    """What the scaling target follows from, at what full instances held: an upper bound."""
    key = "scaling.concurrency_target" if tracked.concurrency else "throughput.tps_per_instance"
    value = held if tracked.concurrency else held / 60
    given = float(f"{value:.3g}")
    plan = view.measurements.plan
    found = plan.tps_per_instance if plan else None
    words = f"full at {readable(given)}" + (" in flight" if tracked.concurrency else " a second")
    if not tracked.concurrency and found and value < _OF_LOAD_TEST * found:
        return Remedy(
            key,
            f"no number: {words} where a load test found {readable(found, 3)}: something else fills the "
            "instances, or each request became heavier; measure it again with a load test",
        )
    idle = unfilled(view, times)
    if idle:
        return Remedy(key, f"no number: {idle}; measure it again with a load test")
    if tracked.concurrency:
        doubt = (
            "less than one request in flight is no target"
            if given < 1
            else _doubt(
                view, scaling=ScalingOptions(metric="concurrency", concurrency_target=given)
            )
        )
    else:
        peak = max(plan.peak_tps or 0 if plan else 0, view.tps.max or 0)
        doubt = _doubt(view, _throughput(view, peak, given))
    if doubt:
        return Remedy(key, f"no number: {words}, {doubt}; {_MEASURE}")
    return Remedy(key, why, plain_number(given))


def unfilled(view: VariantView, times: list[datetime]) -> str:
    """Why the requests cannot be what fills the processors; empty where they may be."""
    in_work = view.in_work(times)
    if in_work is None or in_work >= _IN_WORK or not _full(view, times):
        return ""
    return (
        f"{readable(in_work, 2)} concurrent requests on an instance cannot use the whole CPU: "
        "find out first what else uses it"
    )


def _full(view: VariantView, times: list[datetime]) -> bool:
    return max(view.utilization(times).values(), default=0) >= SATURATED_PERCENT


def _throughput(
    view: VariantView, peak_tps: float, tps_per_instance: float
) -> tuple[float, float, float | None]:
    plan = view.measurements.plan
    return peak_tps, tps_per_instance, plan.safety_factor if plan else None


def _doubt(
    view: VariantView,
    throughput: tuple[float, float, float | None] | None = None,
    least: int = 0,
    **chosen: InstanceCounts | ScalingOptions,
) -> str:
    """Why a number is not advised: the plan's refusal, or a fleet out of proportion."""
    try:
        made = _planned(view, throughput, chosen)
    except ConfigurationError as refused:
        return f"the plan refuses it ({refused.code})"
    needed = max(least, made.fleet.at_peak if throughput else 0)
    allowed = view.variant.scaling.maximum if view.variant.scaling else None
    seen = round(max(view.instances.max or 0, view.variant.current_instances or 0, allowed or 0))
    if seen and needed > _PROPORTION * seen:
        return f"{needed:,} instances would follow, and {seen} is the most there were or may be"
    return ""


def _planned(
    view: VariantView,
    throughput: tuple[float, float, float | None] | None,
    chosen: Mapping[str, Any],
) -> Plan:
    measured = None
    if throughput:
        peak, each, factor = throughput
        measured = (
            MeasuredThroughput(peak_tps=peak, tps_per_instance=each)
            if factor is None
            else MeasuredThroughput(peak_tps=peak, tps_per_instance=each, safety_factor=factor)
        )
    return make_plan(
        EndpointRequest(
            client_zones=_ZONES,
            serving=Serving(instance_type=view.variant.instance_type),
            throughput=measured,
            **chosen,
        )
    )


def _round_up(value: float) -> int:
    """Two significant digits up: 1234 becomes 1300."""
    step = 10 ** max(len(str(int(value))) - 2, 0)
    return int(-(-value // step) * step)
