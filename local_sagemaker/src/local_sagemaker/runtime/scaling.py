"""Acting on scaling policies: alarms read, capacity moved, activities written down.

The rules are in :mod:`.scaling_rules`.
"""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..cloudwatch.alarm_api import put_metric_alarm
from ..cloudwatch.metric_alarms import alarm_queries, main_query
from ..cloudwatch.metric_api import get_metric_data
from ..cloudwatch.metric_store import as_moment, as_seconds
from ..cloudwatch.state import AlarmRecord, CloudWatchState, state_at
from ..hosting import Scaling, TargetKey, all_variants, hosting, scaling
from .clock import TICK
from .meter import Place
from .scaling_rules import (
    DEFAULT_COOLDOWN,
    IN_MINUTES,
    IN_SHARE,
    OUT_DATAPOINTS,
    Cooldowns,
    calls_policy,
    wanted_capacity,
    within,
)
from .scheduled_actions import is_due

_MINUTE = 60

PREDEFINED: dict[str, tuple[str, str, int]] = {
    "SageMakerVariantInvocationsPerInstance": ("InvocationsPerInstance", "Sum", _MINUTE),
    # AWS lists Minimum and Maximum for this metric; the busiest instance decides here.
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "ConcurrentRequestsPerModel",
        "Maximum",
        10,
    ),
    "SageMakerInferenceComponentInvocationsPerCopy": ("InvocationsPerCopy", "Sum", _MINUTE),
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        "ConcurrentRequestsPerCopy",
        "Maximum",
        10,
    ),
}
"""Metric, statistic and period in seconds of the predefined metrics."""

DIMENSIONS = frozenset(
    {"sagemaker:variant:DesiredInstanceCount", "sagemaker:inference-component:DesiredCopyCount"}
)
"""The scalable dimensions that are acted on."""


def _queries(
    configuration: Mapping[str, Any], resource_id: str, period: int
) -> list[dict[str, Any]] | dict[str, Any] | None:
    """Give the metric of an alarm: fields of one metric, or queries; None when it is not known."""
    predefined = configuration.get("PredefinedMetricSpecification")
    if predefined:
        known = PREDEFINED.get(predefined["PredefinedMetricType"])
        if known is None:
            return None
        names: tuple[str, ...] = ("EndpointName", "VariantName")
        if resource_id.startswith("inference-component/"):
            names = ("InferenceComponentName",)
        return {
            "Namespace": "AWS/SageMaker",
            "MetricName": known[0],
            "Statistic": known[1],
            "Period": period,
            "Dimensions": [
                {"Name": name, "Value": value}
                for name, value in zip(names, resource_id.split("/")[1::2], strict=True)
            ],
        }
    custom = configuration.get("CustomizedMetricSpecification") or {}
    if custom.get("Metrics"):
        return [_query(query) for query in custom["Metrics"]]
    if not custom.get("MetricName"):
        return None
    return {
        "Namespace": custom["Namespace"],
        "MetricName": custom["MetricName"],
        "Statistic": custom["Statistic"],
        "Period": period,
        "Unit": custom.get("Unit"),
        "Dimensions": custom.get("Dimensions") or [],
    }


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    stat = query.get("MetricStat")
    if not stat:
        return dict(query)
    return {**query, "MetricStat": {"Period": _MINUTE, **stat}}


