"""The latency that callers must see."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..errors import rule
from .durations import milliseconds_of
from .limits import ALARM_THRESHOLD_MILLISECONDS

TARGET_GIVEN = rule(
    "LLE802",
    "a latency target names no statistic",
    fix="Give one, such as LatencyTarget(p99=Duration.millis(200)).",
)
TARGET_RISES = rule(
    "LLE803",
    "a higher percentile has a shorter latency target",
    fix="Give it the same or a longer time.",
)

# Field of LatencyTarget -> statistic as CloudWatch writes it
_STATISTICS = {
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99_9": "p99.9",
    "average": "Average",
}


@dataclass(frozen=True, kw_only=True)
class LatencyTarget:
    """How long callers may wait, by percentile; at least one must be given.

    Parameters
    ----------
    p50, p90, p95, p99, p99_9, average : Duration or timedelta, optional
        CDK's ``Duration`` (anything with ``to_milliseconds()``) or ``datetime.timedelta``. Bare
        numbers are refused. A statistic that is left out gets no alarm.

    Attributes
    ----------
    milliseconds : dict of str to float
        The targets given, by statistic as CloudWatch writes it (``p99``, ``p99.9``, ``Average``).

    Raises
    ------
    ConfigurationError
        ``LLE701`` for a time of zero or less, ``LLE801`` for one without a unit, ``LLE802`` when
        none is given, ``LLE803`` when a higher percentile is to be faster.

    Examples
    --------
    >>> from datetime import timedelta
    >>> LatencyTarget(p50=timedelta(milliseconds=40), p99=timedelta(milliseconds=200)).milliseconds
    {'p50': 40.0, 'p99': 200.0}
    """

    p50: Any = field(default=None, compare=False, repr=False)
    p90: Any = field(default=None, compare=False, repr=False)
    p95: Any = field(default=None, compare=False, repr=False)
    p99: Any = field(default=None, compare=False, repr=False)
    p99_9: Any = field(default=None, compare=False, repr=False)
    average: Any = field(default=None, compare=False, repr=False)
    milliseconds: dict[str, float] = field(init=False, hash=False)

    def __post_init__(self) -> None:
        found: dict[str, float] = {}
        for name, statistic in _STATISTICS.items():
            given = getattr(self, name)
            if given is not None:
                where = f"latency target {statistic}"
                found[statistic] = float(
                    ALARM_THRESHOLD_MILLISECONDS.check(milliseconds_of(given, where), where)
                )
        if not found:
            raise TARGET_GIVEN.error(got="none", allowed=", ".join(_STATISTICS))
        percentiles = [(name, value) for name, value in found.items() if name != "Average"]
        for (lower, faster), (higher, slower) in pairwise(percentiles):
            if slower < faster:
                raise TARGET_RISES.error(
                    got=f"{higher} {slower:g} ms after {lower} {faster:g} ms",
                    allowed=f"{higher} of at least {faster:g} ms",
                )
        object.__setattr__(self, "milliseconds", found)

    @property
    def tightest(self) -> tuple[str, float]:
        """Statistic and milliseconds of the shortest time given."""
        return min(self.milliseconds.items(), key=lambda item: item[1])

    @property
    def slowest(self) -> tuple[str, float]:
        """Statistic and milliseconds of the longest time given."""
        return max(self.milliseconds.items(), key=lambda item: item[1])

    @property
    def typical(self) -> tuple[str, float]:
        """Statistic and milliseconds that say most about an ordinary response."""
        for statistic in ("p50", "Average"):
            if statistic in self.milliseconds:
                return statistic, self.milliseconds[statistic]
        return self.tightest
