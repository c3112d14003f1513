"""The branch of full instances: why did scaling not help?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...errors import AWS_DOCS
from ...report.numbers import plain_number, readable
from .advice import instances_remedy, peak_remedy, target_remedy, unfilled
from .events import scale_outs
from .findings import (
    LOAD_TESTING,
    MONITORING,
    SCALING,
    STATED_NUMBER,
    Confidence,
    Evidence,
    Finding,
    FindingKind,
    Remedy,
    kind,
)
from .measurements import Activity, ScalingReading
from .view import ADVISED_PERCENT, PERIODS, TrackedMetric, VariantView, runs

_ACTIVITIES = (
    AWS_DOCS + "/autoscaling/application/userguide/application-auto-scaling-scaling-activities.html"
)
_TRACKING = AWS_DOCS + (
    "/autoscaling/application/userguide/application-auto-scaling-target-tracking.html"
)

SATURATED = kind(
    "LLD101",
    "The instances are saturated",
    (
        "CPU or GPU is at 85 % of the whole instance while slow, or at 50 % (or not published) "
        "with more load than a load test found, 1.2 times the scaling target's invocations or 1.5 "
        "times its requests in flight; given where scaling cannot be read"
    ),
    LOAD_TESTING,
)
AT_MAXIMUM = kind(
    "LLD102",
    "The fleet is at its maximum and needs more instances",
    (
        "as LLD101, with as many instances as scaling may start; a risk after five periods at this "
        "maximum and above the scaling target, without slowness"
    ),
    SCALING,
)
SCALE_OUT_FAILED = kind(
    "LLD103",
    "Instances that scaling asked for did not come",
    ("a scaling activity is Failed or Unfulfilled; a risk while latency holds"),
    _ACTIVITIES,
)
SCALING_LAGS = kind(
    "LLD104",
    "Scaling follows the load too slowly",
    ("as LLD101, below the maximum, with load or requests in flight above the scaling target"),
    _TRACKING,
)
NO_SCALING = kind(
    "LLD105",
    "The fleet is saturated and does not scale",
    "as LLD101, and the variant is no scalable target",
    SCALING,
)
SCALING_SUSPENDED = kind(
    "LLD106",
    "The fleet is saturated and scaling out is suspended",
    "as LLD101, with DynamicScalingOutSuspended",
    AWS_DOCS + "/autoscaling/application/userguide/"
    "application-auto-scaling-suspend-resume-scaling.html",
)
TARGET_TOO_HIGH = kind(
    "LLD107",
    "Instances saturate before they reach the scaling target",
    "as LLD101, while what scaling tracks stays within its target",
    LOAD_TESTING,
)
GPU_WAITS = kind(
    "LLD108",
    "The CPU is saturated while the GPU waits for it",
    "CPU full, or as many CPUs as LLD111 says, and GPU below 50 %",
    MONITORING,
)
TARGET_TOO_LOW = kind(
    "LLD109",
    "The scaling target is far below what an instance does",
    (
        "instances that are not full do ten times the target; or at the target a tenth of a request "
        "would be in work and utilization at a tenth of the 65 % that AWS advises"
    ),
    MONITORING,
)
NEVER_ACTS = kind(
    "LLD110",
    "Scaling does not act",
    (
        "below the maximum, without any scaling activity: at three times the target for 20 minutes "
        "and its cooldown, or as far above as LLD101 says for 30; no data of what is tracked; or a "
        "metric that cannot be this variant's; a risk while latency holds"
    ),
    _TRACKING,
)
SPIKE = kind(
    "LLD601",
    "A spike of traffic is shorter than scaling can follow",
    "slow for less than 10 minutes at three times the median traffic",
    SCALING,
)

_ROOT = ("ModelLatency high", "instances saturated")
#: An alarm on the metric takes three minutes, an instance several more to start.
_SCALING_REACTS = timedelta(minutes=10)
_SPIKE_FACTOR = 3.0
#: So many times its target nobody mistakes for noise; for less an update may hold scaling back.
_SEVERAL = 3.0


def saturated(view: VariantView) -> Iterator[Finding]:
    """The reason why the fleet was full while the model was slow: one finding, where it was full."""
    if view.full:
        yield _reason(view, view.bad_times)


def _finding(
    view: VariantView,
    made: FindingKind,
    path: str,
    *words: Evidence | str,
    confidence: Confidence = "high",
    times: list[datetime] | None = None,
    remedies: Sequence[Remedy] = (),
    besides: str = "",
    risk: str = "",
) -> Finding:
    """A finding after what shows that the instances were full; a risk is known by something else."""
    seen = [] if risk or not view.full else [*view.slow_evidence(), view.full]
    root = (risk,) if risk else _ROOT if view.slow_times else _ROOT[1:]
    return view.finding(
        made,
        confidence,
        (*root, path),
        *seen,
        *words,
        times=times,
        remedies=remedies,
        besides=besides,
        risk=bool(risk),
    )


def _reason(view: VariantView, times: list[datetime]) -> Finding:
    scaling, used = view.variant.scaling, view.utilization(times)
    needed = view.needed_instances(times)
    if "GPU" in used and used["GPU"] < 50 <= used.get("CPU", 0):
        return _finding(
            view,
            GPU_WAITS,
            "CPU full, GPU not",
            f"GPU at {used['GPU']:.0f} % while CPU at {used['CPU']:.0f} %",
            remedies=[
                Remedy("instance_type", "more vCPUs for each GPU"),
                Remedy(
                    "containers[].environment", "fewer or lighter steps before the model on the CPU"
                ),
            ],
        )
    if scaling is None:
        return _finding(
            view,
            SATURATED,
            "scaling unknown",
            confidence="medium",
            remedies=[
                instances_remedy(
                    view, "instances.max", needed, times, "if the fleet is at its maximum"
                ),
                Remedy("throughput.safety_factor", "lower: instances stay emptier"),
            ],
        )
    if scaling.maximum is None:
        return _finding(
            view,
            NO_SCALING,
            "not registered with Application Auto Scaling",
            remedies=[
                Remedy("scaling.enabled", "instances follow the load", "true"),
                Remedy(
                    "throughput",
                    "measured in a load test: scaling and its target follow from it",
                    "{peak_tps: ..., tps_per_instance: ...}",
                ),
                instances_remedy(view, "instances.min", needed, times, "until then"),
            ],
        )
    if scaling.scale_out_suspended:
        return _finding(
            view,
            SCALING_SUSPENDED,
            "scaling out suspended",
            besides="aws application-autoscaling register-scalable-target "
            "--service-namespace sagemaker --scalable-dimension "
            "sagemaker:variant:DesiredInstanceCount --resource-id "
            f"endpoint/{view.measurements.endpoint}/variant/{view.variant.name} "
            "--suspended-state DynamicScalingOutSuspended=false",
            remedies=[Remedy("scaling.enabled", value="true")],
        )
    failed = [
        a
        for a in view.activities
        if a.failed and times[0] - _SCALING_REACTS <= a.start <= times[-1] + view.period
    ]
    if failed:
        return _failed(view, failed)
    if _at_maximum(view, scaling, times):
        return _maximum(view, scaling, times)
    return _never_acts(view, scaling) or _too_slow(view, scaling, times, needed)


def target_too_low(view: VariantView) -> Iterator[Finding]:
    """What was measured contradicts the target: then nothing else is judged by it."""
    stated, times = view.stated, view.mistyped
    load, used = view.load.only(times).median, max(view.utilization(times).values(), default=0.0)
    if not stated or not times or not load:
        return
    most, minute = load * max(1.0, ADVISED_PERCENT / (used or 100)), 60 * stated.target
    typed = load / 2 <= minute <= 1.5 * most
    right = minute if typed else float(f"{most:.2g}")
    yield view.finding(
        TARGET_TOO_LOW,
        "high",
        (STATED_NUMBER, "scaling target"),
        f"{stated.words(load)}, with {view.utilization_words(times)} and "
        f"{readable(view.in_work(times) or 0, 2)} requests in work on an instance",
        Evidence(
            f"{readable(stated.target)} a second are {minute:,.0f} a minute, which is what the metric counts"
            if typed
            else f"a target of up to {right:,.0f} a minute fits what was seen"
        ),
        times=times,
        remedies=[Remedy("throughput.tps_per_instance", "at most", plain_number(right / 60, 3))],
        besides=f"Set the policy's TargetValue to {right:.0f} at most, and see in a load test what "
        "one instance holds. Until then the fleet is larger than its load needs.",
    )


def _never_acts(view: VariantView, scaling: ScalingReading, risk: str = "") -> Finding | None:
    """Nothing came of the policy, though it has something to do or never can."""
    m, stated = view.measurements, view.tracked
    if scaling.activities != () or scaling.scale_out_suspended or scaling.maximum is None:
        return None
    words = scaling.doubt
    if not words and stated and not stated.series:
        requests = len(view.get("ModelLatency", "SampleCount"))
        words = f"{scaling.metric} has no data while requests come" * (requests >= PERIODS)
        if words and m.asynchronous:
            words += ", as AWS publishes none of an asynchronous endpoint: track its backlog"
    elif not words and stated:
        words = _far_above(view, stated, scaling)
    if not words:
        return None
    if not any("TargetTracking-" in alarm.name for alarm in m.alarms or ()):
        words += "; no alarm TargetTracking-... on this endpoint"
    return _finding(
        view,
        NEVER_ACTS,
        "no scaling activity",
        Evidence(f"no scaling activity, {scaling.maximum} may serve: {words}", m.start, m.end),
        remedies=[
            Remedy(
                "scaling.enabled",
                "false, deploy, then true, deploy: policy and alarms are made anew",
            )
        ],
        besides="Target tracking acts three minutes after its alarms (TargetTracking-...-AlarmHigh) "
        "see it. Are they there and in ALARM, is the metric this variant's, and may the "
        "service-linked role change the endpoint?",
        risk=risk,
    )


def _far_above(view: VariantView, stated: TrackedMetric, scaling: ScalingReading) -> str:
    """How long what is tracked was above its target, below the maximum; empty where not for long."""
    most, now = (scaling.maximum or 0) - 0.5, view.variant.current_instances or 0
    above = [
        time
        for time, value in stated.series.without(view.explained).points.items()
        if stated.too_much(value) and view.instances.points.get(time, now) < most
    ]
    for first, last in runs(above, 2 * view.period):
        seen = stated.series.between(first, last + view.period).median or 0
        least = (2 if seen >= _SEVERAL * stated.target else 3) * _SCALING_REACTS
        if last - first >= max(least, timedelta(seconds=scaling.scale_out_cooldown or 0)):
            minutes = (last - first + view.period) / timedelta(minutes=1)
            return f"{stated.words(seen)} for {minutes:.0f} min"
    return ""


def at_the_limit(view: VariantView) -> Iterator[Finding]:
    """Latency is fine, but the next rise will find no more instances."""
    scaling = view.variant.scaling
    if scaling is None or scaling.maximum is None or view.mistyped:
        return
    if stuck := _never_acts(view, scaling, risk="scaling activities"):
        yield stuck
        return
    failed = [activity for activity in view.activities if activity.failed]
    if failed:
        yield _failed(view, failed, risk="scaling activities")
        return
    if view.tracked:
        slow = {*view.slow_times, *view.explained}  # these have a cause already
        times = [
            t
            for t in view.tracked.times_above()
            if t not in slow and view.instances.points.get(t, 0) >= scaling.maximum - 0.5
        ]
        if len(times) >= PERIODS:
            yield _maximum(view, scaling, times, risk="instances at their maximum")


def _failed(view: VariantView, failed: list[Activity], risk: str = "") -> Finding:
    failed = sorted(failed, key=lambda a: a.start)
    last = failed[-1]
    text = (
        f"{len(failed)} scaling activities failed"
        if len(failed) > 1
        else "a scaling activity failed"
    )
    words = f"{last.message} {last.description}".lower()
    if "quota" in words or "limit" in words:
        why, changes = (
            "the account's quota is used up",
            [Remedy("instance_type", "a type whose quota has room, until it is raised")],
        )
        besides = f"Ask Service Quotas for more endpoint instances of {view.variant.instance_type}."
    elif "capacity" in words:
        why, changes = (
            "AWS has no more instances of this type in the zones",
            [
                Remedy("capacity_reservation_arn", "reserved instances come"),
                Remedy("instance_type", "a type with more supply in these zones"),
                Remedy("client_zones.ids", "stack-level: another zone, if callers run there too"),
                Remedy("instances.min", "holds instances instead of asking for them at the peak"),
            ],
        )
        besides = ""
    else:
        why, changes = (
            "see AWS's message",
            [Remedy("instances.min", "holds instances instead of asking for them at the peak")],
        )
        besides = "SageMaker refuses scaling while the endpoint is being updated."
    return _finding(
        view,
        SCALE_OUT_FAILED,
        "scale-out failed",
        Evidence(
            f'{text}, {why}: "{last.message or last.description}"',
            failed[0].start,
            last.end or last.start,
        ),
        remedies=changes,
        besides=besides,
        risk=risk,
    )


def _at_maximum(view: VariantView, scaling: ScalingReading, times: list[datetime]) -> bool:
    assert scaling.maximum is not None
    seen = view.instances.only(times).median
    if seen is not None:
        return seen >= scaling.maximum - 0.5
    return (view.variant.current_instances or 0) >= scaling.maximum


def _maximum(
    view: VariantView, scaling: ScalingReading, times: list[datetime], risk: str = ""
) -> Finding:
    needed = view.needed_instances(times)
    tracked = view.tracked
    peak = tracked.peak(times) if tracked else None
    refused = [a for a in view.activities if "AlreadyAtMaxCapacity" in a.not_scaled]
    parts = [f"all {scaling.maximum} instances that scaling may start were serving"]
    if tracked and peak is not None:
        parts.append(f"up to {tracked.words(peak)}")
    if refused:
        parts.append(f"scaling noted AlreadyAtMaxCapacity {len(refused)} times")
    # Full at a load below the target: the target says nothing of how many would do.
    full_below_target = bool(
        not risk and tracked and peak is not None and peak < 0.95 * tracked.target
    )
    by_utilization = view.instances_by_utilization(times)
    why = "the load of this window at the scaling target"
    if full_below_target or (needed and needed == by_utilization):
        needed, why = by_utilization, ""
    if (needed or 0) <= (scaling.maximum or 0):
        needed, why = (scaling.maximum or 0) + 1, "at least: one more than there may be now"
    changes = [instances_remedy(view, "instances.max", needed, times, why)]
    if full_below_target and tracked and peak is not None:
        changes.append(
            target_remedy(
                view,
                tracked,
                peak,
                times,
                "at most; measure it again with a load test: "
                "scaling waits for a load that full instances never reach",
            )
        )
    plan, tps = view.measurements.plan, view.tps.only(times).max
    if plan and plan.peak_tps and tps and tps > plan.peak_tps:
        parts.append(f"up to {tps:,.0f} requests a second, planned for {plan.peak_tps:,.0f}")
        changes.insert(0, peak_remedy(view, tps))
    if not unfilled(view, times):
        changes.append(Remedy("instance_type", "a larger type, if more instances are not wanted"))
    return _finding(
        view,
        AT_MAXIMUM,
        "fleet at its maximum",
        "; ".join(parts),
        times=times,
        remedies=changes,
        besides="Check the quota of the instance type before the maximum is raised.",
        risk=risk,
    )


def _too_slow(
    view: VariantView, scaling: ScalingReading, times: list[datetime], needed: int | None
) -> Finding:
    """Below the maximum: a spike, a lag, or a target that never asks for more."""
    peak, usual = view.tps.only(times).max, view.tps.median
    tracked = view.tracked
    most = tracked.peak(times) if tracked else None
    headroom = Remedy("throughput.safety_factor", "lower: headroom on each instance")
    if tracked and tracked.concurrency:
        headroom = Remedy(
            "scaling.concurrency_target",
            f"lower than {readable(tracked.target)}: headroom on each instance",
        )
    if tracked and most is not None and most <= 1.05 * tracked.target:
        changes = [
            target_remedy(view, tracked, most, times, "at most; measure it again with a load test")
        ]
        if changes[0].value and not tracked.concurrency:
            changes.append(
                Remedy("throughput.safety_factor", "lower: more instances for the same load")
            )
        return _finding(
            view,
            TARGET_TOO_HIGH,
            "scaling target not reached",
            f"only {tracked.words(most)} when the instances were full: scaling saw no reason "
            "to add any",
            remedies=changes,
        )
    faster = (
        []
        if tracked and tracked.concurrency
        else [Remedy("scaling.metric", "sees a rise in 10 s instead of 60 s", "concurrency")]
    )
    if peak and usual and peak >= _SPIKE_FACTOR * usual and times[-1] - times[0] < _SCALING_REACTS:
        return _finding(
            view,
            SPIKE,
            "spike",
            f"{peak:,.0f} requests a second in the spike, {usual:,.0f} in the median of the window",
            remedies=[
                instances_remedy(
                    view,
                    "instances.min",
                    needed,
                    times,
                    "the only thing that helps in the first minutes of a spike",
                ),
                headroom,
                *faster,
            ],
        )
    outs = [
        a
        for a in scale_outs(view)
        if times[0] - view.period <= a.start <= times[-1] + _SCALING_REACTS
    ]
    said = "no scale-out in the window"
    if outs:
        said = f"the first instances were asked for at {view.measurements.clock(outs[0].start)}"
    more = f"up to {tracked.words(most)}; " if tracked and most else ""
    changes = list(faster)
    if scaling.scale_out_cooldown and scaling.scale_out_cooldown > 60:
        changes.append(
            Remedy(
                "scaling.scale_out_cooldown", f"now {readable(scaling.scale_out_cooldown)} s", "60s"
            )
        )
    changes += [headroom, Remedy("instances.min", "more at all times")]
    return _finding(
        view,
        SCALING_LAGS,
        "below the maximum, load above target",
        more + said,
        confidence="high" if outs else "medium",
        remedies=changes,
        besides="A rise at known hours is best met by a scheduled action ahead of it.",
    )
