"""Acting on target tracking policies: alarms read, capacity moved, activities written down."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.models import cloudwatch_backends

from ..cloudwatch.alarm_api import put_metric_alarm
from ..cloudwatch.metric_alarms import alarm_queries, main_query
from ..cloudwatch.metric_api import get_metric_data
from ..cloudwatch.state import CloudWatchState, state_of
from ..hosting import Scaling, TargetKey, hosting, scaling
from .meter import Place
from .target_tracking import alarm_requests, wanted_capacity

__all__ = ["TargetTracking", "drop_alarms", "make_alarms"]

_DEFAULT_COOLDOWN = 300.0
"""Seconds, for SageMaker. Source: SageMaker developer guide, "Auto scaling policies"."""

Move = Callable[[Place, str, str, int, Callable[[str | None], None]], bool]
"""Place, endpoint, variant, count, and what to call at the end with what went wrong.

Gives whether it was begun.
"""


def _cloudwatch(place: Place) -> CloudWatchState:
    return state_of(cloudwatch_backends[place[0]][place[1]])


def make_alarms(place: Place, policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Make the alarms of a policy; gives them as the policy lists them."""
    state, made = _cloudwatch(place), []
    for request in alarm_requests(policy):
        put_metric_alarm(state, request)
        alarm = state.alarms[request["AlarmName"]]
        made.append({"AlarmName": alarm.name, "AlarmARN": alarm.alarm_arn})
    return made


def drop_alarms(place: Place, policy: Mapping[str, Any]) -> None:
    """Delete the alarms of a policy that goes."""
    state = _cloudwatch(place)
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
    """Reads the alarms of every policy of a variant, and moves its capacity.

    Parameters
    ----------
    move
        Changes the instance count of a variant.
    now
        The runtime's clock.
    """

    move: Move
    now: Callable[[], float]
    _cooling: dict[tuple[Place, TargetKey], _Cooling] = field(default_factory=dict)

    def act(self, place: Place, at: float) -> None:
        """Look at every target of an account and region once."""
        state = scaling(*place)
        for key in list(state.targets):
            if key[2] == "sagemaker:variant:DesiredInstanceCount":
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
        policies = [
            policy for (owner, _), policy in list(state.policies.items())
            if owner == key and policy.get("TargetTrackingScalingPolicyConfiguration")
        ]
        outs: list[tuple[int, Mapping[str, Any], str]] = []
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
        # All policies must agree to scale in. Source: Application Auto Scaling user guide.
        elif ins and len(ins) == len(policies) and not suspended["DynamicScalingInSuspended"]:
            most = max(ins, key=lambda wish: wish[0])
            cooldown = _cooldown(most[1], "ScaleInCooldown")
            # A scale-in does not follow a scale-out sooner than its own cooldown either.
            if most[0] < capacity and at >= max(cooling.back, cooling.out) + cooldown:
                self._begin(place, state, key, most, cooling, out=False)

    def _wish(
        self, place: Place, policy: Mapping[str, Any], target: Mapping[str, Any], capacity: int,
        at: float,
    ) -> tuple[int, Mapping[str, Any], str] | None:
        """Give the capacity that a policy wants and the alarm it goes by; None for no change."""
        cloudwatch = _cloudwatch(place)
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

    def _begin(
        self, place: Place, state: Scaling, key: TargetKey,
        wish: tuple[int, Mapping[str, Any], str], cooling: _Cooling, *, out: bool,
    ) -> None:
        count, policy, alarm = wish
        began = _moment(self.now())
        text = f"Setting desired instance count to {count}."
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
            "StatusMessage": f"Successfully set desired instance count to {count}. Waiting for "
            "change to be fulfilled by sagemaker.",
        }

        def ended(problem: str | None) -> None:
            cooling.moving = False
            activity["EndTime"] = _moment(self.now())
            activity["StatusCode"] = "Failed" if problem else "Successful"
            activity["StatusMessage"] = problem or (
                f"Successfully set desired instance count to {count}. Change successfully "
                "fulfilled by sagemaker."
            )
            if not problem and out:
                cooling.out = self.now()
            elif not problem:
                cooling.back = self.now()

        _, endpoint, _, variant = key[1].split("/")
        cooling.moving = True
        if self.move(place, endpoint, variant, count, ended):
            state.activities.insert(0, activity)
        else:
            cooling.moving = False


def _cooldown(policy: Mapping[str, Any], name: str) -> float:
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    return float(configuration.get(name, _DEFAULT_COOLDOWN))


def _capacity(place: Place, key: TargetKey) -> int | None:
    """Give a variant's instances; None while its endpoint is not in service."""
    _, name, _, variant_name = key[1].split("/")
    endpoint = hosting(*place).endpoints.get(name)
    if endpoint is None or endpoint["EndpointStatus"] != "InService":
        return None
    for variant in endpoint.get("ProductionVariants") or []:
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


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
