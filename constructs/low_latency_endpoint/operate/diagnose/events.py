"""What happened to the endpoint, on one time axis: deployments, scaling activities, alarms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from .measurements import Measurements, VariantReading


@dataclass(frozen=True, slots=True)
class Event:
    """Something on the time axis, for the report."""

    time: datetime
    kind: str
    text: str
    end: datetime | None = None
    state: str = ""  # of the alarms
    names: tuple[str, ...] = ()  # of alarms, configuration or variant
    no_data: bool = False  # whether missing data alone changed the alarms


def events(measurements: Measurements) -> list[Event]:
    """Deployments, scaling activities and alarms on one time axis, within the window."""
    found = []
    for deployed in measurements.deployments:
        name = deployed.configuration
        text = f"{name} ({deployed.how})"
        found.append(Event(deployed.time, "deployment", text, names=(name,)))
    update = measurements.update
    if update and update.begun:
        name, stage = update.configuration or update.serving, update.update.stage
        text = f"{update.update.verb}{f' ({stage})' if stage else ''}"
        found.append(Event(update.begun, "deployment", text, names=(name,)))
    for ended in measurements.taken_back:
        name = ended.configuration
        text = f"{name} (its first request; rolled back to {ended.serving})"
        found.append(Event(ended.start, "deployment", text, ended.end, names=(name,)))
    for variant in measurements.variants:
        found += _scaling(measurements, variant)
    found += _alarms(measurements)
    within = (each for each in found if measurements.start <= each.time <= measurements.end)
    return sorted(within, key=lambda event: event.time)


def _scaling(measurements: Measurements, variant: VariantReading) -> Iterator[Event]:
    """Scaling activities of the window; those that failed one after the other alike are one."""
    within = (a for a in variant.activities if measurements.start <= a.start <= measurements.end)
    ordered = sorted(within, key=lambda activity: activity.start)
    for failure, group in groupby(ordered, key=lambda a: a.message if a.failed else a):
        alike = list(group)
        first, last = alike[0], alike[-1]
        refused = f" Not scaled: {', '.join(first.not_scaled)}." if first.not_scaled else ""
        text = f"{variant.name}: {first.description} {first.status}.{refused}"
        if first.failed and failure:
            text += f" {first.message}"
        if len(alike) > 1:
            text += f" ({len(alike)} times until {measurements.clock(last.start)})"
        yield Event(first.start, "scaling", text, last.end, first.status, (variant.name,))


def _alarms(measurements: Measurements) -> Iterator[Event]:
    """Alarm transitions, one row per minute; an alarm's first evaluation is left out."""
    titles = {
        alarm.name: alarm.title for alarm in measurements.alarms or () if not alarm.of_scaling
    }
    rows: dict[tuple[datetime, str, bool], list[str]] = {}
    for each in sorted(measurements.transitions, key=lambda each: each.time):
        first = each.state == "OK" and each.before == "INSUFFICIENT_DATA"
        if each.alarm in titles and not first:
            row = each.time.replace(second=0, microsecond=0), each.state, each.no_data
            rows.setdefault(row, []).append(each.alarm)
    for (time, state, silent), names in rows.items():
        shown = ", ".join(dict.fromkeys(titles[name] for name in names))
        text = f"{state}{', without data' if silent else ''}: {shown}"
        yield Event(time, "alarm", text, None, state, tuple(names), silent)
