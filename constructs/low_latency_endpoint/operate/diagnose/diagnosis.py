"""What a diagnosis found, when it began, and where the time of a variant's requests went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, cast

from ...account.alarms import AlarmReading
from ...account.metrics import INEXACT, MetricSeries, Series, statistic_of
from ...account.queries import FIRST_TOKEN, INTER_TOKEN, TOKEN_TIMES
from ...errors import rule
from ...errors.impossible import falling, out_of_range, refuse
from ...report.json_text import json_safe
from ...report.numbers import milliseconds, percent, readable
from .events import Event, events
from .findings import Finding
from .measurements import Measurements, VariantReading
from .sustained import conditions, fewest_periods
from .thresholds import DOUBLED, ERROR_RATE, HALF, PERIODS, SLOW_OF_PERIODS
from .view import VariantView, runs

IMPOSSIBLE = rule(
    "LLD907",
    "the diagnosis has a number that cannot be right",
    fix="Check what --client-latency and --target state. Else please report it.",
)


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """Means of an instance or zone in ms, weighted by requests; ``share`` 0 to 1."""

    name: str
    requests: float
    share: float | None
    model_average_ms: float | None
    model_p99_ms: float | None
    overhead_average_ms: float | None
    cpu_percent: float | None

    def __post_init__(self) -> None:
        times = ("model_average_ms", "model_p99_ms", "overhead_average_ms")
        numbers = {name: getattr(self, name) for name in ("requests", *times, "cpu_percent")}
        refuse(IMPOSSIBLE, self.name, out_of_range(numbers))
        refuse(IMPOSSIBLE, self.name, out_of_range({"share": self.share}, high=1))


def breakdown(of: Mapping[str, MetricSeries]) -> list[BreakdownRow]:
    """Instances or zones of a variant, the slowest first."""
    total = sum(statistic_of(series, "Invocations", "Sum").sum for series in of.values())
    rows = []
    for name, series in of.items():
        requests = statistic_of(series, "Invocations", "Sum")
        rows.append(
            BreakdownRow(
                name,
                requests.sum,
                requests.sum / total if total else None,
                statistic_of(series, "ModelLatency", "Average").weighted_mean(requests),
                statistic_of(series, "ModelLatency", "p99").weighted_mean(requests),
                statistic_of(series, "OverheadLatency", "Average").weighted_mean(requests),
                statistic_of(series, "CPUUtilization", "Average").mean,
            )
        )
    return sorted(rows, key=lambda each: (-(each.model_average_ms or 0), each.name))


_STATISTICS = ("p50", "p90", "p99", "Average")
_RARE = 0.05  # share of the requests at either end that a range leaves out
_PARTS = {
    "model": "ModelLatency",
    "overhead": "OverheadLatency",
    "first token": FIRST_TOKEN,
    "between tokens": INTER_TOKEN,
}


@dataclass(frozen=True, slots=True)
class Split:
    """Where a variant's time went in ms, weighted by requests; ``worst`` is the worst period's."""

    part: str
    p50: float | None
    p90: float | None
    p99: float | None
    average: float | None
    worst: tuple[datetime, float] | None
    limits: Mapping[str, float] = field(default_factory=dict)
    over: bool = False
    # lowest and highest period by percentile, where no mean of them is any request's
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        percentiles = {"p50": self.p50, "p90": self.p90, "p99": self.p99}
        refuse(IMPOSSIBLE, self.part, out_of_range({**percentiles, "average": self.average}))
        refuse(IMPOSSIBLE, self.part, falling(percentiles, INEXACT))

    @property
    def limit(self) -> str:
        """In words; empty without any."""
        return ", ".join(f"{s} {milliseconds(limit, 6)}" for s, limit in self.limits.items())


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Why the window says nothing about a variant, or about a part of it, from ``since`` on."""

    variant: str
    why: Literal[
        "no_requests",
        "requests_ended",
        "no_latency_target",
        "no_latency_data",
        "too_few_periods",
        "slow_too_shortly",
        "components_not_read",
    ]
    since: datetime | None = None
    words: str = ""  # of a latency: what was measured of it, and what is missing


def unjudged(m: Measurements) -> Iterator[Unjudged]:
    """What nobody may call healthy: silence, and latency without a limit or enough data."""
    for variant in m.variants:
        name, counts = variant.name, variant.get("Invocations", "Sum").points
        asked = sorted(time for time, count in counts.items() if count > 0)
        latencies = [k for k in variant.thresholds if k[0] in ("ModelLatency", *TOKEN_TIMES)]
        expected = variant.weight != 0 or len(m.variants) == 1
        if variant.inference_components:
            yield Unjudged(name, "components_not_read")
        elif not asked and expected:
            yield Unjudged(name, "no_requests", m.start)
        elif asked:
            gaps = [later - time for time, later in pairwise(asked)]
            pause = max([PERIODS * m.period, *(2 * gap for gap in gaps)]) + m.period
            if expected and m.end - asked[-1] > pause:
                yield Unjudged(name, "requests_ended", asked[-1] + m.period)
            if not latencies:
                yield Unjudged(name, "no_latency_target")
            elif not any(variant.get(*key) for key in latencies):
                yield Unjudged(name, "no_latency_data")
            yield from _too_short(VariantView(m, variant))


