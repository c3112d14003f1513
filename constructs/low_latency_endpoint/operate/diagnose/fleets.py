"""The two fleets of an update under way: what answers, and since when callers meet the new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from ...account.metrics import MetricSeries, Series, statistic_of
from .view import VariantView


@dataclass(frozen=True, slots=True)
class Fleets:
    """A variant while a new fleet takes requests from the one that serves.

    ``new`` and ``old`` are ``None`` where CloudWatch does not have that fleet's metrics apart: by
    configuration, else by instances, which came since or were there.
    """

    name: str  # of the new fleet's configuration
    serving: str
    since: datetime  # the first period in which requests may have reached the new fleet
    new: VariantView | None
    old: VariantView | None

    @property
    def apart(self) -> bool:
        return self.new is not None and self.old is not None


def fleets_of(view: VariantView) -> Fleets | None:
    """The fleets of the update under way; ``None`` without one, and while only the old one is asked."""
    update = view.measurements.update
    if update is None:
        return None
    renamed = update.configuration not in ("", update.serving)
    new = _of_configuration(view, update.configuration) if renamed else None
    old = _of_configuration(view, update.serving) if new is not None else None
    if new is None and update.begun is not None:
        if update.update.stage == "Creating" or (renamed and _answers_all(view, update.serving)):
            return None
        new, old = _by_instances(view, update.begun)
    if new is not None:
        return Fleets(update.configuration, update.serving, asked(new)[0], new, old)
    if update.begun is None:
        return None
    return Fleets(update.configuration, update.serving, aligned(view, update.begun), None, None)


def come_since(view: VariantView, time: datetime) -> set[str]:
    """The instances that were not there before, where CloudWatch has metrics of each."""
    return {name for name, seen in view.whole.arrivals.items() if seen >= aligned(view, time)}


def aligned(view: VariantView, time: datetime) -> datetime:
    """The start of the period that contains the time."""
    m = view.measurements
    return m.start + (time - m.start) // m.period * m.period


def asked(view: VariantView) -> list[datetime]:
    """When requests came, in order."""
    requests = view.get("Invocations", "Sum")
    return [time for time in requests.times if requests.points[time] > 0]


def _of_configuration(view: VariantView, configuration: str) -> VariantView | None:
    return _fleet(view, view.variant.fleets.get(configuration, {}))


def _fleet(view: VariantView, series: MetricSeries) -> VariantView | None:
    """A fleet as a variant of its own, if it was asked anything."""
    fleet = VariantView(view.measurements, replace(view.variant, series=series))
    return fleet if asked(fleet) else None


def _by_instances(
    view: VariantView, begun: datetime
) -> tuple[VariantView | None, VariantView | None]:
    """The instances that came since the update began, and those that were there."""
    instances, new = view.variant.instances, come_since(view, begun)
    if not new or new == instances.keys():
        return None, None
    parts = [of for name, of in instances.items() if name in new]
    others = [of for name, of in instances.items() if name not in new]
    return _fleet(view, _together(parts)), _fleet(view, _together(others))


def _together(parts: list[MetricSeries]) -> MetricSeries:
    """Sums added; of other statistics the mean by requests, between the least and the most of them."""
    weights = [statistic_of(part, "Invocations", "Sum") for part in parts]
    together: dict[tuple[str, str], Series] = {}
    for key in {key for part in parts for key in part}:
        sums: dict[datetime, float] = {}
        counts: dict[datetime, float] = {}
        for part, weight in zip(parts, weights, strict=True):
            for time, value in statistic_of(part, *key).points.items():
                count = 1.0 if key[1] == "Sum" else weight.points.get(time, 0)
                sums[time] = sums.get(time, 0) + value * count
                counts[time] = counts.get(time, 0) + count
        means = {time: value / counts[time] for time, value in sums.items() if counts[time]}
        together[key] = Series(sums if key[1] == "Sum" else means)
    return together


def _answers_all(view: VariantView, configuration: str) -> bool:
    """Whether the fleet's own metrics have each request of the last periods that have any."""
    fleet = _of_configuration(view, configuration)
    if fleet is None:
        return False
    last = asked(view)[-3:]
    counts = [each.get("Invocations", "Sum").only(last) for each in (fleet, view)]
    own, whole = (count.sum for count in counts)
    return own >= whole
