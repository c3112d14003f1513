"""The alarms that watch an endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from ..errors.findings import Finding, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.container_metrics import (
    KV_CACHE_USE,
    METRICS_OF_SERVER,
    WAITING_REQUESTS,
    percentile_share,
)
from ..facts.durations import TEXT_PATTERN, milliseconds_of, seconds_of
from ..facts.metrics import check_statistic
from ..facts.rules import (
    LONGEST_OBJECTIVE_PERIOD_SECONDS,
    METRIC_PERIOD,
    NOTHING_TO_MEET,
    OBJECTIVE,
    PERCENT_OF_ALL,
    SEVERITY_STATISTICS,
    ZONE_IMBALANCE,
    check_alarm_window,
)
from ..facts.token_values import is_token
from ..report.numbers import plain_number
from .argument_kinds import checked_arguments
from .option import Option, Options
from .throughput import stated

if TYPE_CHECKING:
    from aws_cdk import Duration
    from aws_cdk import aws_cloudwatch as cloudwatch

Thresholds: TypeAlias = (
    "Mapping[str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]]"
)
"""Durations by statistic, or by severity and statistic."""

DEFAULT_PERIOD_SECONDS = 60
DEFAULT_EVALUATION_PERIODS = 3
DEFAULT_DATAPOINTS = 2
DEFAULT_ERROR_RATE = 0.01
MINIMUM_FAILURES = 3
"""Failures in a period that page. With two of three periods, a share of failures a tenth of the
threshold then raises at most one alarm in 10,000 minutes at any rate; with two failures it raises
six (tests/plan/test_alarm_windows.py)."""
FAST_BURN_RATE = 14.4
"""How much too fast a budget may burn before somebody is paged at once: Google's SRE workbook,
"Alerting on SLOs"."""
SLOW_BURN_RATE = 6.0
"""The same over six hours."""
BURN_RATES = {"Fast": (60, 5, FAST_BURN_RATE), "Slow": (360, 30, SLOW_BURN_RATE)}
"""Of the alarms on slow requests: long and short window in minutes, burn rate."""

_DURATION = {"type": "string", "pattern": TEXT_PATTERN}


def _by_statistic(example: Any, *statistics: str, percentiles: bool = True) -> Option:
    """Thresholds by statistic, with names that editors complete."""
    pattern = {r"^p\d{1,3}(?:\.\d+)?$": _DURATION} if percentiles else {}
    schema = {
        "type": "object",
        "properties": dict.fromkeys(statistics, _DURATION),
        "patternProperties": pattern,
        "additionalProperties": False,
    }
    return Option(limits.ALARM_THRESHOLD_MILLISECONDS, example, schema=schema, known=True)


def _percentiles(example: Any) -> Option:
    return _by_statistic(example, "p50", "p90", "p95", "p99")


class WindowOptions(NamedTuple):
    """What is stated of the periods that an alarm evaluates."""

    period_seconds: float | None = None  # None if the requests' rate decides
    evaluation_periods: int = DEFAULT_EVALUATION_PERIODS
    datapoints_to_alarm: int = DEFAULT_DATAPOINTS

    @property
    def is_usual(self) -> bool:
        """Whether neither the periods nor the datapoints differ from the defaults."""
        usual = (DEFAULT_EVALUATION_PERIODS, DEFAULT_DATAPOINTS)
        return (self.evaluation_periods, self.datapoints_to_alarm) == usual


class ErrorLimit(NamedTuple):
    """When the alarm on server errors goes off."""

    rate: float = DEFAULT_ERROR_RATE  # share of the requests that fail
    failures: int = MINIMUM_FAILURES  # in a period, below which the share counts as zero
    objective: float | None = None  # that the rate follows from; None if it does not


class SlowLimit(NamedTuple):
    """What the alarms on slow requests hold the requests to."""

    milliseconds: float  # of ModelLatency, above which a request is slow
    objective: float

    @property
    def budget(self) -> Fraction:
        """The share of requests that may be slow."""
        return 1 - stated(self.objective)


class PeriodObjective(NamedTuple):
    """What a service level objective holds the periods to."""

    share: float  # of the periods that must meet the threshold
    # statistic and milliseconds of the tightest stated one; None if the plan's counts
    threshold: tuple[str, float] | None = None


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class SlowRequests(Options):
    """An objective: this share of the requests is faster than the threshold.

    Raises:
        ConfigurationError: LLE701 for the threshold, LLE726 for the objective, LLE801 and LLE807
            for other kinds.
    """

    threshold: Annotated[
        Duration | timedelta | str, Option(limits.ALARM_THRESHOLD_MILLISECONDS, "200ms", known=True)
    ]
    """ModelLatency above which a request is slow."""
    objective: Annotated[float, Option(OBJECTIVE, 0.99, known=True)] = 0.99
    """Share of requests that must be faster; the rest is the monthly budget. Default: 0.99."""

    @property
    def budget(self) -> float:
        """The share of requests that may be slow."""
        return 1 - self.objective


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class TokenAlarmOptions(Options):
    """Alarms on tokens for language models that stream, from the server's own metrics; as an alarm
    with a wrong metric name never fires, ``low-latency verify`` requires data for each.

    Raises:
        ConfigurationError: LLE701 for a threshold, LLE704 for the least number of requests,
            LLE801 and LLE807 for values of another kind, LLE990 to LLE997 for the rest.
    """

    server: Annotated[str | None, Option(METRICS_OF_SERVER, "vllm")] = None
    """Server whose metrics the container publishes: vllm or sglang. Default: by the image's name.
    Without it your own image has no token alarms."""
    ttft: Annotated[
        Mapping[str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]]
        | Literal["planned"]
        | None,
        _percentiles({"p95": "400ms"}),
    ] = "planned"
    """Longest time to first token in the server, by percentile. A threshold inside one of the
    server's wide buckets (vLLM: 250 to 500 ms, 25 to 50 ms) is compared with an interpolated
    percentile. Default: the target less the share for overhead.

    In Python, thresholds may also stand by severity: ``{"Warning": {"p95": ...}}``.
    """
    itl: Annotated[
        Mapping[str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]]
        | Literal["planned"]
        | None,
        _percentiles({"p95": "50ms"}),
    ] = "planned"
    """Longest inter-token latency (all gaps between tokens of all streams), by percentile. Default:
    the target.

    In Python, thresholds may also stand by severity: ``{"Warning": {"p95": ...}}``.
    """
    waiting_requests: Annotated[
        float | None, Option(WAITING_REQUESTS, 4, billed=(1,), known=True)
    ] = None
    """Waiting requests on the fullest instance, averaged over five minutes. Default: no alarm."""
    kv_cache_use: Annotated[float | None, Option(KV_CACHE_USE, 0.95, billed=(1,), known=True)] = (
        None
    )
    """Share of the KV cache in use on the fullest instance. If it is full, requests wait or are
    preempted. Default: no alarm."""
    minimum_requests: Annotated[int, Option(limits.MINIMUM_INVOCATIONS, 20, known=True)] = 20
    """ttft and itl do not alarm below this number of first tokens in five minutes, so that one slow
    request pages nobody. Default: 20."""

    def _rules(self) -> Iterator[Finding]:
        """Each statistic is a percentile."""
        for name, thresholds in (("ttft", self.ttft), ("itl", self.itl)):
            yield from _statistics(name, thresholds, percentile_share)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class AlarmOptions(Options):
    """Thresholds of the alarms, by statistic, and whom they notify.

    ``None`` turns an alarm off; ``replace(AlarmOptions.none(), error_rate=0.05)`` has only this alarm.

    Raises:
        ConfigurationError: LLE366 for the period, LLE701 to LLE704, LLE721, LLE723 to LLE726,
            LLE732 for a statistic that the metric does not have, LLE736 and LLE737 for the
            window, LLE739 for an objective without threshold, LLE801 and LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import AlarmOptions
        >>> AlarmOptions(model_latency={"p99": "200ms"}).error_limit.rate
        0.01
    """

    model_latency: Annotated[
        Mapping[str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]]
        | Literal["planned"]
        | None,
        _by_statistic(
            {"p99": "200ms"},
            *("Average", "Maximum", "Minimum", "p50", "p90", "p95", "p99", "p99.9"),
        ),
    ] = "planned"
    """Longest ModelLatency by statistic: Average, Maximum or a percentile such as p99 or p99.9.
    Default: the target less the share for overhead.

    In Python, thresholds may also stand by severity:
    ``{"Warning": {"p99": ...}, "Critical": {"p99": ...}}``.
    """
    overhead_latency: Annotated[
        Mapping[str, Duration | timedelta | str | Mapping[str, Duration | timedelta | str]]
        | Literal["planned"]
        | None,
        _by_statistic({"Average": "20ms"}, "Average", "Maximum", "Minimum", percentiles=False),
    ] = "planned"
    """Longest OverheadLatency by statistic: Average or Maximum; AWS lists no percentiles for it.
    Default: the target's share for overhead."""
    tokens: Annotated[TokenAlarmOptions, Option(example={"kv_cache_use": 0.95})] = field(
        default_factory=TokenAlarmOptions
    )
    """Alarms on tokens. Default: the plan's, from the ttft and itl targets."""
    error_rate: Annotated[
        float | Literal["planned"] | None, Option(limits.ERROR_RATE, 0.01, billed=(2,))
    ] = "planned"
    """Largest share of requests that fail with a server error (5xx). Default: 0.01; with an
    objective (service_level_objective or slow_requests) at most 14.4 times its budget, so 0.00144
    for 0.9999."""
    client_error_rate: Annotated[float | None, Option(limits.ERROR_RATE, 0.05, billed=(2,))] = None
    """Largest share of requests that SageMaker or the model rejects with a 4xx. Default: no alarm.
    """
    model_error_rate: Annotated[float | None, Option(limits.ERROR_RATE, 0.01, billed=(2,))] = None
    """Largest share of requests that the container answers with other than 2xx. Default: no alarm.
    """
    minimum_failures: Annotated[int, Option(limits.MINIMUM_FAILURES, 5)] = MINIMUM_FAILURES
    """Below this number of failures in a period, error rates count as zero, so that single failures
    page nobody. Default: 3."""
    minimum_invocations: Annotated[int, Option(limits.MINIMUM_INVOCATIONS, 20)] = 20
    """Below this number of requests in a period, zone_imbalance compares nothing, nor do the alarms
    on a shadow's latency. Default: 20."""
    slow_requests: Annotated[
        SlowRequests | None,
        Option(example={"threshold": "200ms", "objective": 0.99}, billed=(1, 1, 1, 1)),
    ] = None
    """An objective on slow requests. The alarm fires if its budget burns too fast: 14.4 times over
    an hour and five minutes, or 6 times over six hours and thirty minutes. Default: no alarm."""
    service_level_objective: Annotated[float | None, Option(OBJECTIVE, 0.99, known=True)] = None
    """Share of the periods in which ModelLatency must meet the tightest of its thresholds, over 28
    days. Each production variant gets a service level objective of Application Signals, which AWS
    bills. Default: none."""
    anomalies: Annotated[Mapping[str, str], Option(example={"Invocations": "Sum"})] = field(
        default_factory=dict
    )
    """Metrics with a statistic each: alarm outside the band (two standard deviations) that
    CloudWatch learns. Default: none."""
    cpu_utilization: Annotated[
        float | None, Option(PERCENT_OF_ALL, 85, billed=(1,), known=True)
    ] = 85
    """Percent of all vCPUs together; SageMaker's metric counts 100 for each vCPU. Default: 85."""
    memory_utilization: Annotated[
        float | None, Option(PERCENT_OF_ALL, 90, billed=(1,), known=True)
    ] = 90
    """Percent of memory. Default: 90."""
    disk_utilization: Annotated[
        float | None, Option(PERCENT_OF_ALL, 90, billed=(1,), known=True)
    ] = 90
    """Percent of the disk. Default: 90."""
    gpu_utilization: Annotated[
        float | None, Option(PERCENT_OF_ALL, 90, billed=(1,), known=True)
    ] = None
    """Percent of all GPUs together; SageMaker's metric counts 100 for each GPU. Default: no alarm.
    """
    gpu_memory_utilization: Annotated[
        float | None, Option(PERCENT_OF_ALL, 95, billed=(1,), known=True)
    ] = None
    """Percent of all GPU memory together. Default: no alarm."""
    cache_miss_rate: Annotated[
        float | None, Option(limits.ERROR_RATE, 0.05, billed=(1,), known=True)
    ] = None
    """Multi-model: largest share of requests whose model is not loaded. Default: no alarm."""
    model_loading_wait: Annotated[
        Duration | timedelta | str | None,
        Option(limits.ALARM_THRESHOLD_MILLISECONDS, "500ms", billed=(1,), known=True),
    ] = None
    """Multi-model: longest average wait for a model. Default: no alarm."""
    capacity_at_maximum: Annotated[bool | Literal["scaled"], Option()] = "scaled"
    """Alarm if the fleet runs at its maximum. Default: true if the endpoint scales."""
    zone_imbalance: Annotated[float | None, Option(ZONE_IMBALANCE, 1.5)] = None
    """Alarm if the busiest zone gets this many times its even share. AWS does not say what enables
    the metric: check that the alarm has data. Default: no alarm."""
    expect_traffic: Annotated[bool, Option(billed=(1,))] = False
    """Alarm when no request arrives in five periods, each a minute, or longer where 20 requests
    take more than five minutes at the lowest peak of the day; state quiet times in
    throughput.peaks. Default: false."""
    period: Annotated[Duration | timedelta | str | None, Option(limits.ALARM_PERIOD, "5m")] = None
    """Period of alarms on latencies, shares and utilization, in whole minutes. Default: 1m; with a
    throughput, alarms on latencies and errors take as long as they need for enough requests, up to
    6h."""
    evaluation_periods: Annotated[int, Option(limits.EVALUATION_PERIODS, 5)] = (
        DEFAULT_EVALUATION_PERIODS
    )
    """Number of the last periods to evaluate. Default: 3; an alarm on a percentile at a low rate
    takes one long period instead."""
    datapoints_to_alarm: Annotated[int, Option(limits.EVALUATION_PERIODS, 5)] = DEFAULT_DATAPOINTS
    """Number of these periods that must breach the threshold. Default: 2."""
    quiet_during_deployments: Annotated[bool, Option()] = False
    """Suppress pages while both fleets of a deployment serve requests and for ten minutes after; at
    most an hour of such minutes in 12 hours. Not seen on AWS yet. Default: false."""
    actions: Sequence[cloudwatch.IAlarmAction] = ()
    """What the composite alarms do, such as ``SnsAction(topic)`` of ``aws_cloudwatch_actions``, or
    ``AlarmTopic(...).action``. Default: nobody is told."""

    @classmethod
    def none(cls) -> AlarmOptions:
        """No alarm at all, to be extended with ``dataclasses.replace``."""
        return cls(
            model_latency=None,
            overhead_latency=None,
            tokens=TokenAlarmOptions(ttft=None, itl=None),
            error_rate=None,
            cpu_utilization=None,
            memory_utilization=None,
            disk_utilization=None,
            capacity_at_maximum=False,
        )

    @property
    def window(self) -> WindowOptions:
        """What is stated of the periods of its alarms."""
        seconds = None if self.period is None else seconds_of(self.period)
        return WindowOptions(seconds, self.evaluation_periods, self.datapoints_to_alarm)

    @property
    def objective(self) -> float | None:
        """The share of requests, or of periods, that must be good: the strictest one stated."""
        of_requests = self.slow_requests.objective if self.slow_requests else None
        objectives = [
            share for share in (of_requests, self.service_level_objective) if share is not None
        ]
        return max(objectives, default=None)

    @property
    def error_limit(self) -> ErrorLimit | None:
        """When the alarm on server errors goes off; None without one.

        A failed request is not a fast one, so an objective's budget limits failures too.
        """
        if self.error_rate is None:
            return None
        if not isinstance(self.error_rate, str):
            return ErrorLimit(self.error_rate, self.minimum_failures)
        if self.objective is None:
            return ErrorLimit(DEFAULT_ERROR_RATE, self.minimum_failures)
        burnt = round(FAST_BURN_RATE * (1 - self.objective), 9)
        if burnt >= DEFAULT_ERROR_RATE:
            return ErrorLimit(DEFAULT_ERROR_RATE, self.minimum_failures)
        return ErrorLimit(burnt, self.minimum_failures, self.objective)

    @property
    def slow_limit(self) -> SlowLimit | None:
        """What the alarms on slow requests hold the requests to; None without an objective."""
        slow = self.slow_requests
        if slow is None:
            return None
        return SlowLimit(milliseconds_of(slow.threshold), slow.objective)

    @property
    def period_objective(self) -> PeriodObjective | None:
        """What a service level objective holds the periods to; None without one."""
        if self.service_level_objective is None:
            return None
        return PeriodObjective(self.service_level_objective, tightest(self.model_latency))

    def _rules(self) -> Iterator[Finding]:
        """Each statistic is one that CloudWatch has for the metric, as are period and window."""
        for metric, statistic in self.anomalies.items():
            yield from breaches(("anomalies", metric), check_statistic, metric, statistic)
        minute = timedelta(minutes=1)
        if isinstance(self.period, timedelta) and self.period > minute and self.period % minute:
            seconds = self.period.total_seconds()
            yield finding(
                METRIC_PERIOD, "period", got=f"{plain_number(seconds)}s", allowed="whole minutes"
            )
        yield from check_window(self)
        for name, metric in (
            ("model_latency", "ModelLatency"),
            ("overhead_latency", "OverheadLatency"),
        ):
            yield from _statistics(
                name, getattr(self, name), lambda each, of=metric: check_statistic(of, each)
            )

    def _rules_of_objective(self) -> Iterator[Finding]:
        """A service level objective has a threshold, and a period that Application Signals takes."""
        if self.service_level_objective is None:
            return
        if not self.model_latency:
            yield finding(
                NOTHING_TO_MEET,
                "service_level_objective",
                got="no threshold of ModelLatency",
                allowed="an objective with model_latency",
            )
        if isinstance(self.period, timedelta):
            seconds = self.period.total_seconds()
            if seconds > LONGEST_OBJECTIVE_PERIOD_SECONDS:
                yield finding(
                    NOTHING_TO_MEET,
                    "period",
                    got=f"{plain_number(seconds)}s",
                    allowed="at most 15 minutes with service_level_objective",
                )


