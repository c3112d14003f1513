"""A pattern over time: what counts as slow in it, and how many requests it hits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ....account.metrics import Series
from ....report.numbers import milliseconds, percent
from ..findings import Finding
from ..thresholds import MANY_TIMES, SAME_LOAD
from ..view import VariantView

MINUTE = timedelta(minutes=1)
CONTAINER_ERRORS = ("Invocation5XXErrors", "InvocationModelErrors")


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

    @property
    def allowed(self) -> float | None:
        """Share of the requests that may take longer: 1 % by a p99; ``None`` of no percentile."""
        return 1 - float(self.statistic[1:]) / 100 if self.statistic.startswith("p") else None


@dataclass(frozen=True, slots=True)
class Matched:
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
        if series := _left(view, statistic):
            answered = series.without(view.refusing) or series
            fast = sorted(answered.points.values())[len(answered) // 4]
            return [Judged(statistic, series, MANY_TIMES * fast, False)]
    return []


def _left(view: VariantView, statistic: str) -> Series:
    return view.get("ModelLatency", statistic).without(view.explained)


def all_slow(view: VariantView) -> list[datetime]:
    """Periods in which any judged statistic was above its limit."""
    return sorted({time for each in judged(view) for time in each.slow})


def share(view: VariantView, times: Iterable[datetime]) -> float:
    """Share of the window's requests that came at these times."""
    counts = view.requests
    return counts.only(times).sum / counts.sum if counts.sum else 0.0


def kept(view: VariantView, slow: Iterable[datetime]) -> bool:
    """Whether the window as a whole keeps its limits in spite of these slow periods.

    A p99 of 160 ms lets one request in a hundred take longer: it is lost when more of all requests
    did, by the percentiles of each slow period.
    """
    times, counts = set(slow), view.requests
    for each in judged(view):
        if not each.stated:
            continue
        if each.statistic == "Average":
            mean = each.series.weighted_mean(counts)
            if mean is not None and mean > each.limit:
                return False
        elif each.allowed is not None:
            over = view.late_requests("ModelLatency", each.statistic, each.limit, times)
            if counts.sum and over / counts.sum > each.allowed * 1.000001:
                return False
        elif each.statistic == "Maximum" and times & set(each.slow):
            return False
    # As an alarm sees it.
    return not times & set(view.slow_times)


def hit_words(view: VariantView, times: Iterable[datetime]) -> str:
    """The share of requests that it hits, in words, and how surely."""
    times = set(times)
    text = f"{percent(share(view, times))} of all requests arrived then"
    if each := slowest(view, times):
        part = view.late_requests("ModelLatency", each.statistic, each.limit, times)
        known = view.requests.only(times).sum
        if part and known:
            measure = f"took longer than {milliseconds(each.limit)}"
            text += f"; at least {percent(part / known)} of these {measure}"
    return text


def then_and_otherwise(view: VariantView, times: Iterable[datetime]) -> str:
    """Latency at these times and otherwise, in words, of the slowest statistic and p50."""
    parts, times = [], set(times)
    worst = slowest(view, times)
    for name in dict.fromkeys([*([worst.statistic] if worst else []), "p50"]):
        then, rest = _medians(_comparable(view, _left(view, name), times), times)
        if then is not None and rest is not None:
            parts.append(f"{name} {milliseconds(then)} then, {milliseconds(rest)} otherwise")
    return "; ".join(parts)


def ratio(series: Series, times: Iterable[datetime]) -> float | None:
    """Median at these times over the median of the rest; ``None`` without either."""
    then, rest = _medians(series, times)
    return then / rest if then is not None and rest else None


def _medians(series: Series, times: Iterable[datetime]) -> tuple[float | None, float | None]:
    inside = set(times)
    return series.only(inside).median, series.without(inside).median


def slowest(view: VariantView, times: Iterable[datetime]) -> Judged | None:
    """The judged statistic that is the most times slower at these times than otherwise."""
    inside = set(times)
    return max(judged(view), key=lambda each: _slower(view, each, inside), default=None)


def slower(view: VariantView, times: Iterable[datetime]) -> float:
    """How many times slower that one is; 0 without data."""
    inside = set(times)
    return max((_slower(view, each, inside) for each in judged(view)), default=0)


def _slower(view: VariantView, each: Judged, inside: set[datetime]) -> float:
    return ratio(_comparable(view, each.series, inside), inside) or 0


def _comparable(view: VariantView, series: Series, inside: set[datetime]) -> Series:
    """Without periods outside that may look fast for what they refuse."""
    return series.without(view.refusing - inside)


def load_then(view: VariantView, times: Iterable[datetime]) -> float | None:
    """How many times the load at these times is that of the rest."""
    return ratio(view.load or view.requests, times)


def load_words(load: float | None, more: str = "") -> str:
    """Whether the load is what makes it slow."""
    if load is None or load < SAME_LOAD:
        return "the load is the same as at other times"
    return f"{load:.1f} times the load then{more}"


def same_load(before: float | None, after: float | None) -> bool:
    return bool(before and after and 1 / SAME_LOAD <= after / before <= SAME_LOAD)
