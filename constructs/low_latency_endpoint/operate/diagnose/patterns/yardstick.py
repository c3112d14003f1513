"""What counts as slow when one looks over time, and how many requests it hits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ....account.metrics import Series
from ....report.numbers import milliseconds, percent
from ..findings import Finding
from ..view import VariantView

#: Without a stated limit the endpoint's own fast periods are the measure.
MANY_TIMES = 3.0
#: Requests that are at least this slow when the percentile is.
_SHARES = {"p50": 0.5, "p90": 0.1, "p99": 0.01}


@dataclass(frozen=True, slots=True)
class Judged:
    """One statistic of ModelLatency that the view's other findings leave, and its limit."""

    statistic: str
    series: Series
    limit: float
    stated: bool

    @property
    def slow(self) -> list[datetime]:
        """Periods above the limit, a single one too."""
        return sorted(time for time, value in self.series.points.items() if value > self.limit)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A finding, and the periods that it explains: no other cause is looked for in them.

    ``errors`` says whether it explains server errors too.
    """

    finding: Finding
    explains: frozenset[datetime]
    errors: bool = False


def judged(view: VariantView) -> list[Judged]:
    """Statistics with a stated limit; without any, the highest percentile there is."""
    found = []
    for (metric, statistic), limit in view.variant.thresholds.items():
        series = _left(view, statistic) if metric == "ModelLatency" else Series()
        if series:
            found.append(Judged(statistic, series, limit.value, True))
    if found or view.has_model_threshold:
        return found
    for statistic in ("p99", "p90", "p50", "Average"):
        series = _left(view, statistic)
        if series:
            fast = sorted(series.points.values())[len(series) // 4]
            return [Judged(statistic, series, MANY_TIMES * fast, False)]
    return []


def _left(view: VariantView, statistic: str) -> Series:
    return view.get("ModelLatency", statistic).without(view.explained)


def all_slow(view: VariantView) -> list[datetime]:
    """Periods in which any judged statistic was above its limit."""
    return sorted({time for each in judged(view) for time in each.slow})


def requests(view: VariantView) -> Series:
    return view.get("Invocations", "Sum") or view.get("ModelLatency", "SampleCount")


def share(view: VariantView, times: Iterable[datetime]) -> float:
    """Share of the window's requests that came at these times."""
    counts = requests(view)
    return counts.only(times).sum / counts.sum if counts.sum else 0.0


def kept(view: VariantView, slow: Iterable[datetime]) -> bool:
    """Whether the window as a whole keeps its limits in spite of these slow periods.

    A p99 of 160 ms lets one request in a hundred take longer: it is lost when more of all requests
    did, by the percentiles of each slow period.
    """
    times, counts = set(slow), requests(view)
    for each in judged(view):
        if not each.stated:
            continue
        if each.statistic == "Average":
            mean = each.series.weighted_mean(counts)
            if mean is not None and mean > each.limit:
                return False
        elif each.statistic.startswith("p"):
            allowed = 1 - float(each.statistic[1:]) / 100
            over = sum(counts.points.get(time, 0) * _least_slow(view, time, each) for time in times)
            if counts.sum and over / counts.sum > allowed * 1.000001:
                return False
        elif each.statistic == "Maximum" and times & set(each.slow):
            return False
    # As an alarm sees it: three of five periods.
    return not times & set(view.slow_times)


def _least_slow(view: VariantView, time: datetime, each: Judged) -> float:
    """Share of one period's requests that certainly took longer than the limit."""
    known = {**_SHARES}
    if each.statistic.startswith("p"):
        known[each.statistic] = 1 - float(each.statistic[1:]) / 100
    return max(
        (
            part
            for statistic, part in known.items()
            if view.get("ModelLatency", statistic).points.get(time, 0) > each.limit
        ),
        default=0.0,
    )


def hit_words(view: VariantView, times: Iterable[datetime]) -> str:
    """The share of requests that it hits, in words, and how surely."""
    times = set(times)
    text = f"{percent(share(view, times))} of all requests came then"
    limits = judged(view)
    if not limits:
        return text
    each = limits[0]
    counts = requests(view)
    part = sum(counts.points.get(t, 0) * _least_slow(view, t, each) for t in times)
    known = counts.only(times).sum
    if not part or not known:
        return text
    measure = f"took longer than {milliseconds(each.limit)}"
    return f"{text}; at least {percent(part / known)} of these {measure}"


def then_and_otherwise(view: VariantView, times: Iterable[datetime]) -> str:
    """Latency at these times and otherwise, in words, of the first judged statistic and p50."""
    inside = set(times)
    names = dict.fromkeys([*(each.statistic for each in judged(view)[:1]), "p50"])
    parts = []
    for name in names:
        series = _left(view, name)
        then, rest = series.only(inside).median, series.without(inside).median
        if then is not None and rest is not None:
            parts.append(f"{name} {milliseconds(then)} then, {milliseconds(rest)} otherwise")
    return "; ".join(parts)


def ratio(series: Series, times: Iterable[datetime]) -> float | None:
    """Median at these times over the median of the rest; ``None`` without either."""
    inside = set(times)
    then, rest = series.only(inside).median, series.without(inside).median
    return then / rest if then is not None and rest else None
