"""Acting on scaling policies: alarms read, capacity moved, activities written down."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cloudwatch.alarm_api import put_metric_alarm
from ..cloudwatch.metric_alarms import alarm_queries, main_query
from ..cloudwatch.metric_api import get_metric_data
from ..cloudwatch.metric_store import as_moment
from ..cloudwatch.state import CloudWatchState, state_at
from ..hosting import Scaling, TargetKey, all_variants, hosting, scaling
from .clock import TICK
from .meter import Place

# Target tracking: the alarms of a policy, and the capacity that follows from them.
#
# Sources: Application Auto Scaling user guide, "How target tracking scaling works"; SageMaker
# developer guide, "Auto scaling policies". That the scale-in alarm stands at nine tenths of the
# target over fifteen minutes, and the scale-out alarm at the target over three, is what the alarms
# that AWS makes look like.


_LOW_SHARE = 0.9
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
    sides = [("AlarmHigh", "GreaterThanThreshold", target, period, 3)]
    if not configuration.get("DisableScaleIn"):
        sides.append(("AlarmLow", "LessThanThreshold", target * _LOW_SHARE, _MINUTE, 15))
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


def wanted_capacity(capacity: int, value: float, target: float, minimum: int, maximum: int) -> int:
    """Give the capacity that brings a metric per instance to its target.

    Examples
    --------
    >>> wanted_capacity(2, 900.0, 600.0, 1, 10), wanted_capacity(4, 100.0, 600.0, 1, 10)
    (3, 1)
    """
    wanted = math.ceil(capacity * value / target - 1e-9)
    return max(minimum, min(maximum, wanted))


_DEFAULT_COOLDOWN = 300.0
"""Seconds, for SageMaker. Source: SageMaker developer guide, "Auto scaling policies"."""

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


@dataclass
class _Cooling:
    """Since when a target's cooldowns count: the end of its last activities."""

    out: float = float("-inf")
    back: float = float("-inf")
    moving: bool = False