def flattened(
    thresholds: Thresholds | str | None,
) -> Iterator[tuple[str, str, Duration | timedelta | str]]:
    """Severity (may be empty), statistic and threshold."""
    for name, value in thresholds.items() if isinstance(thresholds, Mapping) else ():
        if isinstance(value, Mapping):
            for statistic, threshold in value.items():
                yield name, statistic, threshold
        else:
            yield "", name, value


def tightest(thresholds: Thresholds | str | None) -> tuple[str, float] | None:
    """The statistic and milliseconds of the tightest threshold, whatever its severity."""
    return tightest_of(
        (statistic, milliseconds_of(threshold)) for _, statistic, threshold in flattened(thresholds)
    )


def tightest_of(thresholds: Iterable[tuple[str, float]]) -> tuple[str, float] | None:
    """The tightest threshold, of which a service level objective is; None without one.

    Percentiles come before all others; then the shortest counts, and of equal ones the highest
    percentile, which is the hardest to keep.
    """
    return min(thresholds, key=_order_of_tightness, default=None)


def _order_of_tightness(threshold: tuple[str, float]) -> tuple[bool, float, float]:
    statistic, milliseconds = threshold
    number = statistic.removeprefix("p")
    is_percentile = number != statistic and number.replace(".", "", 1).isdigit()
    return not is_percentile, milliseconds, -float(number) if is_percentile else 0.0


