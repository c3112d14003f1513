"""How many instances served: SageMaker publishes no count, but each request adds 1/n."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ...account.metrics import MetricSeries, Series

__all__ = ["Rise", "rises", "serving"]


@dataclass(frozen=True, slots=True)
class Rise:
    """From ``time`` on more instances served than before, and went on to."""

    time: datetime
    few: int
    more: int


def serving(metrics: MetricSeries) -> Series:
    """Instances that served, by period."""
    total = metrics.get(("Invocations", "Sum"), Series()).points
    each = metrics.get(("InvocationsPerInstance", "Sum"), Series()).points
    return Series({t: total[t] / v for t, v in each.items() if v > 0 and t in total})


def rises(counts: Series) -> Iterator[Rise]:
    """All rises that last for more than a period.

    >>> from datetime import timedelta
    >>> times = [datetime(2026, 11, 20) + timedelta(minutes=n) for n in range(6)]
    >>> counts = Series(dict(zip(times, [2.0, 2.0, 3.2, 4.0, 4.0, 4.0])))
    >>> [(rise.time.minute, rise.few, rise.more) for rise in rises(counts)]
    [(2, 2, 4), (3, 3, 4)]
    """
    times = counts.times
    for index in range(1, len(times)):
        after = times[min(index + 1, len(times) - 1)]
        few, some, more = (round(counts.points[t]) for t in (times[index - 1], times[index], after))
        if few < some <= more:
            yield Rise(times[index], few, more)
