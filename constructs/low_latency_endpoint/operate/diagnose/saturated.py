"""Full instances: why did scaling not help, and which numbers help? The plan judges each number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ...account.scaling import Activity, ScalingReading
from ...errors import ConfigurationError
from ...facts.failure_reasons import read_failure
from ...facts.instance_types import next_larger
from ...options.scaling import InstanceCounts, ScalingOptions
from ...options.throughput import MeasuredThroughput
from ...plan.endpoint_request import EndpointRequest
from ...plan.latency_plan import make_plan
from ...plan.serving import Serving
from ...report.numbers import plain_number, readable
from . import thresholds as const
from .failed_deployment import advice_on, remedies
from .findings import Evidence, Finding, Remedy
from .idle_scaling import idle_scaling
from .starts import scale_outs
from .thresholds import FILLS_A_CPU, OF_LOAD_TEST, PROPORTION
from .view import TrackedMetric, VariantView

SATURATED = "instances saturated"
_ROOT = ("ModelLatency high", SATURATED)
_MEASURE_AGAIN = "at most; measure it again with a load test"
_HOLD = Remedy("instances.min", "keeps instances running instead of requesting them at the peak")
#: Reasons for which instances that run already help.
_HELD = ("capacity", "updating")


def saturated(view: VariantView) -> Iterator[Finding]:
    """The reason why the fleet was full while the model was slow: one finding, where it was full."""
    if view.full:
        yield _reason(view, view.bad_times)


def reason_of_saturation(view: VariantView, times: list[datetime]) -> Finding:
    """The same of times that are known to be full by something else, such as errors."""
    return _reason(view.within(times), times)


def full_path(view: VariantView) -> tuple[str, ...]:
    """Where the path of a finding about full instances begins."""
    return _ROOT if view.slow_times else _ROOT[1:]


def _cause(
    view: VariantView, id: str, *words: Evidence | str, risk: str = "", **more: Any
) -> Finding:
    """A cause after what shows that the instances were full; a risk is known by something else."""
    seen = [] if risk or not view.full else [*view.slow_evidence(), view.full]
    root = (risk,) if risk else full_path(view)
    return view.cause(id, *seen, *words, root=root, risk=bool(risk), **more)


def _reason(view: VariantView, times: list[datetime]) -> Finding:
    scaling, used = view.variant.scaling, view.utilization(times)
    needed = view.needed_instances(times)
    if "GPU" in used and used["GPU"] < const.IDLE_PERCENT <= used.get("CPU", 0):
        words = f"GPU at {used['GPU']:.0f} % while CPU at {used['CPU']:.0f} %"
        return _cause(view, "LLD108", words, times=times)
    if scaling is None or (scaling.maximum is None and view.variant.inference_components):
        more = instances_remedy(view, "instances.min", needed, times, "more at all times")
        why = "if the fleet scales and is at its maximum"
        room = instances_remedy(view, "instances.max", needed, times, why)
        return _cause(view, "LLD101", first=[more, room, *_larger_type(view, times)])
    if scaling.maximum is None:
        more = instances_remedy(
            view, "instances.min", needed, times, "until scaling acts, and room for it"
        )
        return _cause(view, "LLD105", first=[more], more=_larger_type(view, times))
    if scaling.scale_out_suspended:
        names = {"endpoint": view.measurements.endpoint, "name": view.variant.name}
        more = instances_remedy(view, "instances.min", needed, times, "until scaling acts again")
        return _cause(view, "LLD106", first=[more], more=_larger_type(view, times), **names)
    near = times[0] - const.SCALING_REACTS, times[-1] + view.period
    if failed := [a for a in view.variant.activities if a.failed and near[0] <= a.start <= near[1]]:
        return _failed(view, failed)
    serving = view.instances.only(times).median
    if (
        (view.variant.current_instances or 0) >= scaling.maximum
        if serving is None
        else serving >= scaling.maximum - 0.5
    ):
        return _maximum(view, scaling.maximum, times)
    return _never_acts(view, scaling) or _too_slow(view, scaling, times, needed)


def target_too_low(view: VariantView) -> Iterator[Finding]:
    """What was measured contradicts the target: then nothing else is judged by it."""
    stated, times = view.stated, view.mistyped
    load, used = view.load.only(times).median, max(view.utilization(times).values(), default=0.0)
    if not stated or not times or not load:
        return
    most, minute = load * max(1.0, const.ADVISED_PERCENT / (used or 100)), 60 * stated.target
    typed = load / 2 <= minute <= 1.5 * most
    right = minute if typed else float(f"{most:.2g}")
    yield view.cause(
        "LLD109",
        f"{stated.words(load)}, with {view.utilization_words(times)} and "
        f"{readable(view.in_work(times) or 0, 2)} requests in progress on an instance",
        Evidence(
            f"{readable(stated.target)} a second is {minute:,.0f} a minute, the metric's unit"
            if typed
            else f"the measurements fit a target of up to {right:,.0f} a minute"
        ),
        times=times,
        tps=plain_number(right / 60, 3),
        target=f"{right:.0f}",
    )


def _never_acts(view: VariantView, scaling: ScalingReading, risk: str = "") -> Finding | None:
    """Nothing came of the policy, though it has something to do or never can."""
    idle = idle_scaling(view, scaling, full=not risk)
    if idle is None:
        return None
    return _cause(
        view,
        idle.id,
        idle.evidence,
        risk=risk,
        confidence=idle.confidence,
        next_step=idle.next_step,
    )


def at_the_limit(view: VariantView) -> Iterator[Finding]:
    """Latency is fine, but the next rise will find no more instances."""
    scaling = view.variant.scaling
    if scaling is None or scaling.maximum is None or view.mistyped:
        return
    if stuck := _never_acts(view, scaling, risk="scaling activities"):
        yield stuck
    elif failed := [activity for activity in view.variant.activities if activity.failed]:
        yield _failed(view, failed, risk="scaling activities")
    elif view.tracked:
        slow = {*view.slow_times, *view.explained}  # these have a cause already
        times = [
            t
            for t in view.tracked.times_above()
            if t not in slow and view.instances.points.get(t, 0) >= scaling.maximum - 0.5
        ]
        if len(times) >= const.PERIODS:
            yield _maximum(view, scaling.maximum, times, risk="instances at their maximum")


def _failed(view: VariantView, failed: list[Activity], risk: str = "") -> Finding:
    failed = sorted(failed, key=lambda a: a.start)
    last, count = failed[-1], len(failed)
    sentence = last.message or last.description
    reason = read_failure(sentence)
    said = f"{count} scaling activities failed" if count > 1 else "a scaling activity failed"
    means = f", {reason.kind.means}" if reason.kind else ""
    shown = Evidence(f'{said}{means}: "{sentence}"', failed[0].start, last.end or last.start)
    changes = remedies(reason, updating=False)
    if reason.kind and reason.kind.name in _HELD:
        changes.append(_HOLD)
    return _cause(view, "LLD103", shown, first=changes, risk=risk, advice=advice_on(reason))


def _maximum(view: VariantView, maximum: int, times: list[datetime], risk: str = "") -> Finding:
    needed, tracked = view.needed_instances(times), view.tracked
    peak = tracked.peak(times) if tracked else None
    parts = [f"all {maximum} instances that scaling allows were serving"]
    if maximum == 1:
        parts = ["the one instance that scaling allows was serving"]
    if tracked and peak is not None:
        parts.append(f"up to {tracked.words(peak)}")
    if refused := [a for a in view.variant.activities if "AlreadyAtMaxCapacity" in a.not_scaled]:
        parts.append(f"scaling reported AlreadyAtMaxCapacity {len(refused)} times")
    # Full at a load below the target: the target says nothing of how many would do.
    below = None if risk or not tracked or peak is None or peak >= 0.95 * tracked.target else peak
    by_utilization = view.instances_by_utilization(times)
    why = "serves the load of this window at the scaling target"
    if below is not None or (needed and needed == by_utilization):
        needed, why = by_utilization, ""
    if (needed or 0) <= maximum:
        needed, why = maximum + 1, "at least: one more than the present maximum"
    changes = [instances_remedy(view, "instances.max", needed, times, why)]
    if tracked and below is not None:
        why = f"{_MEASURE_AGAIN}: scaling waits for a load that full instances never reach"
        changes.append(target_remedy(view, tracked, times, why))
    plan, tps = view.measurements.plan, view.tps.only(times).max
    if plan and plan.peak_tps and tps and tps > plan.peak_tps:
        parts.append(f"up to {tps:,.0f} requests a second, planned for {plan.peak_tps:,.0f}")
        changes.insert(0, peak_remedy(view, tps))
    changes += _larger_type(view, times)
    return _cause(view, "LLD102", "; ".join(parts), times=times, first=changes, risk=risk)


def _larger_type(view: VariantView, times: list[datetime]) -> list[Remedy]:
    """A larger type in a smaller fleet, AWS's other advice, where requests fill the instances."""
    if unfilled(view, times):
        return []
    facts = view.variant.facts
    larger = next_larger(facts) if facts else None
    such = f", such as {larger}," if larger else ""
    why = f"or a larger type{such} in a smaller fleet"
    if facts and not larger:
        why = f"or a more powerful type: {facts.name} is the largest of its family"
    return [Remedy("instance_type", f"{why}; `low-latency recommend` compares types")]