def error_share(options: AlarmOptions, name: str) -> float | None:
    """The share of requests at which the alarm of an option on errors stands; None without one."""
    if name == "error_rate":
        return options.error_limit.rate if options.error_limit else None
    share: float | None = getattr(options, name)
    return share


def check_window(options: AlarmOptions) -> Iterator[Finding]:
    """So many datapoints of so many periods, which CloudWatch looks back upon."""
    counts = (options.evaluation_periods, options.datapoints_to_alarm)
    period = options.period
    if period is None:
        period = timedelta(seconds=DEFAULT_PERIOD_SECONDS)
    if isinstance(period, timedelta) and not any(map(is_token, counts)):
        default = options.datapoints_to_alarm == DEFAULT_DATAPOINTS
        place = "evaluation_periods" if default else "datapoints_to_alarm"
        yield from breaches((place,), check_alarm_window, *counts, period.total_seconds())


def _statistics(name: str, stated: Any, check: Any) -> Iterator[Finding]:
    """Each statistic of thresholds holds, and all have a severity or none has."""
    if not isinstance(stated, Mapping):
        return
    nested = [isinstance(each, Mapping) for each in stated.values()]
    if any(nested) and not all(nested):
        yield finding(
            SEVERITY_STATISTICS, name, got=", ".join(stated), allowed="one of the two forms"
        )
    for statistic, each in stated.items():
        for below in each if isinstance(each, Mapping) else (statistic,):
            yield from breaches((name, below), check, below)