def alarm_requests(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write a policy's alarms for PutMetricAlarm: to scale out, then in unless that is off."""
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    predefined = configuration.get("PredefinedMetricSpecification") or {}
    period = PREDEFINED.get(predefined.get("PredefinedMetricType", ""), ("", "", _MINUTE))[2]
    target = float(configuration["TargetValue"])
    sides = [("AlarmHigh", "GreaterThanThreshold", target, period, OUT_DATAPOINTS)]
    if not configuration.get("DisableScaleIn"):
        sides.append(("AlarmLow", "LessThanThreshold", IN_SHARE * target, _MINUTE, IN_MINUTES))
    requests = []
    for side, operator, threshold, length, count in sides:
        metric = _queries(configuration, policy["ResourceId"], length)
        if metric is None:
            return []
        fields = {"Metrics": metric} if isinstance(metric, list) else metric
        requests.append(
            {
                "AlarmName": f"TargetTracking-{policy['ResourceId']}-{side}-{uuid.uuid4()}",
                "AlarmDescription": "DO NOT EDIT OR DELETE. For TargetTrackingScaling policy "
                f"{policy['PolicyARN']}.",
                "ComparisonOperator": operator,
                "Threshold": threshold,
                "EvaluationPeriods": count,
                "AlarmActions": [policy["PolicyARN"]],
                "TreatMissingData": "missing",
                **{name: value for name, value in fields.items() if value is not None},
            }
        )
    return requests


Move = Callable[[Place, str, int, Callable[[str | None], None]], bool]
"""Place, resource id, count, and what to call at the end with what went wrong.

Gives whether it was begun.
"""


def stepped_capacity(
    capacity: int, breach: float, settings: Mapping[str, Any], minimum: int, maximum: int
) -> int:
    """Give the capacity that a step scaling policy wants.

    Source: Application Auto Scaling user guide, "How step scaling works".

    Examples
    --------
    >>> steps = [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]
    >>> settings = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": steps}
    >>> [stepped_capacity(0, breach, settings, 0, 3) for breach in (4.0, -1.0)]
    [1, 0]
    >>> stepped_capacity(5, 0.0, {**settings, "AdjustmentType": "ExactCapacity"}, 2, 9)
    2
    """
    for step in settings.get("StepAdjustments") or []:
        lower, upper = (step.get(f"MetricInterval{side}Bound") for side in ("Lower", "Upper"))
        lower, upper = -math.inf if lower is None else lower, math.inf if upper is None else upper
        # Above the threshold a step has its lower bound, below it its upper one.
        if not (lower <= breach < upper if breach >= 0 else lower < breach <= upper):
            continue
        amount = float(step["ScalingAdjustment"])
        if settings.get("AdjustmentType") == "ExactCapacity":
            return max(minimum, min(maximum, round(amount)))
        if settings.get("AdjustmentType") == "PercentChangeInCapacity":
            amount = math.trunc(capacity * amount / 100) or math.copysign(bool(amount), amount)
            least = settings.get("MinAdjustmentMagnitude") or 0
            amount = math.copysign(max(abs(amount), least), amount)
        return max(minimum, min(maximum, capacity + round(amount)))
    return capacity


def make_alarms(place: Place, policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Make the alarms of a policy; gives them as the policy lists them."""
    state, made = state_at(place), []
    for request in alarm_requests(policy):
        put_metric_alarm(state, request)
        alarm = state.alarms[request["AlarmName"]]
        made.append({"AlarmName": alarm.name, "AlarmARN": alarm.alarm_arn})
    return made


def drop_alarms(place: Place, policy: Mapping[str, Any]) -> None:
    state = state_at(place)
    with state.lock:
        for alarm in policy.get("Alarms") or []:
            state.alarms.pop(alarm["AlarmName"], None)


class _Wish(NamedTuple):
    """A capacity that a policy or a limit asks for."""

    capacity: int
    change: int  # by which the cooldowns judge it
    cooldown: float | None  # seconds; None for a limit, which begins none
    cause: str


_PERIODS_KEPT = 100  # ticks: more than the fifteen minutes of a scale-in alarm


@dataclass
class _Progress:
    """What is under way at a scalable target, and how many instances served until now."""

    cooldowns: Cooldowns = field(default_factory=Cooldowns)
    moving: bool = False
    failed_at: float = -math.inf
    counts: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_PERIODS_KEPT))

    def note(self, at: float, capacity: int | None) -> None:
        """Note the instances that served in the tick up to now; during an update those before it."""
        if capacity is not None:
            self.counts.append((at, capacity))
        elif self.counts:
            self.counts.append((at, self.counts[-1][1]))

    def served(self, begin: float, end: float) -> float:
        """Give the instances that served in a period, on average."""
        counts = [count for at, count in self.counts if begin < at <= end]
        return sum(counts) / len(counts) if counts else float(self.counts[-1][1])


@dataclass
class TargetTracking:
    """Reads the alarms of every policy of a variant or component, and moves its capacity."""

    move: Move
    now: Callable[[], float]
    _progress: dict[tuple[Place, TargetKey], _Progress] = field(default_factory=dict)

    def act(self, place: Place, at: float) -> None:
        """Look at every target of an account and region once."""
        state = scaling(*place)
        if at % _MINUTE < TICK:
            _run_scheduled_actions(state, at)
        for key in list(state.targets):
            if key[2] in DIMENSIONS:
                self._act_on(place, state, key, at)

    def _act_on(self, place: Place, state: Scaling, key: TargetKey, at: float) -> None:
        progress = self._progress.setdefault((place, key), _Progress())
        capacity = _capacity(place, key)
        progress.note(at, capacity)
        if capacity is None or progress.moving:
            return
        if self._keep_within_limits(place, state, key):
            return
        wish = self._wish_of_policies(place, state, key, capacity, at)
        if wish is not None:
            self._begin(place, state, key, wish)

    def _keep_within_limits(self, place: Place, state: Scaling, key: TargetKey) -> bool:
        """Move a capacity that limits which were just set do not allow; whether that was asked for.

        What failed is tried again after a minute: AWS does not say when. A capacity that somebody
        else changes stays where it is, as was measured for another service: DDB-TABLE-315 of
        ack-api-quirks.
        """
        target = state.targets.get(key)
        capacity = _capacity(place, key)
        if target is None or capacity is None or key not in state.limits_set:
            return False
        if self.now() < self._progress[place, key].failed_at + _MINUTE:
            return False
        allowed = within(capacity, target["MinCapacity"], target["MaxCapacity"])
        if allowed == capacity:
            state.limits_set.discard(key)
            return False
        limit = "minimum" if allowed > capacity else "maximum"
        cause = f"{limit} capacity was set to {allowed}"
        self._begin(place, state, key, _Wish(allowed, allowed - capacity, None, cause))
        return True

    def _wish_of_policies(
        self, place: Place, state: Scaling, key: TargetKey, capacity: int, at: float
    ) -> _Wish | None:
        """Give the change to make for the policies of a target, the largest capacity of all."""
        target = state.targets[key]
        progress = self._progress[place, key]
        suspended = target["SuspendedState"]
        all_policies = [p for (owner, _), p in list(state.policies.items()) if owner == key]
        policies = [p for p in all_policies if p.get("TargetTrackingScalingPolicyConfiguration")]
        base = progress.cooldowns.step_base(at, capacity)
        steps = [
            wish
            for policy in all_policies
            if policy.get("StepScalingPolicyConfiguration")
            and (wish := _step(place, policy, target, capacity, base, at))
        ]
        tracked = [
            wish
            for policy in policies
            if (wish := _track(place, policy, target, capacity, progress, at))
        ]
        outs = [wish for wish in (*steps, *tracked) if wish.capacity > capacity]
        if outs:
            if suspended["DynamicScalingOutSuspended"]:
                return None
            wishes = outs
        else:
            if suspended["DynamicScalingInSuspended"]:
                return None
            agreed: list[_Wish] = []
            if tracked:
                agreed = _agreed_scale_in(place, policies, target, capacity, progress, at)
            wishes = [*agreed, *(wish for wish in steps if wish.capacity < capacity)]
        if not wishes:
            return None
        best = max(wishes, key=lambda wish: wish.capacity)
        held = best.capacity == capacity or progress.cooldowns.hold(at, best.change)
        return None if held else best

    def _begin(self, place: Place, state: Scaling, key: TargetKey, wish: _Wish) -> None:
        progress = self._progress[place, key]
        count, cooldown = wish.capacity, wish.cooldown
        # Of copies the words are ours.
        what = "copy" if key[1].startswith("inference-component/") else "instance"
        activity = _activity(
            key, f"Setting desired {what} count to {count}.", wish.cause, self.now()
        )
        activity["StatusCode"] = "InProgress"
        activity["StatusMessage"] = (
            f"Successfully set desired {what} count to {count}. Waiting for change to be fulfilled by "
            "sagemaker."
        )

        def ended(problem: str | None) -> None:
            progress.moving = False
            activity["EndTime"] = as_moment(self.now())
            activity["StatusCode"] = "Failed" if problem else "Successful"
            activity["StatusMessage"] = problem or (
                f"Successfully set desired {what} count to {count}. Change successfully "
                "fulfilled by sagemaker."
            )
            if problem:
                progress.failed_at = self.now()
            elif cooldown is not None:
                progress.cooldowns.end(self.now(), wish.change, cooldown)
            self._keep_within_limits(place, state, key)

        progress.moving = True
        if cooldown is not None:
            progress.cooldowns.begin(wish.change)
        if self.move(place, key[1], count, ended):
            state.activities.insert(0, activity)
        else:
            progress.moving = False


def _run_scheduled_actions(state: Scaling, at: float) -> None:
    """Set the limits of the scheduled actions that are due in this minute, in their order.

    Source of the words: Application Auto Scaling user guide, "Describe scaling activities for a
    service". Where an action sets one limit they are ours.
    """
    for (key, name), action in list(state.actions.items()):
        target = state.targets.get(key)
        if target is None or target["SuspendedState"]["ScheduledScalingSuspended"]:
            continue
        if not is_due(action, at - at % _MINUTE):
            continue
        limits = action.get("ScalableTargetAction") or {}
        target.update(limits)
        state.limits_set.add(key)
        set_to = [
            f"{short} capacity to {limits[limit]}"
            for short, limit in (("min", "MinCapacity"), ("max", "MaxCapacity"))
            if limit in limits
        ]
        text = " and ".join(set_to)
        cause = f"scheduled action name {name} was triggered"
        activity = _activity(key, f"Setting {text}", cause, at)
        done = {"StatusCode": "Successful", "StatusMessage": f"Successfully set {text}"}
        state.activities.insert(0, activity | done)


def _activity(key: TargetKey, description: str, cause: str, at: float) -> dict[str, Any]:
    return {
        "ActivityId": str(uuid.uuid4()),
        "ServiceNamespace": key[0],
        "ResourceId": key[1],
        "ScalableDimension": key[2],
        "Description": description,
        "Cause": cause,
        "StartTime": as_moment(at),
    }


def _agreed_scale_in(
    place: Place,
    policies: Sequence[Mapping[str, Any]],
    target: Mapping[str, Any],
    capacity: int,
    progress: _Progress,
    at: float,
) -> list[_Wish]:
    """Give what tracking policies want if all that scale in are ready for it; else nothing.

    One of them is called; the alarms of the others are in ALARM, since whenever. The largest capacity
    is chosen. Source: Application Auto Scaling user guide, "Multiple scaling policies".
    """
    scaling_in = [policy for policy in policies if not _only_scales_out(policy)]
    wishes = [
        _track(place, policy, target, capacity, progress, at, called=False) for policy in scaling_in
    ]
    ready = [wish for wish in wishes if wish is not None and wish.capacity <= capacity]
    return ready if len(ready) == len(scaling_in) else []


def _only_scales_out(policy: Mapping[str, Any]) -> bool:
    return bool(policy["TargetTrackingScalingPolicyConfiguration"].get("DisableScaleIn"))


def _track(
    place: Place,
    policy: Mapping[str, Any],
    target: Mapping[str, Any],
    capacity: int,
    progress: _Progress,
    at: float,
    *,
    called: bool = True,
) -> _Wish | None:
    """Give the capacity that a tracking policy wants of its alarm, or None.

    ``called`` asks for an alarm that calls it now; else one in ALARM is enough.
    """
    cloudwatch = state_at(place)
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    goal = float(configuration["TargetValue"])
    limits = target["MinCapacity"], target["MaxCapacity"]
    for number, entry in enumerate(policy.get("Alarms") or []):
        alarm = cloudwatch.alarms.get(entry["AlarmName"])
        if alarm is None:
            continue
        if not (_calls(alarm, at) if called else alarm.state == "ALARM"):
            continue
        loads = _loads(cloudwatch, configuration, alarm.settings, progress, at)
        if not loads:
            continue
        load = loads[0] if number == 0 else max(loads)
        wanted = within(wanted_capacity(load, goal), *limits)
        cause = _cause(alarm, policy)
        if number == 0 and wanted > capacity:
            cooldown = float(configuration.get("ScaleOutCooldown", DEFAULT_COOLDOWN))
            return _Wish(wanted, wanted - capacity, cooldown, cause)
        if number == 1:
            wanted = min(wanted, capacity)
            cooldown = float(configuration.get("ScaleInCooldown", DEFAULT_COOLDOWN))
            return _Wish(wanted, wanted - capacity, cooldown, cause)
    return None


def _step(
    place: Place,
    policy: Mapping[str, Any],
    target: Mapping[str, Any],
    capacity: int,
    base: int,
    at: float,
) -> _Wish | None:
    """Give what a step scaling policy wants of an alarm that calls it; None for no change."""
    cloudwatch = state_at(place)
    steps = policy["StepScalingPolicyConfiguration"]
    cooldown = float(steps.get("Cooldown", DEFAULT_COOLDOWN))
    limits = target["MinCapacity"], target["MaxCapacity"]
    for alarm in list(cloudwatch.alarms.values()):
        settings = alarm.settings
        if policy["PolicyARN"] not in settings.get("AlarmActions", []):
            continue
        if not settings["ActionsEnabled"] or not _calls(alarm, at):
            continue
        if settings.get("Threshold") is None:  # a composite's, or a band's: no step is known
            continue
        for _, value in _points(cloudwatch, settings, at)[:1]:
            breach = value - float(settings["Threshold"])
            wanted = stepped_capacity(capacity, breach, steps, *limits)
            change = wanted - capacity
            if change > 0:
                wanted = stepped_capacity(base, breach, steps, *limits)
                change = wanted - base
            if wanted > capacity or change < 0:
                return _Wish(wanted, change, cooldown, _cause(alarm, policy))
    return None


def _calls(alarm: AlarmRecord, at: float) -> bool:
    """Say whether an alarm calls its policies at a tick."""
    if alarm.state != "ALARM":
        return False
    return calls_policy(at - as_seconds(alarm.outcome["StateTransitionedTimestamp"]), TICK)


def _cause(alarm: AlarmRecord, policy: Mapping[str, Any]) -> str:
    return f"monitor alarm {alarm.name} in state ALARM triggered policy {policy['PolicyName']}"


def _capacity(place: Place, key: TargetKey) -> int | None:
    """Give a variant's instances or a component's copies; None while it is not in service."""
    _, name, *rest = key[1].split("/")
    if not rest:
        component = hosting(*place).components.get(name)
        if component is None or component["InferenceComponentStatus"] != "InService":
            return None
        copies: int = component["RuntimeConfig"]["DesiredCopyCount"]
        return copies
    variant_name = rest[-1]
    endpoint = hosting(*place).endpoints.get(name)
    if endpoint is None or endpoint["EndpointStatus"] != "InService":
        return None
    for variant in all_variants(endpoint):
        if variant["VariantName"] == variant_name:
            count: int | None = variant.get("DesiredInstanceCount")
            return count
    return None


def _loads(
    state: CloudWatchState,
    configuration: Mapping[str, Any],
    settings: Mapping[str, Any],
    progress: _Progress,
    at: float,
) -> list[float]:
    """Give the load of each period that a tracking policy's alarm was judged by, the newest first."""
    predefined = configuration.get("PredefinedMetricSpecification") or {}
    _, statistic, period = PREDEFINED.get(predefined.get("PredefinedMetricType", ""), ("", "", 0))
    if statistic == "Sum":  # invocations per instance; all of them are a metric too
        settings = {**settings, "MetricName": "Invocations"}
        return [value for _, value in _points(state, settings, at)]
    if period:  # the alarm for scale-in has the high-resolution metric by the minute
        count = int(settings["EvaluationPeriods"]) * int(settings["Period"]) // period
        settings = {**settings, "Period": period, "EvaluationPeriods": count}
    length = period or _MINUTE
    return [
        value * progress.served(begin, begin + length)
        for begin, value in _points(state, settings, at)
    ]


def _points(
    state: CloudWatchState, settings: Mapping[str, Any], at: float
) -> list[tuple[float, float]]:
    """Give the datapoints that an alarm was judged by, each with its begin, the newest first."""
    queries = alarm_queries(settings)
    main = main_query(settings, queries)
    stat = main.get("MetricStat") or {}
    period = int(stat.get("Period") or main.get("Period") or 60)
    step = 10 if period < 60 else 60
    end = at - at % step
    request = {
        "MetricDataQueries": queries,
        "StartTime": end - period * int(settings["EvaluationPeriods"]),
        "EndTime": end,
    }
    for result in get_metric_data(state, request)["MetricDataResults"]:
        if result["Id"] == main["Id"]:
            times = [as_seconds(moment) for moment in result["Timestamps"]]
            return list(zip(times, map(float, result["Values"]), strict=True))
    return []