def _too_slow(
    view: VariantView, scaling: ScalingReading, times: list[datetime], needed: int | None
) -> Finding:
    """Below the maximum: a spike, a lag, or a target that never asks for more."""
    peak, usual, tracked = view.tps.only(times).max, view.tps.median, view.tracked
    most = tracked.peak(times) if tracked else None
    if tracked and most is not None and most <= const.PASSED * tracked.target:
        return _target_not_reached(view, tracked, most, times)
    if tracked and tracked.concurrency:
        why = f"lower than {readable(tracked.target)}: headroom on each instance"
        headroom, faster = Remedy("scaling.concurrency_target", why), []
    else:
        headroom = Remedy("throughput.safety_factor", "lower: headroom on each instance")
        why = "detects a rise in 10 s instead of 60 s"
        faster = [Remedy("scaling", why, "{metric: concurrency, concurrency_target: ...}")]
    if (
        peak
        and usual
        and peak >= const.SPIKE * usual
        and times[-1] - times[0] < const.SCALING_REACTS
    ):
        why = "the only change that helps in the first minutes of a spike"
        more = instances_remedy(view, "instances.min", needed, times, why)
        words = (
            f"{peak:,.0f} requests a second in the spike, {usual:,.0f} in the median of the window"
        )
        return _cause(view, "LLD601", words, times=times, first=[more, headroom, *faster])
    near, asked = ((times[0] - view.period, times[-1] + const.SCALING_REACTS), "no scale-out yet")
    outs = [start.start for start in scale_outs(view) if near[0] <= start.start <= near[1]]
    if outs:
        asked = f"scaling requested the first instances at {view.measurements.clock(outs[0])}"
    if tracked and most:
        asked = f"up to {tracked.words(most)}; {asked}"
    if scaling.scale_out_cooldown and scaling.scale_out_cooldown > 60:
        why = f"now {readable(scaling.scale_out_cooldown)} s"
        faster.append(Remedy("scaling.scale_out_cooldown", why, "60s"))
    confidence = "high" if outs else "medium"
    changes = [*faster, headroom]
    return _cause(view, "LLD104", asked, times=times, confidence=confidence, first=changes)


