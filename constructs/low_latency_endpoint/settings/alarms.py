"""Settings of the alarms that watch an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import WithJsonSchema

from ..plan import limits
from ..plan.container_metrics import KV_CACHE_USE, WAITING_REQUESTS, percentile_share
from ..plan.endpoint_request import METRICS_OF_SERVER
from ..plan.metrics import check_statistic
from ..plan.rules import (
    METRIC_PERIOD,
    OBJECTIVE,
    PERCENT_OF_ALL,
    ZONE_IMBALANCE,
    check_alarm_window,
)
from .breach import Finding, breaches, finding
from .fields import Limited, duration_of, duration_schema
from .model_base import SettingsModel, mapping_of, optional

Threshold = Annotated[timedelta, Limited(limits.ALARM_THRESHOLD_MILLISECONDS)]
Rate = Annotated[float, Limited(limits.ERROR_RATE)]
Percent = Annotated[float, Limited(PERCENT_OF_ALL)]
Periods = Annotated[int, Limited(limits.EVALUATION_PERIODS)]


def _thresholds(*statistics: str, percentiles: bool) -> WithJsonSchema:
    """The schema of thresholds by statistic, with names that editors complete."""
    return WithJsonSchema(
        {
            "type": "object",
            "properties": {statistic: duration_schema() for statistic in statistics},
            "patternProperties": {r"^p\d{1,3}(?:\.\d+)?$": duration_schema()}
            if percentiles
            else {},
            "additionalProperties": False,
        }
    )


_OF_TOKENS = _thresholds("p50", "p90", "p95", "p99", percentiles=True)


class SlowRequestSettings(SettingsModel):
    """An objective: this share of the requests is faster than the threshold."""

    threshold: Threshold = Field(
        examples=["200ms"], description="ModelLatency from which a request is slow."
    )
    objective: Annotated[float, Limited(OBJECTIVE)] = optional(
        "Share of requests that must be faster. Default: 0.99.", example=0.99, default=0.99
    )


class TokenAlarmSettings(SettingsModel):
    """Alarms on tokens, of language models that stream: what the server itself measures.

    A wrong name of a metric never alarms, so `low-latency verify` demands data of each.
    """

    server: Annotated[str, Limited(METRICS_OF_SERVER)] | None = optional(
        "Whose metrics the container publishes: vllm or sglang. Default: by the image's name; an "
        "image of your own needs it, or no alarm watches tokens.",
        example="vllm",
    )
    ttft: Annotated[dict[str, Threshold], _OF_TOKENS] | None = optional(
        "Longest time to first token in the server, by percentile. Default: the target less the "
        "share for overhead.",
        example={"p95": "400ms"},
    )
    itl: Annotated[dict[str, Threshold], _OF_TOKENS] | None = optional(
        "Longest inter-token latency, by percentile. Default: the target.", example={"p95": "50ms"}
    )
    waiting_requests: Annotated[float, Limited(WAITING_REQUESTS)] | None = optional(
        "Requests that wait on the fullest instance, over five minutes. Default: no alarm.",
        example=4,
    )
    kv_cache_use: Annotated[float, Limited(KV_CACHE_USE)] | None = optional(
        "Share of the KV cache in use on the fullest instance: when it is full, requests wait or "
        "are preempted. Default: no alarm.",
        example=0.95,
    )
    minimum_requests: Annotated[int, Limited(limits.MINIMUM_INVOCATIONS)] | None = optional(
        "First tokens in five minutes below which ttft and itl do not alarm. Default: 20.",
        example=20,
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Each statistic is a percentile."""
        for name in ("ttft", "itl"):
            for statistic in mapping_of(given, name):
                yield from breaches((name, statistic), percentile_share, statistic)


