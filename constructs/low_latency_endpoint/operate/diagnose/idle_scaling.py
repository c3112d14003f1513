"""Scaling that did nothing while the load asked for more: how that is known, and where to look.

:func:`idle_scaling` is the start. A scale-out that came, failed or is under way is no idle scaling, and
neither is one that an update of the endpoint holds back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...account.alarms import AlarmReading
from ...account.scaling import ScalingReading
from . import thresholds as const
from .findings import Confidence, Evidence
from .starts import scale_outs
from .view import TrackedMetric, VariantView, runs

_UPDATING = ("Updating", "SystemUpdating", "RollingBack")


@dataclass(frozen=True, slots=True)
class IdleScaling:
    """The cause of idle scaling, what shows it, and the next step for a person."""

    id: str
    evidence: Evidence
    confidence: Confidence
    next_step: str


def idle_scaling(view: VariantView, scaling: ScalingReading, *, full: bool) -> IdleScaling | None:
    """Why scaling did nothing; ``None`` where it acted, or had no reason or not enough time to.

    ``full`` says that the instances are known to be full: then a load just above the target is enough.
    """
    if scaling.scale_out_suspended or scaling.maximum is None:
        return None
    m = view.measurements
    if not scaling.has_policy:
        words = f"registered for {scaling.minimum} to {scaling.maximum} instances, without a policy"
        return IdleScaling("LLD145", Evidence(words, m.start, m.end), "high", "") if full else None
    if not scaling.activities and (useless := _useless_metric(view, scaling)):
        words = f"no scaling activity, with a maximum of {scaling.maximum} instances: {useless}"
        words += _alarm_words(view)
        return _never(view, Evidence(words, m.start, m.end), "high")
    breach = _breach(view, scaling, full=full)
    if breach is None:
        return None
    if breach.updating is not None:
        return IdleScaling("LLD144", breach.evidence(view), "high", "")
    seen = breach.evidence(view, _alarm_words(view))
    return _never(view, seen, "high" if breach.is_sure else "medium")


def _never(view: VariantView, evidence: Evidence, confidence: Confidence) -> IdleScaling:
    return IdleScaling("LLD110", evidence, confidence, _next_step(view))


def _useless_metric(view: VariantView, scaling: ScalingReading) -> str:
    """Why the policy can never act: no data, or the metric of something else."""
    stated = view.stated
    if scaling.doubt or stated is None or stated.series:
        return scaling.doubt
    if len(view.get("ModelLatency", "SampleCount")) < const.PERIODS:
        return ""
    words = f"{scaling.metric} has no data while requests arrive"
    if view.measurements.asynchronous:
        words += ", because AWS publishes none for asynchronous endpoints: track the backlog"
    return words


# --- a load above the target, and nothing came of it ---------------------------------------------


@dataclass(frozen=True, slots=True)
class _Breach:
    """A time in which more instances were wanted and possible, and none was asked for."""

    first: datetime
    last: datetime
    words: str
    is_sure: bool
    updating: timedelta | None = None  # how long an update blocked scaling, where that explains it

    def evidence(self, view: VariantView, more: str = "") -> Evidence:
        maximum = view.variant.scaling.maximum if view.variant.scaling else None
        minutes = (self.last - self.first + view.period) / timedelta(minutes=1)
        if self.updating is not None:
            blocked = (self.updating + view.period) / timedelta(minutes=1)
            why = f"for {blocked:.0f} min of them the endpoint was being updated, which blocks scaling"
        elif view.variant.scaling and view.variant.scaling.activities is None:
            why = "scaling activities may not be read, and no instance was added"
        else:
            why = "no scaling activity added instances"
        words = f"{self.words} for {minutes:.0f} min: {why}, with a maximum of {maximum} instances"
        return Evidence(words + more, self.first, self.last + view.period)


def _breach(view: VariantView, scaling: ScalingReading, *, full: bool) -> _Breach | None:
    """The first time that was long enough for scaling to act."""
    most = (scaling.maximum or 0) - 0.5
    now = view.variant.current_instances or 0
    wanted = [
        time
        for time in _times_wanted(view, full=full)
        if view.instances.points.get(time, now) < most
    ]
    for first, last in runs(wanted, 2 * view.period):
        acted = list(_acted(view, first, last, full=full))
        begin = max([first, *acted])
        words, exceeded, sure = _reason(view, begin, last)
        least = (2 if exceeded else 3) * const.SCALING_REACTS
        least = max(least, timedelta(seconds=scaling.scale_out_cooldown or 0))
        if acted:  # the next step may be on its way
            least *= 2
        updating = _updating(view, begin, last)
        length = last - begin
        if length - updating >= least:
            sure = sure and scaling.activities is not None
            return _Breach(begin, last, words, sure)
        if full and length >= const.SCALING_REACTS and updating >= length / 2:
            return _Breach(begin, last, words, True, updating)
    return None


def _times_wanted(view: VariantView, *, full: bool) -> list[datetime]:
    """When more instances were wanted: by the tracked metric, else by full instances."""
    stated = view.stated
    if stated is None or not stated.series:
        return view.bad_times if full else []
    values = stated.series.without(view.explained).points.items()
    if full:
        return sorted(time for time, value in values if value > const.PASSED * stated.target)
    return sorted(time for time, value in values if stated.too_much(value))


def _reason(view: VariantView, first: datetime, last: datetime) -> tuple[str, bool, bool]:
    """The load in words; whether it is far beyond the target; whether scaling must have seen it."""
    stated = view.stated
    if stated is None or not stated.series:
        return f"the instances were full, with {_policy(view)}", False, False
    value = stated.series.between(first, last + view.period).median or 0
    far = value >= const.TARGET_EXCEEDED * stated.target
    return stated.words(value), far, _must_have_seen(stated, value)


def _policy(view: VariantView) -> str:
    """The policy where it tracks no metric that is read here."""
    scaling = view.variant.scaling
    metric = scaling.metric if scaling else ""
    return f"the policy {metric}" if metric else "a policy that may not be read"


def _must_have_seen(stated: TrackedMetric, value: float) -> bool:
    """Of requests in flight CloudWatch has the maximum of a period, and scaling may see less."""
    return not stated.concurrency or stated.too_much(value)


def _acted(view: VariantView, first: datetime, last: datetime, *, full: bool) -> Iterator[datetime]:
    """When instances came or were asked for: what lies before is no idle time.

    While latency is within its limit, a scale-in shows that scaling works, too.
    """
    for activity in scale_outs(view) if full else view.variant.activities:
        if first - const.SCALING_REACTS <= activity.start <= last:
            yield min(activity.end or activity.start, last)
    for rise in view.whole.rises:
        if first < rise.time <= last:
            yield rise.time


def _updating(view: VariantView, first: datetime, last: datetime) -> timedelta:
    """How long the endpoint was being updated in this time."""
    m = view.measurements
    spans = [(deployment.time, deployment.done) for deployment in m.deployments]
    if m.update and m.update.begun:
        spans.append((m.update.begun, last))
    elif m.status in _UPDATING:
        begin = max((deployment.time for deployment in m.deployments), default=first)
        spans = [*spans[:-1], (begin, last)]
    inside = [min(end, last) - max(start, first) for start, end in spans]
    return max([timedelta(0), *inside])


# --- what to look at next ------------------------------------------------------------------------


def _scaling_alarms(view: VariantView) -> list[AlarmReading]:
    return [alarm for alarm in view.measurements.alarms or () if alarm.of_scaling]


def _alarm_words(view: VariantView) -> str:
    """That target tracking's alarms are missing, where that is known."""
    if view.stated is None or view.measurements.alarms is None or _scaling_alarms(view):
        return ""
    return "; this endpoint has no alarm TargetTracking-..."


def _next_step(view: VariantView) -> str:
    """Where to look first, by what is known of the policy's alarms."""
    if view.stated is None:
        return (
            f"Here it is {_policy(view)}: does its alarm see a breach, and does the alarm's action name "
            "the policy?"
        )
    high = [alarm for alarm in _scaling_alarms(view) if "AlarmHigh" in alarm.name]
    if view.measurements.alarms is None:
        return (
            "Are the policy's alarms (TargetTracking-...-AlarmHigh) in ALARM, and is the metric this "
            "variant's?"
        )
    if not high:
        return "The policy's alarm AlarmHigh is missing: create the policy again, which creates it."
    alarm = high[0]
    if alarm.state == "ALARM":
        return (
            f"Its alarm {alarm.name} is in ALARM, so the policy was told: may the service-linked role "
            "change the endpoint? CloudTrail shows refused UpdateEndpointWeightsAndCapacities calls."
        )
    return f"Its alarm {alarm.name} is {alarm.state}: compare its threshold, metric and dimensions."
