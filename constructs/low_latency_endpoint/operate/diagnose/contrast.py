"""What rose and what fell with latency, and when it rose: the slow periods against the fast ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from ...account.metrics import Series
from ...report.numbers import milliseconds, readable
from . import thresholds as const
from .cold_starts import was_fast_at_first
from .findings import Evidence, Finding
from .starts import instance_starts
from .view import VariantView, runs


@dataclass(frozen=True, slots=True)
class Contrast:
    """When a statistic took more than half of what it does when slow, and when less."""

    view: VariantView
    latency: Series
    worse: list[datetime]
    calm: list[datetime]

    @property
    def known(self) -> bool:
        """Whether the endpoint was fast for long enough to compare with."""
        return len(self.calm) >= const.PERIODS

    def times(self, series: Series) -> float:
        """How many times as high it was when worse; 1 where nobody knows."""
        high, low = series.only(self.worse).median, series.only(self.calm).median
        return high / low if high is not None and low else 1.0

    @property
    def rate(self) -> float:
        """How many times as many requests an instance got."""
        return self.times(self.view.load or self.view.tps)

    @property
    def used(self) -> dict[str, float]:
        """How many times as busy the processors were, by kind."""
        series = {name: self.view.get(f"{name}Utilization", "Average") for name in ("CPU", "GPU")}
        return {name: self.times(values) for name, values in series.items() if values}

    @property
    def most_used(self) -> float:
        """The same of what rose most; 1 where nobody knows."""
        return max(self.used.values(), default=1.0)

    @property
    def flight(self) -> float:
        """How many times as many requests were in flight."""
        return self.times(self.view.in_flight)

    @property
    def words(self) -> str:
        """What rose and fell with latency; empty where it was never fast."""
        if not self.known:
            return ""
        parts = [f"{readable(times, 2)} times the {name}" for name, times in self.used.items()]
        if self.view.in_flight:
            parts.append(f"{readable(self.flight, 2)} times the requests in flight")
        return ", ".join([f"{readable(self.rate, 2)} times the rate", *parts])


def contrast(view: VariantView, statistic: str = "") -> Contrast:
    """The slow periods of this view against the fast ones of its whole window, by what is typical."""
    # Another slow time window may have another cause.
    elsewhere = set(view.whole.slow_times) - set(view.slow_times)
    series = view.get("ModelLatency", statistic) if statistic else view.typical
    latency = series.without(elsewhere)
    half = (latency.only(view.slow_times).median or 0) / 2
    fast = [time for time in latency.times if latency.points[time] <= half]
    calm = [time for time in fast if time not in view.refusing]
    worse = [time for time in view.slow_times if time not in set(fast)]
    return Contrast(view, latency, worse, calm)


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """Latency rose from ``first`` to ``last`` at once and at the same load, and the fleet was the same."""

    view: VariantView
    statistic: str
    first: datetime
    last: datetime
    high: float
    low: float

    @property
    def evidence(self) -> Evidence:
        """When it rose and fell, and that no deployment or start of an instance explains it."""
        m, view = self.view.measurements, self.view
        apart = len(runs(view.slow_times, const.PERIODS * view.period))
        until = "on" if self._goes_on else f"to {m.clock(self.last)}"
        among = f", in {apart} stretches" if apart > 1 else ""
        words = (
            f"{self.statistic} {milliseconds(self.high)} from {m.clock(self.first)} {until}{among}, "
            f"{milliseconds(self.low)} "
        )
        words += (
            f"otherwise; nothing was deployed at {m.clock(self.time)}, and no instances started"
        )
        return Evidence(words, self.first, self.last + view.period)

    @property
    def _goes_on(self) -> bool:
        return self.view.measurements.end - self.last <= const.PERIODS * self.view.period

    @property
    def time(self) -> datetime:
        """When it changed: as it rose, or as it fell where it was slow from the beginning."""
        view = self.view
        begun = self.first - view.measurements.start < const.PERIODS * view.period
        return self.last + view.period if begun else self.first

    @property
    def question(self) -> str:
        """What to ask first."""
        clock = self.view.measurements.clock(self.time)
        return (
            f"What changed at {clock}? Look at the container's log of that minute, at what the "
            "container calls, and at the requests (their length, type and callers)."
        )


def step(view: VariantView) -> LatencyStep | None:
    """When the typical request, or else the slowest ones, became slow; ``None`` if not at one time."""
    for statistic in ("p50", "p99", "Average"):
        rise = _step(contrast(view, statistic), statistic)
        if rise is not None:
            return rise
    return None


def _step(compared: Contrast, statistic: str) -> LatencyStep | None:
    view, worse = compared.view, compared.worse
    if not compared.known or len(worse) < const.SLOW_OF_PERIODS or compared.rate >= const.SAME_LOAD:
        return None
    low, high = compared.latency.only(compared.calm).median, compared.latency.only(worse).median
    edges = [worse[: const.SLOW_OF_PERIODS], worse[-const.SLOW_OF_PERIODS :]]
    if low is None or high is None:
        return None
    if any((compared.latency.only(edge).median or 0) - low < (high - low) / 2 for edge in edges):
        return None  # it crept
    rise = LatencyStep(view, statistic, worse[0], worse[-1], high, low)
    since, until = rise.time - const.WARMING, rise.time + view.period
    starts = [
        start
        for start in instance_starts(view)
        if not was_fast_at_first(view, start, view.slow_times)
    ]
    if any(start.first <= until and start.last >= since for start in starts):
        return None
    return rise


def with_step(finding: Finding, rise: LatencyStep | None) -> Finding:
    """A finding with when it began and what to ask then."""
    if rise is None:
        return finding
    shown = (*finding.evidence, rise.evidence)
    return replace(finding, evidence=shown, besides=f"{rise.question} {finding.besides}".strip())