class AlarmSettings(SettingsModel):
    """Thresholds of the alarms, by the statistic that is watched."""

    model_latency: (
        Annotated[
            dict[str, Threshold],
            _thresholds(
                "Average",
                "Maximum",
                "Minimum",
                "p50",
                "p90",
                "p95",
                "p99",
                "p99.9",
                percentiles=True,
            ),
        ]
        | None
    ) = optional(
        "Longest ModelLatency by statistic: Average, Maximum or a percentile such as p99 or "
        "p99.9. Default: the target less the share for overhead.",
        example={"p99": "200ms"},
    )
    overhead_latency: (
        Annotated[
            dict[str, Threshold], _thresholds("Average", "Maximum", "Minimum", percentiles=False)
        ]
        | None
    ) = optional(
        "Longest OverheadLatency by statistic: Average or Maximum; AWS lists no percentiles for "
        "it. Default: the target's share for overhead.",
        example={"Average": "20ms"},
    )
    tokens: TokenAlarmSettings | None = optional(
        "Alarms on tokens. Default: the plan's, from the targets of ttft and itl.",
        example={"kv_cache_use": 0.95},
    )
    error_rate: Rate | None = optional(
        "Largest share of requests that fail with a server error. Default: 0.01.", example=0.01
    )
    client_error_rate: Rate | None = optional(
        "Largest share of requests that SageMaker or the model refuses with a 4xx. "
        "Default: no alarm.",
        example=0.05,
    )
    model_error_rate: Rate | None = optional(
        "Largest share of requests that the container does not answer with 2xx. Default: no alarm.",
        example=0.01,
    )
    minimum_invocations: Annotated[int, Limited(limits.MINIMUM_INVOCATIONS)] | None = optional(
        "Requests per period below which error rates count as zero, so that single failures page "
        "nobody. Default: 20.",
        example=20,
    )
    slow_requests: SlowRequestSettings | None = optional(
        "An objective on slow requests, watched by how fast its budget burns. Default: no alarm.",
        example={"threshold": "200ms", "objective": 0.99},
    )
    anomalies: dict[str, str] | None = optional(
        "Metrics, each with a statistic, that alarm outside the band that CloudWatch learns of "
        "them. Default: none.",
        example={"Invocations": "Sum"},
    )
    cpu_utilization: Percent | None = optional(
        "Percent of all vCPUs together. Default: 85.", example=85
    )
    memory_utilization: Percent | None = optional("Percent of memory. Default: 90.", example=90)
    disk_utilization: Percent | None = optional("Percent of the disk. Default: 90.", example=90)
    gpu_utilization: Percent | None = optional(
        "Percent of all GPUs together. Default: no alarm.", example=90
    )
    gpu_memory_utilization: Percent | None = optional(
        "Percent of all GPU memory together. Default: no alarm.", example=95
    )
    cache_miss_rate: Rate | None = optional(
        "Multi-model: largest share of requests whose model is not loaded. Default: no alarm.",
        example=0.05,
    )
    model_loading_wait: Threshold | None = optional(
        "Multi-model: longest average wait for a model. Default: no alarm.", example="500ms"
    )
    capacity_at_maximum: bool | None = optional(
        "Alarm when all instances that scaling may start are serving. "
        "Default: true where the endpoint scales."
    )
    zone_imbalance: Annotated[float, Limited(ZONE_IMBALANCE)] | None = optional(
        "Alarm when the busiest zone gets this many times its even share. AWS does not say what "
        "switches its metric on. Default: no alarm.",
        example=1.5,
    )
    expect_traffic: bool | None = optional(
        "Alarm when no request arrives for five minutes. Default: false."
    )
    period: Annotated[timedelta, Limited(limits.ALARM_PERIOD)] | None = optional(
        "What an alarm on latencies, shares and utilization looks at once: whole minutes. "
        "Default: 1m.",
        example="5m",
    )
    evaluation_periods: Periods | None = optional(
        "So many periods count, the last ones. Default: 3.", example=5
    )
    datapoints_to_alarm: Periods | None = optional(
        "So many of them must be too high. Default: 2.", example=5
    )
    quiet_during_deployments: bool | None = optional(
        "Hold pages back while both fleets of a deployment take requests and ten minutes after, "
        "an hour at most. Not seen on AWS yet. Default: false."
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Each statistic is one that CloudWatch has for the metric, as are period and window."""
        for metric, statistic in mapping_of(given, "anomalies").items():
            yield from breaches(("anomalies", metric), check_statistic, metric, statistic)
        period = duration_of(given.get("period")) or timedelta(minutes=1)
        if period > timedelta(minutes=1) and period % timedelta(minutes=1):
            yield finding(METRIC_PERIOD, "period", got=given["period"], allowed="whole minutes")
        counts = [given.get("evaluation_periods", 3), given.get("datapoints_to_alarm", 2)]
        if all(isinstance(each, int) for each in counts):
            place = (
                "datapoints_to_alarm" if "datapoints_to_alarm" in given else "evaluation_periods"
            )
            yield from breaches((place,), check_alarm_window, *counts, period.total_seconds())
        for name, metric in (
            ("model_latency", "ModelLatency"),
            ("overhead_latency", "OverheadLatency"),
        ):
            for statistic in mapping_of(given, name):
                yield from breaches((name, statistic), check_statistic, metric, statistic)
