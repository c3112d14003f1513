"""Why SageMaker itself takes long: new instances, pauses between requests, or what callers send."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ...report.numbers import readable
from . import thresholds as const
from .cold_starts import after_starts, colder, warmed
from .findings import Evidence, Finding, Remedy
from .short_slowness import above_limits
from .starts import within_minutes
from .view import VariantView, runs, times_of

_MINUTE = timedelta(minutes=1)


def overhead(view: VariantView) -> Iterator[Finding]:
    """At most one finding."""
    slow = view.slow_of("OverheadLatency")
    if not slow:
        return
    times, shown = times_of(slow), view.slow_evidence(slow)
    if starts := after_starts(view, times):
        words = within_minutes(view, starts)
        new = Evidence(words, starts[0].first, times[-1] + view.period)
        yield view.cause("LLD201", *shown, new, first=[*warmed(starts), *colder(starts, "new")])
        return
    rate = _requests_a_minute(view, runs(times, view.gap))
    everywhere = set(times_of(view.whole.slow_of("OverheadLatency")))
    if pauses := _pauses_before(view, times, everywhere):
        mean = _requests_a_minute(view, [(times[0], times[-1])])
        few = f"; {_rate_words(mean)} in the mean" if mean < const.FEW else ""
        yield view.cause("LLD202", *shown, pauses + few, times=times)
    elif rate <= const.INFREQUENT:
        words = f"{_rate_words(rate)} while overhead was high"
        yield view.cause("LLD202", *shown, words, times=times)
    else:
        yield _while_asked(view, times, shown, rate)


def after_each_pause(view: VariantView) -> Iterator[Finding]:
    """LLD202 where overhead is high for a moment, too short for an alarm, but after most pauses."""
    above = above_limits(view, "OverheadLatency")
    times = times_of(above)
    returns = [time for time, since in _after_pauses(view).items() if since <= view.period]
    slow_returns = set(times).intersection(returns)
    if len(slow_returns) < max(const.PERIODS, const.MOST * len(returns)):
        return
    if pauses := _pauses_before(view, times, set(times)):
        yield view.cause("LLD202", *view.slow_evidence(tuple(above)), pauses, times=times)


def _while_asked(
    view: VariantView, times: list[datetime], shown: tuple[Evidence, ...], rate: float
) -> Finding:
    """What remains, though neither new instances nor pauses explain it."""
    words = f"{_rate_words(rate)}, no new instances before"
    changes = []
    captured = view.measurements.data_capture_percent
    if captured:
        words += f"; data capture records {captured} % of the requests"
        changes.append(Remedy("data_capture.sampling_percentage", f"less than {captured}"))
    if rate < const.FEW:
        why = (
            "AWS names infrequent requests as a cause, and no number: it sends some each minute "
            "while callers send few"
        )
        changes.append(Remedy("warm_up.keep_warm", why))
    return view.cause("LLD203", *shown, words, times=times, first=changes)


def _requests_a_minute(view: VariantView, stretches: list[tuple[datetime, datetime]]) -> float:
    """From the first to the last period of each, with those between them without requests."""
    spans = [(first, last + view.period) for first, last in stretches]
    requests = sum(view.requests.between(start, end).sum for start, end in spans)
    return requests / sum((end - start) / _MINUTE for start, end in spans)


def _rate_words(rate: float) -> str:
    if rate < const.FEW:
        return f"{readable(rate, 2)} requests a minute"
    return f"{readable(rate / 60, 3)} requests a second"


def _pauses_before(view: VariantView, times: list[datetime], everywhere: set[datetime]) -> str:
    """That most slow periods follow pauses, and others are fast, in words; else empty.

    A batch may lie across two periods. What lasts longer needs others that are fast.
    """
    places = _after_pauses(view)
    # What the window begins with is as the rest of it.
    slow = [time for time in times if time in places] or sorted(everywhere & places.keys())
    for longest in (2 * view.period, const.WARMING):
        late = [time for time in slow if places[time] <= longest]
        others = [time for time, since in places.items() if since > longest]
        elsewhere = sum(time in everywhere for time in others)
        is_apart = bool(others) or longest == 2 * view.period
        few = elsewhere <= const.BY_CHANCE * len(others)
        if late and is_apart and few and len(late) >= const.MOST * len(slow):
            return (
                f"{len(late)} of {max(len(times), len(slow))} slow periods follow pauses without requests that are at "
                "least as long"
            )
    return ""


def _after_pauses(view: VariantView) -> dict[datetime, timedelta]:
    """How long ago requests came back, by period with requests; the longest where no pause was so long.

    Left out are the first periods of a window that begins with requests: a pause may be before it.
    """
    m, counts = view.measurements, view.requests.points
    places: dict[datetime, timedelta] = {}
    pause = asked = timedelta(0)
    known = False
    time = m.start
    while time < m.end:
        if counts.get(time, 0) > 0:
            asked += view.period
            if known or asked > 2 * view.period:
                places[time] = asked if asked <= pause else timedelta.max
        else:
            pause = view.period if asked else pause + view.period
            asked, known = timedelta(0), True
        time += view.period
    return places
