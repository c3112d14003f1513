"""When it began: what a metric was before its slow time, and what it is since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ...account.metrics import Series
from .measurements import Measurements
from .thresholds import ERROR_RATE, PERIODS, SLOW_OF_PERIODS
from .view import VariantView, runs

ERRORS = "errors"


@dataclass(frozen=True, slots=True)
class Onset:
    """Milliseconds of a latency, or the share of requests that fail, before and since.

    ``before`` is ``None`` where the window begins in the slow time, ``until`` where that lasts.
    """

    variant: str
    metric: str
    statistic: str
    limit: float
    before: float | None
    since: float
    start: datetime
    until: datetime | None


def onsets(m: Measurements) -> Iterator[Onset]:
    """At most one of each metric: of the last time window in which it was above its limit."""
    for variant in m.variants:
        view = VariantView(m, variant)
        metrics = dict.fromkeys(metric for metric, stat in variant.thresholds if stat != "Rate")
        for slow in (each for metric in metrics for each in view.slow_of(metric)[:1]):
            series = view.get(slow.metric, slow.statistic)
            yield _onset(view, slow.metric, slow.statistic, slow.threshold, series)
        failed = view.failed_share
        if sum(share > ERROR_RATE for share in failed.points.values()) >= SLOW_OF_PERIODS:
            yield _onset(view, ERRORS, "Rate", ERROR_RATE, failed)


def _onset(view: VariantView, metric: str, statistic: str, limit: float, series: Series) -> Onset:
    bad = [time for time in series.times if series.points[time] > limit]
    start, last = runs(bad, PERIODS * view.period)[-1]
    before = series.between(view.measurements.start, start).without(bad).median
    since = series.only(time for time in bad if time >= start).median
    assert since is not None
    lasts = last in series.times[-SLOW_OF_PERIODS:]
    until = None if lasts else last + view.period
    return Onset(view.variant.name, metric, statistic, limit, before, since, start, until)