def _target_not_reached(
    view: VariantView, tracked: TrackedMetric, most: float, times: list[datetime]
) -> Finding:
    """LLD107: lower the target, and until it is measured keep more instances."""
    changes = [target_remedy(view, tracked, times, _MEASURE_AGAIN)]
    if changes[0].value and not tracked.concurrency:
        why = "lower: more instances for the same load"
        changes.append(Remedy("throughput.safety_factor", why))
    # The target says nothing of how many would do.
    needed = view.instances_by_utilization(times)
    why = "until then"
    serving = round(view.instances.only(times).max or 0)
    if needed is not None and needed <= serving:
        needed = serving + 1
        why = "until then, at least: one more than were full"
    changes.append(instances_remedy(view, "instances.min", needed, times, why))
    words = (
        f"only {tracked.words(most)} when the instances were full: scaling had no reason to add any"
    )
    return _cause(view, "LLD107", words, times=times, first=changes)


#: As few as a plan takes, where CloudWatch names no zones.
_ZONES = ("use1-az1", "use1-az2")
_MEASURE = "measure with a load test what one instance can serve"
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
            "at least: full instances do not show the whole demand"
            if view.used_up(times)
            else "at 60 to 70 % utilization, as AWS advises"
        )
        why = f"{why}; {bound}" if why else bound
    if key == "instances.min":
        return view.at_least(needed, why)
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
    view: VariantView, tracked: TrackedMetric, times: list[datetime], why: str
) -> Remedy:
    """What the scaling target follows from, at what full instances held: an upper bound."""
    plan = view.measurements.plan
    key = "scaling.concurrency_target" if tracked.concurrency else "throughput.tps_per_instance"
    held = _held(view, tracked, times)
    if not held:
        return Remedy(key, f"no number: no request was answered; {_MEASURE}")
    if tracked.concurrency:
        value, unit = held, "in flight"
    else:
        value, unit = held / 60, "a second"
    given = float(f"{value:.3g}")
    words = f"full at {readable(given)} {unit}"
    found = None if tracked.concurrency or not plan else plan.tps_per_instance
    if found and value < OF_LOAD_TEST * found:
        words += f" where a load test found {readable(found, 3)}: something else uses the "
        words += f"instances, or each request became heavier; {_AGAIN}"
        return Remedy(key, f"no number: {words}")
    if given >= (tracked.target if tracked.concurrency else found or math.inf):
        return Remedy(key, f"lower than now: {words}; {_AGAIN}")
    if idle := unfilled(view, times):
        return Remedy(key, f"no number: {idle}; {_AGAIN}")
    if not tracked.concurrency:
        peak = max(plan.peak_tps or 0 if plan else 0, view.tps.max or 0)
        doubt = _doubt(view, throughput=_throughput(view, peak, given))
    elif given < 1:
        doubt = "less than one request in flight cannot be a target"
    else:
        scaling = ScalingOptions(metric="concurrency", concurrency_target=given)
        doubt = _doubt(view, scaling=scaling)
    if doubt:
        return Remedy(key, f"no number: {words}, {doubt}; {_MEASURE}")
    return Remedy(key, why, plain_number(given))


