"""The branch of OverheadLatency, and of what lies outside of SageMaker's metrics."""

from __future__ import annotations

from collections.abc import Iterator

from ...report.numbers import milliseconds, percent, readable
from .events import after_starts, colder, within_minutes
from .findings import Evidence, Finding, Remedy
from .thresholds import INFREQUENT, OUTSIDE, OUTSIDE_MS
from .view import VariantView, times_of


def overhead(view: VariantView) -> Iterator[Finding]:
    """At most one finding."""
    slow, captured = view.slow_overhead, view.measurements.data_capture_percent
    if not slow:
        return
    times, shown = times_of(slow), view.slow_evidence(slow)
    if found := after_starts(view, times):
        words = within_minutes(view, found)
        new = Evidence(words, found[0].first, times[-1] + view.period)
        yield view.cause("LLD201", *shown, new, first=colder(found, "new"))
        return
    tps = view.tps.only(times).median
    if tps is not None and tps * 60 <= INFREQUENT:
        words = f"{readable(tps * 60, 2)} requests a minute when it was high"
        yield view.cause("LLD202", *shown, words, times=times)
        return
    words = f"{readable((tps or 0), 3)} requests a second, no new instances before it"
    less = []
    if captured:
        words += f"; data capture records {captured} % of the requests"
        less = [Remedy("data_capture.sampling_percentage", f"less than {captured}")]
    yield view.cause("LLD203", *shown, words, times=times, first=less)


def client(view: VariantView) -> Iterator[Finding]:
    """What the caller measured, less what SageMaker measured."""
    m, counts = view.measurements, view.get("ModelLatency", "SampleCount")
    added = view.get("OverheadLatency", "Average").weighted_mean(counts)
    for statistic, measured in m.client_latency.items():
        model = view.get("ModelLatency", statistic).weighted_mean(counts)
        if model is None or added is None:
            continue
        left = measured - model - added
        if left >= max(OUTSIDE * measured, OUTSIDE_MS):
            words = (
                f"client {statistic} {milliseconds(measured)} = ModelLatency "
                f"{milliseconds(model)} + OverheadLatency {milliseconds(added)} (average) + "
                f"{milliseconds(left)}, {percent(left / measured)}, outside of SageMaker"
            )
            yield view.cause("LLD801", Evidence(words, m.start, m.end))
            return
