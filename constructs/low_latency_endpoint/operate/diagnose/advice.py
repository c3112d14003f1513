"""Numbers that a finding advises: the plan judges each, else the finding says what to measure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...errors import ConfigurationError
from ...options.scaling import InstanceCounts, ScalingOptions
from ...options.throughput import MeasuredThroughput
from ...plan.endpoint_request import EndpointRequest
from ...plan.latency_plan import make_plan
from ...plan.serving import Serving
from ...report.numbers import plain_number, readable
from .findings import Remedy
from .thresholds import FILLS_A_CPU, OF_LOAD_TEST, PROPORTION
from .view import TrackedMetric, VariantView

#: As few as a plan takes, where CloudWatch names no zones.
_ZONES = ("use1-az1", "use1-az2")
_MEASURE = "measure what one instance holds with a load test"
_AGAIN = "measure it again with a load test"


def instances_remedy(
    view: VariantView, key: str, needed: int | None, times: list[datetime], why: str
) -> Remedy:
    """A number of instances, where the load asks for it and the plan takes it."""
    if needed is None:
        return Remedy(key, why)
    if idle := unfilled(view, times):
        return Remedy(key, f"no number: {idle}")
    if doubt := _doubt(view, least=needed, instances=InstanceCounts(max=needed)):
        return Remedy(key, f"no number: {doubt}; {_MEASURE}")
    if needed == view.instances_by_utilization(times):
        bound = (
            "at least: full instances do not show all that is asked of them"
            if view.used_up(times)
            else "at 60 to 70 % utilization, as AWS advises"
        )
        why = f"{why}; {bound}" if why else bound
    return Remedy(key, why, str(needed))


def peak_remedy(view: VariantView, tps: float) -> Remedy:
    """The highest traffic seen, as what the plan is made for: two significant digits up."""
    step = 10 ** max(len(str(int(tps))) - 2, 0)
    peak, plan = int(-(-tps // step) * step), view.measurements.plan
    each = plan and plan.tps_per_instance
    if each and (doubt := _doubt(view, throughput=_throughput(view, peak, each))):
        return Remedy("throughput.peak_tps", f"no number: {doubt}; {_MEASURE}")
    return Remedy("throughput.peak_tps", "the plan's maximum follows from it", str(peak))


def target_remedy(
    view: VariantView, tracked: TrackedMetric, held: float, times: list[datetime], why: str
) -> Remedy:
    """What the scaling target follows from, at what full instances held: an upper bound."""
    plan = view.measurements.plan
    if tracked.concurrency:
        key, value, unit = "scaling.concurrency_target", held, "in flight"
    else:
        key, value, unit = "throughput.tps_per_instance", held / 60, "a second"
    given = float(f"{value:.3g}")
    words = f"full at {readable(given)} {unit}"
    found = None if tracked.concurrency or not plan else plan.tps_per_instance
    if found and value < OF_LOAD_TEST * found:
        words += f" where a load test found {readable(found, 3)}: something else fills the "
        words += f"instances, or each request became heavier; {_AGAIN}"
        return Remedy(key, f"no number: {words}")
    if idle := unfilled(view, times):
        return Remedy(key, f"no number: {idle}; {_AGAIN}")
    if not tracked.concurrency:
        peak = max(plan.peak_tps or 0 if plan else 0, view.tps.max or 0)
        doubt = _doubt(view, throughput=_throughput(view, peak, given))
    elif given < 1:
        doubt = "less than one request in flight is no target"
    else:
        scaling = ScalingOptions(metric="concurrency", concurrency_target=given)
        doubt = _doubt(view, scaling=scaling)
    if doubt:
        return Remedy(key, f"no number: {words}, {doubt}; {_MEASURE}")
    return Remedy(key, why, plain_number(given))


def unfilled(view: VariantView, times: list[datetime]) -> str:
    """Why the requests cannot be what fills the processors; empty where they may be."""
    in_work = view.in_work(times)
    if in_work is None or in_work >= FILLS_A_CPU or not view.used_up(times):
        return ""
    return (
        f"{readable(in_work, 2)} concurrent requests on an instance cannot use the whole CPU: "
        "find out first what else uses it"
    )


def _throughput(view: VariantView, peak_tps: float, tps_per_instance: float) -> dict[str, float]:
    plan = view.measurements.plan
    factor = plan.safety_factor if plan else None
    known = {} if factor is None else {"safety_factor": factor}
    return {"peak_tps": peak_tps, "tps_per_instance": tps_per_instance, **known}


def _doubt(
    view: VariantView,
    *,
    throughput: dict[str, float] | None = None,
    least: int = 0,
    **chosen: Any,  # as EndpointRequest takes them
) -> str:
    """Why a number is not advised: the plan's refusal, or a fleet out of proportion."""
    try:
        plan = make_plan(
            EndpointRequest(
                client_zones=_ZONES,
                serving=Serving(instance_type=view.variant.instance_type),
                throughput=MeasuredThroughput(**throughput) if throughput else None,
                **chosen,
            )
        )
    except ConfigurationError as refused:
        return f"the plan refuses it ({refused.code})"
    needed = max(least, plan.fleet.at_peak if throughput else 0)
    allowed = view.variant.scaling.maximum if view.variant.scaling else None
    seen = round(max(view.instances.max or 0, view.variant.current_instances or 0, allowed or 0))
    if seen and needed > PROPORTION * seen:
        return f"{needed:,} instances would follow, and {seen} is the most there were or may be"
    return ""
