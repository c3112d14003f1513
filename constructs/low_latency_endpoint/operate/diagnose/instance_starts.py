"""When new instances began to serve, and why: the starts that explain slow minutes after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from .measurements import Activity
from .view import WARMING, VariantView

#: Share of slow periods that must lie after the starts for these to explain them.
MOST = 0.8


@dataclass(frozen=True, slots=True, order=True)
class Start:
    """New instances served from ``first`` on, and until ``last`` more of them came."""

    first: datetime
    last: datetime
    why: str

    @property
    def deployment(self) -> bool:
        """Whether a deployment replaced the fleet."""
        return self.why.startswith("the deployment")


def instance_starts(view: VariantView) -> list[Start]:
    """All starts of the window, the earliest first.

    Deployments and scaling activities say why. Instances that came without either, say by
    UpdateEndpointWeightsAndCapacities, show in the count of those that serve, and in metrics per
    instance.
    """
    found = [
        Start(each.time, each.done, f"the deployment of {each.configuration}")
        for each in view.measurements.deployments
    ]
    told = [(each.first, each.last) for each in found]
    for activity in scale_outs(view):
        served = activity.end or activity.start
        found.append(Start(served, served, f"the scale-out to {activity.capacity} instances"))
        told.append((activity.start, served))
    counted = [
        Start(rise.time, rise.time, f"the rise from {rise.few} to {rise.more} instances")
        for rise in view.whole.rises
    ]
    for start in (*counted, *_first_seen(view)):
        if not any(first - WARMING <= start.first <= last + WARMING for first, last in told):
            found.append(start)
            told.append((start.first, start.last))
    return sorted(found)


def after_starts(view: VariantView, slow: list[datetime]) -> list[Start]:
    """The starts that explain slow periods: these follow them closely; none, when they do not."""
    all_starts = instance_starts(view)
    explained: dict[Start, int] = {}
    for time in slow:
        for start in reversed(all_starts):
            if start.first - view.period < time <= start.last + WARMING:
                explained[start] = explained.get(start, 0) + 1
                break
    if not explained or sum(explained.values()) < MOST * len(slow):
        return []
    for start in explained:
        # Slow before it already: then it is no consequence, whatever came after.
        lead = [t for t in slow if start.first - 5 * view.period <= t <= start.first - view.period]
        if len(lead) >= 2:
            return []
    return sorted(explained)


def scale_outs(view: VariantView) -> list[Activity]:
    """Successful activities that added instances."""
    found = []
    for each in sorted(view.activities, key=lambda activity: activity.start):
        if each.status not in ("Successful", "InProgress", "Overridden"):
            continue
        if each.capacity is None or "scale in" in each.cause.lower():
            continue
        before = _capacity_before(view, each)
        # Begun before the window: then the alarm's name is all there is.
        rose = "alarmhigh" in each.cause.lower() if before is None else each.capacity > before
        if rose:
            found.append(each)
    return found


def _capacity_before(view: VariantView, activity: Activity) -> float | None:
    earlier = [
        a
        for a in view.activities
        if a.start < activity.start and a.capacity is not None and not a.failed
    ]
    if earlier:
        return max(earlier, key=lambda a: a.start).capacity
    # The period in which it began may hold the new instances already.
    seen = view.whole.instances.between(
        activity.start - timedelta(minutes=15), activity.start - view.period + timedelta.resolution
    )
    return round(seen.points[seen.times[-1]]) if seen else None


def _first_seen(view: VariantView) -> Iterator[Start]:
    for name, time in sorted(view.whole.arrivals.items(), key=lambda item: item[1]):
        yield Start(time, time, f"the start of {name}")
