"""Use of the hardware where nothing else is wrong: no room for a rise in load, or far too much.

:func:`use_of_hardware` is the start. The limits are those of AWS's post on load testing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...account.metrics import Series
from ...options.throughput import FEWEST_INSTANCES
from ...report.numbers import readable
from . import thresholds as const
from .findings import Evidence, Finding, Remedy
from .saturated import SATURATED, reason_of_saturation
from .slow_container import busy_workers, workers_stated_too_few
from .view import VariantView, runs

_TIMES_OF_PEAKS = timedelta(minutes=5)  # the longest period whose mean shows a busy time


def use_of_hardware(view: VariantView, findings: Sequence[Finding]) -> Iterator[Finding]:
    """At most one risk; ``findings`` are those of the variant, which have their own advice."""
    busy = list(_busy(view, findings))
    yield from busy
    if not busy and not findings:
        yield from _underused(view)


# --- 80 % and more -------------------------------------------------------------------------------


def _busy(view: VariantView, findings: Sequence[Finding]) -> Iterator[Finding]:
    """LLD147, with the changes of what keeps the fleet as small as it is."""
    times = _busy_time(view, findings)
    if not times:
        return
    used = view.utilization(times)
    parts = [f"{name} at {value:.0f} %" for name, value in used.items() if _is_high(value)]
    minutes = len(times) * view.period / timedelta(minutes=1)
    seen = view.over(times, f"{', '.join(parts)} of the whole instance for {readable(minutes)} min")
    reason = reason_of_saturation(view, times)
    full = view.within(times).full
    why = (shown for shown in reason.evidence if shown != full)
    yield view.cause("LLD147", seen, *why, first=reason.changes, risk=True)


def _busy_time(view: VariantView, findings: Sequence[Finding]) -> list[datetime]:
    """The longest time of high use in which nothing else was found; empty where it is too short."""
    if view.variant.has_tokens:
        return []  # a GPU that makes tokens is busy whenever it does; its tokens are judged
    if any(SATURATED in finding.path for finding in findings):
        return []  # the same cause, while requests were still in time
    spans = [finding.span for finding in findings if finding.span]
    slow = set(view.slow_times)
    times = [
        time
        for time in _highest_use(view).times
        if time not in slow and not any(start <= time < end for start, end in spans)
    ]
    used = _highest_use(view).only(times)
    high = [time for time, value in used.points.items() if _is_high(value)]
    stretches = [
        [time for time in high if first <= time <= last]
        for first, last in runs(high, 2 * view.period)
    ]
    longest = max(stretches, key=len, default=[])
    least = const.PERIODS * view.period
    if _may_grow(view, longest):
        least = max(least, 2 * const.SCALING_REACTS)
    return longest if len(longest) * view.period >= least else []


def _is_high(percent: float) -> bool:
    return percent >= const.USED_PERCENT


def _may_grow(view: VariantView, times: list[datetime]) -> bool:
    """Whether scaling may still add instances at these times."""
    scaling = view.variant.scaling
    if scaling is None or scaling.maximum is None or scaling.scale_out_suspended:
        return False
    serving = view.instances.only(times).median or view.variant.current_instances or 0
    return serving < scaling.maximum - 0.5


# --- below 30 % ----------------------------------------------------------------------------------


def _underused(view: VariantView) -> Iterator[Finding]:
    """LLD148: what the busiest time of a window that tells of it needs, and what that saves."""
    busiest = _busiest_if_underused(view)
    if busiest is None or not _tells_of_peaks(view):
        return
    count = round(view.instances.points[busiest])
    needed, why = _needed(view, busiest)
    yield view.cause(
        "LLD148",
        Evidence(_seen(view, busiest, count), view.measurements.start, view.measurements.end),
        Evidence(f"{needed} would do ({why}), which saves {_saving(view, count - needed)}"),
        first=_fewer(view, needed, count),
        risk=True,
    )


def little_use(view: VariantView) -> str:
    """What to look at where this window uses little and does not tell of the busiest time; or nothing."""
    busiest = _busiest_if_underused(view)
    if busiest is None or _tells_of_peaks(view):
        return ""
    m = view.measurements
    return (
        f"{view.variant.name} used little of its instances: {_most_used(view)}. Whether fewer would do "
        f"shows a window with the busiest time in it: `low-latency diagnose {m.endpoint} --since 1d`"
    )


def _busiest_if_underused(view: VariantView) -> datetime | None:
    """The busiest time, if fewer instances would do for it and use is below 30 % in each period."""
    if not _is_measurable(view):
        return None
    used = _highest_use(view)
    work = _work(view)
    if not work or (used.max or 100) >= const.UNDERUSED_PERCENT:
        return None
    busiest = max(work, key=lambda time: work[time])
    needed, _ = _needed(view, busiest)
    return busiest if needed < round(view.instances.points[busiest]) else None


def _work(view: VariantView) -> dict[datetime, float]:
    """Percent of one instance that all of them were used together, in each period."""
    used, serving = _highest_use(view), view.instances
    return {time: serving.points[time] * used.points[time] for time in _both(used, serving)}


def _both(one: Series, other: Series) -> list[datetime]:
    return [time for time in one.times if time in other.points]


def _tells_of_peaks(view: VariantView) -> bool:
    """Whether the window has a day with requests, or the peak that the fleet is planned for."""
    m = view.measurements
    if view.period > _TIMES_OF_PEAKS:
        return False
    planned = m.plan.peak_tps if m.plan else None
    peaks = [time for time, tps in view.tps.points.items() if planned and tps >= planned]
    if len(peaks) >= const.PERIODS:
        return True
    asked = sum(tps > 0 for tps in view.tps.points.values())
    return m.end - m.start >= const.DAY and asked * view.period >= const.ASKED


def _is_measurable(view: VariantView) -> bool:
    """Whether CPU and GPU are all that can be full, and both are published."""
    m, variant, facts = view.measurements, view.variant, view.variant.facts
    if m.update or m.asynchronous or variant.inference_components or view.mistyped:
        return False
    if facts is None or facts.accelerator not in (None, "nvidia"):
        return False  # Neuron has no metric
    if view.get("ModelCacheHit", "Average"):
        return False  # fewer instances hold fewer models
    gpu = view.get("GPUUtilization", "Average")
    if not view.get("CPUUtilization", "Average") or (facts.accelerator and not gpu):
        return False
    times = view.tps.times
    return not busy_workers(view, times) and not workers_stated_too_few(view, times)


def _needed(view: VariantView, busiest: datetime) -> tuple[int, str]:
    """Instances that the busiest time needs, and by which rule."""
    plan, peak = view.measurements.plan, view.tps.max or 0.0
    advised = math.ceil(round(_work(view)[busiest] / const.ADVISED_PERCENT, 6))
    counts = [(advised, "at the 60 to 70 % utilization that AWS advises"), _least(view)]
    if plan and plan.tps_per_instance:
        each = plan.tps_per_instance * (plan.safety_factor or 1.0)
        counts.append((math.ceil(round(peak / each, 6)), "by the throughput of the load test"))
    return max(counts, key=lambda count: count[0])


def _least(view: VariantView) -> tuple[int, str]:
    """The fewest instances of the fleet whatever the load is, and why not fewer."""
    scaling = view.variant.scaling
    if scaling and scaling.maximum is not None and (scaling.minimum or 0) < scaling.maximum:
        return scaling.minimum or 1, "the minimum of scaling"
    zones = max(len(view.variant.zones), len(view.measurements.canary))
    return max(zones, FEWEST_INSTANCES), "one in each zone, and at least two"


def _seen(view: VariantView, busiest: datetime, count: int) -> str:
    """How little was used at most, at which load, and in which hours."""
    m = view.measurements
    asked = sum(tps > 0 for tps in view.tps.points.values()) * view.period
    hours = readable((m.end - m.start) / timedelta(hours=1), 3)
    of_these = readable(asked / timedelta(hours=1), 3)
    words = (
        f"{_most_used(view)} of the whole instance in {hours} h, {of_these} h of them with requests; "
        f"{count} instances at the busiest time, {m.clock(busiest)}, with up to "
        f"{readable(view.tps.max, 3)} requests a second"
    )
    if m.plan and m.plan.peak_tps:
        words += f", planned for {readable(m.plan.peak_tps, 3)}"
    return words


def _most_used(view: VariantView) -> str:
    used = {name: view.get(f"{name}Utilization", "Average").max for name in ("CPU", "GPU")}
    parts = [f"{name} at most {value:.0f} %" for name, value in used.items() if value is not None]
    return ", ".join(parts)


def _saving(view: VariantView, fewer: int) -> str:
    """Instances that are not needed and, where their price is known, dollars."""
    words = f"{fewer} instances" if fewer > 1 else "one instance"
    m, name = view.measurements, view.variant.instance_type
    price = m.prices.get(name)
    if price is None or price.region not in ("", m.region):
        return f"{words} of {name}"
    return f"{words} of {name}: {fewer * price.usd:,.2f} USD an hour (price: {price.origin})"


def _fewer(view: VariantView, needed: int, count: int) -> Iterator[Remedy]:
    """What makes the fleet smaller: its counts, or the target that scaling keeps it at."""
    scaling, tracked = view.variant.scaling, view.tracked
    if scaling is None:
        return
    if scaling.maximum is None or scaling.minimum == scaling.maximum:
        counts = f"{{min: {needed}, initial: {needed}, max: {count}}}"
        yield Remedy("instances", "the present number stays the maximum", counts)
        why = "instances follow the load up to that maximum, once throughput is stated"
        yield Remedy("scaling", why, "{enabled: true}")
    elif tracked and tracked.concurrency:
        why = "higher, as a load test measures it: fewer instances for the same load"
        yield Remedy("scaling.concurrency_target", why)
    elif tracked:
        why = "higher, as a load test measures it: fewer instances for the same load"
        yield Remedy("throughput.tps_per_instance", why)


def _highest_use(view: VariantView) -> Series:
    """Percent of CPU or GPU, whichever is more, in each period."""
    cpu, gpu = (view.get(f"{name}Utilization", "Average").points for name in ("CPU", "GPU"))
    return Series({time: max(used, gpu.get(time, 0.0)) for time, used in cpu.items()})