def _too_short(view: VariantView) -> Iterator[Unjudged]:
    """At most one: the first limit that too few periods were above, or could have been."""
    period = view.period
    name, minutes = view.variant.name, readable(period.total_seconds() / 60)
    for (metric, statistic), limit in view.variant.thresholds.items():
        series = view.get(metric, statistic)
        if statistic == "Rate" or not series:
            continue
        alarms = view.measurements.alarms_on(name, metric, statistic)
        windows = [window for _, window in conditions(limit.value, alarms)]
        needed = min(fewest_periods(window, period) for window in windows)
        late = [time for time in series.times if series.points[time] > limit.value]
        if len(series) < needed:
            words = (
                f"it takes at least {needed} periods of {minutes} min with requests, and the window "
                f"has {len(series)}"
            )
            yield Unjudged(name, "too_few_periods", words=words)
            return
        share = view.requests.only(late).sum / (view.requests.only(series.points).sum or 1)
        if share >= HALF and not view.slow_of(metric):
            words = (
                f"{percent(share)} of the requests came while {metric} {statistic} was above "
                f"{milliseconds(limit.value)}, but only in {len(late)} of {len(series)} periods"
            )
            yield Unjudged(name, "slow_too_shortly", words=words)
            return


State = Literal["healthy", "at_risk", "faulty", "not_judged"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was measured, and what it points to."""

    measurements: Measurements
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool | None:
        """Whether nothing was found; ``None`` where not all of it could be judged."""
        return {"healthy": True, "not_judged": None}.get(self.state, False)

    @property
    def state(self) -> State:
        """The verdict in one word, the same in each output."""
        if any(not finding.risk for finding in self.findings):
            return "faulty"
        if self.findings:
            return "at_risk"
        return "not_judged" if self.unjudged else "healthy"

    @property
    def unjudged(self) -> list[Unjudged]:
        """What the verdict leaves out; a slow time that has a finding is none."""
        explained = {finding.variant for finding in self.findings}
        return [
            each
            for each in unjudged(self.measurements)
            if each.why != "slow_too_shortly" or each.variant not in explained
        ]

    @property
    def events(self) -> list[Event]:
        """Deployments, scaling activities and alarms of the window, in order."""
        return events(self.measurements)

    def to_dict(self) -> dict[str, Any]:
        m = self.measurements
        return {
            "endpoint": m.endpoint,
            "region": m.region,
            "status": m.status,
            "update": m.update.to_dict() if m.update else None,
            "start": m.start.isoformat(),
            "end": m.end.isoformat(),
            "period_seconds": int(m.period.total_seconds()),
            "healthy": self.healthy,
            "verdict": {
                "state": self.state,
                "faults": sum(not finding.risk for finding in self.findings),
                "risks": sum(finding.risk for finding in self.findings),
                "not_judged": list(map(json_safe, self.unjudged)),
            },
            "onsets": list(map(json_safe, onsets(m))),
            "findings": [finding.to_dict() for finding in self.findings],
            "latency_ms": {v.name: [_split_dict(s) for s in split(m, v)] for v in m.variants},
            "instances": {
                v.name: [asdict(row) for row in breakdown(v.instances)] for v in m.variants
            },
            "zones": {v.name: [asdict(row) for row in breakdown(v.zones)] for v in m.variants},
            "variants": [_variant_dict(v) for v in m.variants],
            "events": list(map(json_safe, self.events)),
            "alarms": None if m.alarms is None else list(map(_alarm_dict, m.alarms)),
            "unknown": [asdict(each) for each in m.unknown],
            "absent": list(m.absent),
        }


def split(measurements: Measurements, variant: VariantReading) -> list[Split]:
    """Client, overhead and model time of a variant, and its tokens' where its server tells them."""
    counts = variant.get("ModelLatency", "SampleCount")
    found = []
    client = measurements.client_latency
    if client:
        p50, p90, p99, average = map(client.get, _STATISTICS)
        found.append(Split("client", p50, p90, p99, average, None))
    for part, metric in _PARTS.items():
        limits = {s: limit for (m, s), limit in variant.thresholds.items() if m == metric}
        of_tokens = metric in TOKEN_TIMES
        wanted = (*_STATISTICS, *(limits if of_tokens else ()))
        means = {s: variant.get(metric, s).weighted_mean(counts) for s in wanted}
        if of_tokens and all(means[s] is None for s in _STATISTICS):
            continue
        p50, p90, p99, average = (means[s] for s in _STATISTICS)
        seen = (variant.get(metric, s) for s in (*limits, "p99", "Average"))
        series = next(filter(None, seen), Series())
        found.append(
            Split(
                part,
                p50,
                p90,
                p99,
                average,
                max(series.points.items(), key=lambda item: item[1]) if series else None,
                {s: limit.value for s, limit in limits.items()},
                any((means.get(s) or 0) > limit.value for s, limit in limits.items()),
                dict(_ranges(variant, metric, counts)),
            )
        )
    return found


def _ranges(
    variant: VariantReading, metric: str, counts: Series
) -> Iterator[tuple[str, tuple[float, float]]]:
    """All percentiles where one doubled within the window: its mean is one that no request had."""
    ranges: dict[str, tuple[float, float]] = {}
    for statistic in _STATISTICS[:3]:
        periods = variant.get(metric, statistic)
        low = periods.weighted_percentile(counts, _RARE)
        high = periods.weighted_percentile(counts, 1 - _RARE)
        if low is not None and high is not None:
            ranges[statistic] = low, high
    if any(high >= DOUBLED * low for low, high in ranges.values()):
        yield from ranges.items()


def _alarm_dict(alarm: AlarmReading) -> dict[str, Any]:
    return {**json_safe(alarm), "window": alarm.window._asdict()}


def _split_dict(split: Split) -> dict[str, Any]:
    worst = {"time": split.worst[0].isoformat(), "value": split.worst[1]} if split.worst else None
    content = {**asdict(split), "worst": worst, "limit": split.limit or None}
    content["limits_ms"] = content.pop("limits")
    content["ranges_ms"] = {name: list(ends) for name, ends in content.pop("ranges").items()}
    content.update(dict.fromkeys(content["ranges_ms"]))
    del content["over"]
    return content


def _variant_dict(variant: VariantReading) -> dict[str, Any]:
    scaling = variant.scaling
    return {
        "name": variant.name,
        "instance_type": variant.instance_type or None,
        "routing": variant.routing,
        "instances": variant.current_instances,
        "scaling": None
        if scaling is None
        else {
            "min": scaling.minimum,
            "max": scaling.maximum,
            "metric": scaling.metric or None,
            "target": scaling.target,
        },
        "requests": variant.get("Invocations", "Sum").sum,
        "series": {
            f"{metric}.{statistic}": {t.isoformat(): series.points[t] for t in series.times}
            for (metric, statistic), series in variant.series.items()
        },
    }


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

    def __post_init__(self) -> None:
        numbers = {"limit": self.limit, "before": self.before, "since": self.since}
        refuse(IMPOSSIBLE, f"{self.metric} {self.statistic}", out_of_range(numbers))


def onsets(m: Measurements) -> Iterator[Onset]:
    """At most one of each metric: of the last time window in which it was above its limit."""
    for variant in m.variants:
        view = VariantView(m, variant)
        metrics = dict.fromkeys(metric for metric, stat in variant.thresholds if stat != "Rate")
        for slow in (periods for metric in metrics for periods in view.slow_of(metric)[:1]):
            series = view.get(slow.metric, slow.statistic)
            late = [time for time in series.times if series.points[time] > slow.threshold]
            yield _onset(view, slow.metric, slow.statistic, slow.threshold, series, late)
        failed = view.failed_share
        failing = failed.only(view.failing(view.failed)).times
        if len(failing) >= SLOW_OF_PERIODS:
            yield _onset(view, ERRORS, "Rate", ERROR_RATE, failed, failing)


def _onset(
    view: VariantView,
    metric: str,
    statistic: str,
    limit: float,
    series: Series,
    bad: list[datetime],
) -> Onset:
    """The last time window of the bad periods; from the first of them where none before it was good."""
    stretches = runs(bad, view.gap)
    start, last = stretches[-1]
    if not series.between(view.measurements.start, start).without(bad):
        start = stretches[0][0]
    quiet = series.between(view.measurements.start, start).without(bad)
    before = quiet.median if metric == ERRORS else quiet.without(view.refusing).median
    since = series.only(time for time in bad if time >= start).median
    if metric == ERRORS:  # a share of the requests from then on, as every other share
        span = series.between(start, last + view.period)
        since = span.weighted_mean(view.get("Invocations", "Sum"))
    lasts = last in series.times[-SLOW_OF_PERIODS:]
    until = None if lasts else last + view.period
    name = view.variant.name
    return Onset(name, metric, statistic, limit, before, cast(float, since), start, until)