def _held(view: VariantView, tracked: TrackedMetric, times: list[datetime]) -> float:
    """The most that an instance held of what scaling tracks: a request that failed is not served."""
    values = tracked.series.only(times)
    if tracked.concurrency:
        return values.max or 0.0
    failed = view.failed_share.points
    return max(
        (value * (1 - failed.get(time, 0.0)) for time, value in values.points.items()), default=0.0
    )


def unfilled(view: VariantView, times: list[datetime]) -> str:
    """Why the requests cannot be what fills the processors; empty where they may be."""
    in_work = view.in_work(times)
    if in_work is None or in_work >= FILLS_A_CPU or not view.used_up(times):
        return ""
    return (
        f"{readable(in_work, 2)} concurrent requests on an instance cannot use the whole CPU: "
        "first find out what else uses it"
    )


def _throughput(view: VariantView, peak_tps: float, tps_per_instance: float) -> dict[str, float]:
    plan = view.measurements.plan
    factor = plan.safety_factor if plan else None
    known = {} if factor is None else {"safety_factor": factor}
    return {"peak_tps": peak_tps, "tps_per_instance": tps_per_instance, **known}


def _doubt(
    view: VariantView,
    *,
    throughput: dict[str, Any] | None = None,
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
        return f"it leads to {needed:,} instances, and the fleet had or may have {seen} at most"
    return ""