@dataclass
class TargetTracking:
    """Reads the alarms of every policy of a variant or component, and moves its capacity."""

    move: Move
    now: Callable[[], float]
    _cooling: dict[tuple[Place, TargetKey], _Cooling] = field(default_factory=dict)

    def act(self, place: Place, at: float) -> None:
        """Look at every target of an account and region once."""
        state = scaling(*place)
        for key in list(state.targets):
            if key[2] in DIMENSIONS:
                self._act_on(place, state, key, at)

    def _act_on(self, place: Place, state: Scaling, key: TargetKey, at: float) -> None:
        cooling = self._cooling.setdefault((place, key), _Cooling())
        target = state.targets.get(key)
        if target is None or cooling.moving:
            return
        capacity = _capacity(place, key)
        if capacity is None:
            return
        suspended = target["SuspendedState"]
        all_policies = [p for (owner, _), p in list(state.policies.items()) if owner == key]
        policies = [p for p in all_policies if p.get("TargetTrackingScalingPolicyConfiguration")]
        steps = [
            wish
            for policy in all_policies
            if policy.get("StepScalingPolicyConfiguration")
            and (wish := self._step(place, policy, target, capacity, at))
        ]
        outs = [wish for wish in steps if wish[0] > capacity]
        ins: list[tuple[int, Mapping[str, Any], str]] = []
        for policy in policies:
            wish = self._wish(place, policy, target, capacity, at)
            if wish is None:
                continue
            (outs if wish[0] > capacity else ins).append(wish)
        if outs and not suspended["DynamicScalingOutSuspended"]:
            best = max(outs, key=lambda wish: wish[0])
            cooldown = _cooldown(best[1], "ScaleOutCooldown")
            if at >= cooling.out + cooldown:
                self._begin(place, state, key, best, cooling, out=True)
            return
        # All tracking policies must agree to scale in, and the largest capacity is chosen. Source:
        # Application Auto Scaling user guide.
        ins = (ins if len(ins) == len(policies) else []) + [w for w in steps if w[0] < capacity]
        if ins and not outs and not suspended["DynamicScalingInSuspended"]:
            most = max(ins, key=lambda wish: wish[0])
            cooldown = _cooldown(most[1], "ScaleInCooldown")
            # A scale-in does not follow a scale-out sooner than its own cooldown either.
            if most[0] < capacity and at >= max(cooling.back, cooling.out) + cooldown:
                self._begin(place, state, key, most, cooling, out=False)

    def _wish(
        self,
        place: Place,
        policy: Mapping[str, Any],
        target: Mapping[str, Any],
        capacity: int,
        at: float,
    ) -> tuple[int, Mapping[str, Any], str] | None:
        """Give the capacity that a policy wants and the alarm it goes by; None for no change."""
        cloudwatch = state_at(place)
        goal = float(policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"])
        bounds = target["MinCapacity"], target["MaxCapacity"]
        for number, entry in enumerate(policy.get("Alarms") or []):
            alarm = cloudwatch.alarms.get(entry["AlarmName"])
            if alarm is None or alarm.state != "ALARM":
                continue
            values = _values(cloudwatch, alarm.settings, at)
            if not values:
                continue
            value = values[0] if number == 0 else max(values)
            wanted = wanted_capacity(capacity, value, goal, *bounds)
            if number == 0 and wanted > capacity:
                return wanted, policy, alarm.name
            if number == 1:
                return min(wanted, capacity), policy, alarm.name
        return None

    @staticmethod
    def _step(
        place: Place, policy: Mapping[str, Any], target: Mapping[str, Any], capacity: int, at: float
    ) -> tuple[int, Mapping[str, Any], str] | None:
        """Give what a step scaling policy wants of an alarm in ALARM; None for no change."""
        # Called each minute of the ALARM: CloudWatch user guide, "Alarm actions".
        cloudwatch = state_at(place)
        for alarm in list(cloudwatch.alarms.values()):
            settings = alarm.settings
            if policy["PolicyARN"] not in settings.get("AlarmActions", []) or at % _MINUTE >= TICK:
                continue
            if alarm.state != "ALARM" or not settings["ActionsEnabled"]:
                continue
            if settings.get("Threshold") is None:  # a composite's, or a band's: no step is known
                continue
            for value in _values(cloudwatch, settings, at)[:1]:
                wanted = stepped_capacity(
                    capacity,
                    value - float(settings["Threshold"]),
                    policy["StepScalingPolicyConfiguration"],
                    target["MinCapacity"],
                    target["MaxCapacity"],
                )
                if wanted != capacity:
                    return wanted, policy, alarm.name
        return None

    def _begin(
        self,
        place: Place,
        state: Scaling,
        key: TargetKey,
        wish: tuple[int, Mapping[str, Any], str],
        cooling: _Cooling,
        *,
        out: bool,
    ) -> None:
        count, policy, alarm = wish
        began = as_moment(self.now())
        # Of copies the words are ours.
        what = "copy" if key[1].startswith("inference-component/") else "instance"
        text = f"Setting desired {what} count to {count}."
        activity: dict[str, Any] = {
            "ActivityId": str(uuid.uuid4()),
            "ServiceNamespace": key[0],
            "ResourceId": key[1],
            "ScalableDimension": key[2],
            "Description": text,
            "Cause": f"monitor alarm {alarm} in state ALARM triggered policy "
            f"{policy['PolicyName']}",
            "StartTime": began,
            "StatusCode": "InProgress",
            "StatusMessage": f"Successfully set desired {what} count to {count}. Waiting for "
            "change to be fulfilled by sagemaker.",
        }

        def ended(problem: str | None) -> None:
            cooling.moving = False
            activity["EndTime"] = as_moment(self.now())
            activity["StatusCode"] = "Failed" if problem else "Successful"
            activity["StatusMessage"] = problem or (
                f"Successfully set desired {what} count to {count}. Change successfully "
                "fulfilled by sagemaker."
            )
            if not problem and out:
                cooling.out = self.now()
            elif not problem:
                cooling.back = self.now()

        cooling.moving = True
        if self.move(place, key[1], count, ended):
            state.activities.insert(0, activity)
        else:
            cooling.moving = False


def _cooldown(policy: Mapping[str, Any], name: str) -> float:
    if steps := policy.get("StepScalingPolicyConfiguration"):
        return float(steps.get("Cooldown", _DEFAULT_COOLDOWN))
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    return float(configuration.get(name, _DEFAULT_COOLDOWN))


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


def _values(state: CloudWatchState, settings: Mapping[str, Any], at: float) -> list[float]:
    """Give the datapoints that an alarm was judged by, the newest first."""
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
            return [float(value) for value in result["Values"]]
    return []
