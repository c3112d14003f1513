"""Decisions about alarms: the latency target split between model and overhead."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..errors import AWS_DOCS
from .capacity import stated
from .decisions import Decision, PlanWarning
from .metrics import check_statistic, metric_facts, microseconds_from_milliseconds
from .plan_inputs import PlanInputs

__all__ = ["NOBODY_NOTIFIED", "alarm_decisions", "latency_warnings"]

NOBODY_NOTIFIED = (
    "the alarms notify nobody: name an SNS topic (alarm_topic_arn, or AlarmOptions(actions=[...]))"
)

DEFAULT_OVERHEAD_SHARE = 0.2
SHORT_TARGET_MS = 10.0  # our judgement: overhead and zone changes weigh in from here down
PERIOD_SECONDS = 60
SAMPLES_BEYOND = 10  # a percentile with fewer requests beyond it in a period jumps about

_MONITORING = AWS_DOCS + "/sagemaker/latest/dg/monitoring-cloudwatch.html"


def alarm_decisions(inputs: PlanInputs) -> Iterator[Decision]:
    """One threshold per metric and statistic, in milliseconds, never above the target."""
    if inputs.latency is None:
        return
    share = DEFAULT_OVERHEAD_SHARE if inputs.overhead_share is None else inputs.overhead_share
    kept = stated(share)
    overridden = inputs.overhead_share is not None
    for statistic, target in inputs.latency.milliseconds.items():
        yield _threshold(
            "ModelLatency", statistic, target, 1 - kept, overridden,
            rule="the target less the share kept for network and SageMaker's overhead, on the "
                 "statistic of the target",
            note="AWS publishes no usual overhead: once measured, set the share to it",
        )
    tightest, target = inputs.latency.tightest
    yield _threshold(
        "OverheadLatency", "Average", target, kept, overridden,
        rule="the share of the tightest target kept for network and overhead; on the average, "
             "because no percentiles are listed as valid for this metric",
        note=f"from {tightest}; the callers' network is in no metric of SageMaker's",
    )


def _threshold(metric: str, statistic: str, target: float, share: Fraction, overridden: bool, *,
               rule: str, note: str) -> Decision:
    check_statistic(metric, statistic)
    milliseconds = min(float(stated(target) * share), target)
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in metric)
    return Decision(
        name=f"alarm{words}_{statistic.lower().replace('.', '_')}",
        value=milliseconds, unit="ms", rule=rule,
        inputs={
            "metric": metric,
            "statistic": statistic,
            "target in ms": target,
            "share": float(share),
            f"threshold in {metric_facts(metric).unit.lower()}":
                microseconds_from_milliseconds(milliseconds),
        },
        source=_MONITORING, overridden=overridden, note=note,
    )


def latency_warnings(inputs: PlanInputs) -> Iterator[PlanWarning]:
    """What is doubtful about the target itself."""
    if inputs.latency is None:
        yield PlanWarning(
            "no-latency-target",
            "no latency target: no alarms are set, and the routing strategy rests on a guess",
        )
        return
    statistic, tightest = inputs.latency.tightest
    if tightest < SHORT_TARGET_MS:
        yield PlanWarning(
            "short-latency-target",
            f"the target {statistic} {tightest:g} ms leaves little beside the model: a change of "
            "zone and SageMaker's overhead come out of it, and AWS publishes no number for "
            "either. The alarm on OverheadLatency is a budget, not an observation: measure both, "
            "set the overhead share to what you find, and only then page somebody with it",
        )
    slowest, longest = inputs.latency.slowest
    if longest > inputs.response_limit_seconds * 1000:
        yield PlanWarning(
            "latency-above-response-limit",
            f"the target {slowest} {longest / 1000:g} s is longer than the "
            f"{inputs.response_limit_seconds} s after which SageMaker ends the invocation",
        )
    if inputs.streaming:
        yield PlanWarning(
            "streamed-first-token",
            "the responses are streamed: no CloudWatch metric of SageMaker's gives the time to the "
            "first token (FirstChunkLatency is documented for bidirectional streaming only); take "
            "it from the callers or the container's own metrics",
        )
    if inputs.throughput:
        for name in inputs.latency.milliseconds:
            if name == "Average":
                continue
            beyond = (stated(inputs.throughput.peak_tps) * PERIOD_SECONDS
                      * (100 - Fraction(name[1:])) / 100)
            if beyond < SAMPLES_BEYOND:
                yield PlanWarning(
                    f"few-samples-{name}",
                    f"even at peak only {float(beyond):.2g} requests a minute lie beyond {name}: "
                    "the alarm needs longer periods, or it follows single requests",
                )
