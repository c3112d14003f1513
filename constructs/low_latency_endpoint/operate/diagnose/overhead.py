"""The branch of OverheadLatency, and of what lies outside of SageMaker's metrics."""

from __future__ import annotations

from collections.abc import Iterator

from ...report.numbers import milliseconds, percent, readable
from .events import after_starts, colder, named
from .findings import KNOWLEDGE_CENTER, MONITORING, Evidence, Finding, Remedy, kind
from .view import WARMING, VariantView

COLD = kind(
    "LLD201",
    "OverheadLatency is high after new instances started",
    "as LLD121, for OverheadLatency",
    KNOWLEDGE_CENTER,
)
INFREQUENT = kind(
    "LLD202",
    "OverheadLatency is high because requests are infrequent",
    "up to 5 requests a minute",
    KNOWLEDGE_CENTER,
)
STEADY = kind(
    "LLD203",
    "OverheadLatency is high under steady traffic",
    "otherwise: payload sizes, authentication, data capture",
    KNOWLEDGE_CENTER,
)
CLIENT = kind(
    "LLD801",
    "The time is lost between the caller and SageMaker",
    "`--client-latency` exceeds model and overhead by a quarter and 5 ms",
    MONITORING,
)

#: Requests per minute up to which AWS's "infrequent requests" is taken to apply; AWS names none.
_INFREQUENT = 5.0


def overhead(view: VariantView) -> Iterator[Finding]:
    """At most one finding."""
    slow = view.slow_overhead
    if not slow:
        return
    times = sorted({time for each in slow for time in each.values.points})
    evidence = view.slow_evidence(slow)
    found = after_starts(view, times)
    if found:
        yield view.finding(
            COLD,
            "high",
            ("OverheadLatency high", "after new instances started"),
            *evidence,
            Evidence(
                f"within {WARMING.seconds // 60} minutes of {named(view, found)}",
                found[0].first,
                times[-1] + view.period,
            ),
            remedies=colder(found, "new"),
            besides="Send requests to new instances before callers do.",
        )
        return
    per_minute = view.tps.only(times)
    typical = per_minute.median
    if typical is not None and typical * 60 <= _INFREQUENT:
        yield view.finding(
            INFREQUENT,
            "medium",
            ("OverheadLatency high", "few requests"),
            *evidence,
            f"{readable(typical * 60, 2)} requests a minute when it was high",
            times=times,
            besides=(
                "Nothing in endpoint.yaml changes it: send a request every few seconds to keep the "
                "path warm, and keep connections open in the callers."
            ),
        )
        return
    changes = []
    more = ""
    if view.measurements.data_capture_percent:
        more = f"; data capture records {view.measurements.data_capture_percent} % of the requests"
        changes.append(
            Remedy(
                "data_capture.sampling_percentage",
                f"less than {view.measurements.data_capture_percent}",
            )
        )
    changes.append(
        Remedy("alarms.overhead_latency", "if what was measured is what your requests need")
    )
    yield view.finding(
        STEADY,
        "low",
        ("OverheadLatency high", "steady traffic, no new instances"),
        *evidence,
        f"{readable((typical or 0), 3)} requests a second, no new instances before it{more}",
        times=times,
        remedies=changes,
        besides=(
            "CloudWatch has no payload sizes: look at the size of requests and responses in the "
            "callers, compress or shorten them. Authentication and authorization count too: reuse "
            "credentials and connections."
        ),
    )


def client(view: VariantView) -> Iterator[Finding]:
    """What the caller measured, less what SageMaker measured."""
    counts = view.get("ModelLatency", "SampleCount")
    added = view.get("OverheadLatency", "Average").weighted_mean(counts)
    for statistic, measured in view.measurements.client_latency.items():
        model = view.get("ModelLatency", statistic).weighted_mean(counts)
        if model is None or added is None:
            continue
        left = measured - model - added
        # A quarter of the whole, and more than what a zone and a TLS connection may cost.
        if left < 0.25 * measured or left < 5:
            continue
        yield view.finding(
            CLIENT,
            "medium",
            ("client latency", "more than model and overhead"),
            Evidence(
                f"client {statistic} {milliseconds(measured)} = ModelLatency "
                f"{milliseconds(model)} + OverheadLatency {milliseconds(added)} (average) + "
                f"{milliseconds(left)}, {percent(left / measured)}, outside of SageMaker",
                view.measurements.start,
                view.measurements.end,
            ),
            remedies=[
                Remedy("client_zones.ids", "stack-level: the zones that callers really run in"),
                Remedy("private_link", "stack-level: callers that go around it cross the internet"),
            ],
            besides=(
                "Percentiles do not add up exactly; the share is an estimate. In the callers: as many "
                "connections as threads, kept open, in the caller's own zone (runtime_client does all "
                "three), and enough CPU."
            ),
        )
        return
