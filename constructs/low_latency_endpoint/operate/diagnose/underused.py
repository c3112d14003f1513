"""LLD148: instances that are hardly used, and how few, or which smaller ones, would do.

:func:`underused` is the start. The limits are those of AWS's post on load testing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from ...account.metrics import Series
from ...errors.shell_words import shell_word
from ...facts.instance_types import InstanceFacts, smaller_types
from ...facts.prices import Price
from ...options.throughput import FEWEST_INSTANCES
from ...report.numbers import readable
from . import thresholds as const
from .findings import Evidence, Finding, Remedy
from .slow_container import busy_workers, workers_stated_too_few
from .view import VariantView

_TIMES_OF_PEAKS = timedelta(minutes=5)  # the longest period whose mean shows a busy time
_COMPARES = "`low-latency recommend` compares types"


def underused(view: VariantView) -> Iterator[Finding]:
    """LLD148: what the busiest time of a window that tells of it needs, and what that saves."""
    busiest = _busiest_if_underused(view)
    if busiest is None or not _tells_of_peaks(view):
        return
    count = round(view.instances.points[busiest])
    needed, why = _needed(view, busiest)
    smaller = _smaller_type(view, busiest)
    if needed < count:
        would_do = f"{needed} would do ({why}), which saves {_saving(view, count - needed)}"
        or_smaller = Remedy("instance_type", f"or a smaller type; {_COMPARES}")
        changes = [*_fewer(view, needed, count), or_smaller]
    elif smaller:
        would_do = _of_smaller_type(view, busiest, smaller)
        changes = [Remedy("instance_type", f"load-test it first; {_COMPARES}", smaller.name)]
    else:
        return
    yield view.cause(
        "LLD148",
        Evidence(_seen(view, busiest, count), view.measurements.start, view.measurements.end),
        Evidence(would_do),
        first=changes,
        risk=True,
    )


def little_use(view: VariantView) -> str:
    """What to look at where little is used, and why this is no finding; or nothing.

    The window may not have the busiest time, or the memory keeps a small fleet from a smaller type.
    """
    busiest = _busiest_if_underused(view)
    if busiest is None:
        return ""
    m, used = (
        view.measurements,
        f"{view.variant.name} used little of its instances: {_most_used(view)}.",
    )
    needed, _ = _needed(view, busiest)
    if needed >= round(view.instances.points[busiest]) and not _smaller_type(view, busiest):
        full = _too_full(view, busiest)
        return f"{used} {full}" if full else ""
    if _tells_of_peaks(view):
        return ""
    return (
        f"{used} Whether fewer or smaller ones would do shows a window with the busiest time in it: "
        f"`low-latency diagnose {shell_word(m.endpoint)} --since 1d`"
    )


def _too_full(view: VariantView, busiest: datetime) -> str:
    """What would be too full on the next smaller type; empty where there is none, or it is not known."""
    facts = view.variant.facts
    smaller = smaller_types(facts) if facts else []
    if not smaller or view.instances.points[busiest] > _fewest_for_zones(view):
        return ""
    largest = smaller[-1]
    parts = {"CPU": _cpu_on(view, busiest, largest), "memory": _memory_on(view, largest)}
    full = [
        f"{name} at {percent:.0f} %"
        for name, percent in parts.items()
        if const.ADVISED_PERCENT < percent < math.inf
    ]
    if not full:
        return ""
    return f"The next smaller type, {largest.name}, has no room: {' and '.join(full)} there."


def _busiest_if_underused(view: VariantView) -> datetime | None:
    """The busiest time, if use is below 30 % in each period."""
    if not _is_measurable(view):
        return None
    used = highest_use(view)
    work = _work(view)
    if not work or (used.max or 100) >= const.UNDERUSED_PERCENT:
        return None
    return max(work, key=lambda time: work[time])


def _smaller_type(view: VariantView, busiest: datetime) -> InstanceFacts | None:
    """The smallest type on which a fleet that may not be smaller has room for the busiest time."""
    facts = view.variant.facts
    if facts is None or view.instances.points[busiest] > _fewest_for_zones(view):
        return None
    for other in smaller_types(facts):
        used = max(_cpu_on(view, busiest, other), _memory_on(view, other))
        if used <= const.ADVISED_PERCENT:
            return other
    return None


def _cpu_on(view: VariantView, busiest: datetime, other: InstanceFacts) -> float:
    """Percent of the other type's CPU that the busiest time would use; infinite where not known."""
    facts = view.variant.facts
    if not facts or not facts.vcpus or not other.vcpus:
        return math.inf
    used = view.get("CPUUtilization", "Average").points[busiest]
    return used * facts.vcpus / other.vcpus


def _memory_on(view: VariantView, other: InstanceFacts) -> float:
    """Percent of the other type's memory that the window used at most; infinite where not known."""
    facts, used = view.variant.facts, view.get("MemoryUtilization", "Average").max
    if not facts or not facts.memory_gib or not other.memory_gib or used is None:
        return math.inf
    return used * facts.memory_gib / other.memory_gib


def _of_smaller_type(view: VariantView, busiest: datetime, smaller: InstanceFacts) -> str:
    """How full the smaller type would be, and what it saves where both prices are known."""
    words = (
        f"{smaller.name} would do: its {smaller.vcpus} vCPUs at {_cpu_on(view, busiest, smaller):.0f} % "
        f"in the busiest time, and memory at {_memory_on(view, smaller):.0f} %"
    )
    count = round(view.instances.points[busiest])
    present = _price(view, view.variant.instance_type)
    price = _price(view, smaller.name)
    if present is None or price is None:
        return words
    saved = count * (present.usd - price.usd)
    return f"{words}, which saves {saved:,.2f} USD an hour (price: {price.origin})"


def _work(view: VariantView) -> dict[datetime, float]:
    """Percent of one instance that all of them were used together, in each period."""
    used, serving = highest_use(view), view.instances
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
    return _fewest_for_zones(view), "one in each zone, and at least two"


def _fewest_for_zones(view: VariantView) -> int:
    zones = max(len(view.variant.zones), len(view.measurements.canary))
    return max(zones, FEWEST_INSTANCES)


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
    name = view.variant.instance_type
    price = _price(view, name)
    if price is None:
        return f"{words} of {name}"
    return f"{words} of {name}: {fewer * price.usd:,.2f} USD an hour (price: {price.origin})"


def _price(view: VariantView, name: str) -> Price | None:
    """The price of a type in this Region."""
    price = view.measurements.prices.get(name)
    return price if price and price.region in ("", view.measurements.region) else None


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


def highest_use(view: VariantView) -> Series:
    """Percent of CPU or GPU, whichever is more, in each period."""
    cpu, gpu = (view.get(f"{name}Utilization", "Average").points for name in ("CPU", "GPU"))
    return Series({time: max(used, gpu.get(time, 0.0)) for time, used in cpu.items()})
