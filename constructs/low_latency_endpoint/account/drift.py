"""What somebody changed by hand: an endpoint against the template that is deployed.

CloudFormation compares templates, so the next deployment leaves what was changed by hand. One with
``--revert-drift`` also compares the template with the account, of the types whose drift
CloudFormation detects, in the properties that the template states
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/drift-aware-change-sets.html).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from botocore import xform_name

from ..errors.shell_words import shell_word
from ..plan.standing_ranges import CapacityRange
from .alarms import alarms_named
from .calls import Account, json_object
from .clock import account_now
from .endpoints import (
    DeployedEndpoint,
    describe_configuration,
    describe_endpoint,
    model_description,
)
from .scaling import scalable_targets, scaling_policies, tracked_metric
from .scheduled_ranges import due_ranges, nearest
from .sessions import Unreadable
from .stacks import ENDPOINT_TYPE, StackEndpoint, stack_description, stack_ids, template_resources

REVERT = "npx cdk deploy --revert-drift"
#: What puts back a property of a type whose drift CloudFormation detects.
REVERTED = f"`{REVERT}` puts it back; without the option a deployment leaves it."
_YOURS = "If it is yours, put it into the settings. Else "
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
CONFIGURATION, MODEL = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model"
#: No type of CloudFormation has these: the endpoint's weights and counts while it runs.
CAPACITY = "weights and capacities"
_STAYING = "DynamicScalingInSuspended"
_LIMITS = ("MinCapacity", "MaxCapacity")
#: Numbers of instances, of which more are more capacity.
_COUNTS = (*_LIMITS, "DesiredInstanceCount")
#: Not compared: ActionsEnabled has a check of its own, CloudWatch does not keep the others in order.
_APART = ("ActionsEnabled", "Dimensions", "Metrics", "Tags")


@dataclass(frozen=True, slots=True)
class DriftedProperty:
    """A literal of the template that is not what was found."""

    path: str
    found: Any
    stated: Any

    def __str__(self) -> str:
        return f"{self.path} is {_text(self.found)}, the template says {_text(self.stated)}"

    @property
    def adds_capacity(self) -> bool:
        """Whether there are, or may be, more instances by it."""
        if self.path == _STAYING:
            return True
        try:
            more = float(self.found) - float(self.stated)
        except (TypeError, ValueError):
            return False
        return more > 0 if self.path in _COUNTS else more < 0 and self.path == "TargetValue"


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference between the account and the template; a missing resource has no ``differences``."""

    type: str  # CloudFormation's
    text: str  # a description
    repair: str  # what puts it back
    call: str  # the API operation that makes such a change
    named: str  # how a request of that operation names the resource
    differences: tuple[DriftedProperty, ...] = ()
    variant: str = ""  # empty where it is not of one variant
    since: datetime | None = None  # when it was changed last, where its service tells
    pages: bool = False  # whether it is an alarm with actions of its own: somebody is called by it
    at_once: str = ""  # a command that puts back this alone, without a deployment

    @property
    def words(self) -> str:
        """The description, with the variant that it is of."""
        return f"{self.variant}: {self.text}" if self.variant else self.text

    @property
    def paused(self) -> bool:
        """Whether it is only switched off: scaling, or an alarm's actions."""
        off = any(difference.stated is None for difference in self.differences)
        return off or self.call == "DisableAlarmActions"

    @property
    def adds_capacity(self) -> bool:
        """Whether there are, or may be, more instances by it: as somebody does against a fault."""
        return bool(self.differences) and all(each.adds_capacity for each in self.differences)

    @property
    def deleted(self) -> bool:
        """Whether it is of what serves, which is gone."""
        return self.type in (CONFIGURATION, MODEL)

    @property
    def properties(self) -> set[str]:
        """Names of the properties that differ, without their places in a list."""
        return {re.sub(r"\[\d+\]", "", each.path).rpartition(".")[2] for each in self.differences}


@dataclass(frozen=True, slots=True)
class ChangedBy:
    time: datetime
    who: str  # an ARN, where CloudTrail tells one
    call: str


def differences(stated: Any, found: Any, path: str = "") -> Iterator[DriftedProperty]:
    """Each stated literal that is not what was found.

    References and functions of CloudFormation are no literals, and what only the service adds is
    no difference.

    >>> [*map(str, differences({"Threshold": 160000, "Dimensions": {"Ref": "X"}},
    ...                        {"Threshold": 200000.0, "Period": 60}))]
    ['Threshold is 200000, the template says 160000']
    """
    if isinstance(stated, Mapping):
        if any(key == "Ref" or key.startswith("Fn::") for key in stated):
            return
        for key, value in stated.items():
            inner = found.get(key) if isinstance(found, Mapping) else None
            yield from differences(value, inner, f"{path}.{key}" if path else key)
    elif isinstance(stated, list):
        others = found if isinstance(found, list) else []
        if len(others) != len(stated):
            yield DriftedProperty(path, f"{len(others)} entries", f"{len(stated)} entries")
        else:
            for number, value in enumerate(stated):
                yield from differences(value, others[number], f"{path}[{number}]")
    elif not _same(stated, found):
        yield DriftedProperty(path, found, stated)


def _same(stated: Any, found: Any) -> bool:
    """Whether two literals are one; of a number and a text, whether the text is that number."""
    if isinstance(stated, bool) or isinstance(found, bool):
        return str(stated).lower() == str(found).lower()
    if isinstance(stated, str) and isinstance(found, str):
        return stated == found
    numbers = _number(stated), _number(found)
    return bool(stated == found) if None in numbers else numbers[0] == numbers[1]


def _number(value: Any) -> Decimal | None:
    """The number that a literal is, as JSON writes numbers; None of anything else."""
    return Decimal(str(value)) if _NUMBER.fullmatch(str(value)) else None


def _text(value: Any) -> str:
    if isinstance(value, float) and abs(value) < 1e6:
        return f"{value:g}"
    return "nothing" if value is None else str(value)


def drifts(account: Account, stack: str, endpoint: StackEndpoint) -> list[Drift]:
    """The differences between an endpoint and its stack's template.

    What cannot be read is added to :attr:`.Account.unknown`.

    Instances that scaling started are no drift, nor is what a deployment is changing: of a stack
    that is not complete nothing is told, and that is unknown too.
    """

    def part(account: Account, which: str) -> list[Drift]:
        return list(_PARTS[which](account, stack, endpoint))

    found = (account.known(f"changes by hand of {which}", part, which) for which in _PARTS)
    drifted = [drift for each in found for drift in each or ()]
    if drifted and not account.known("what was changed by hand", _complete, stack):
        return []
    return drifted


def _updated(account: Account, stack: str) -> datetime | None:
    """When the stack was updated last, or created."""
    description = stack_description(account, stack) or {}
    return description.get("LastUpdatedTime") or description.get("CreationTime")


def _complete(account: Account, stack: str) -> bool:
    status = (stack_description(account, stack) or {}).get("StackStatus", "gone")
    if not status.endswith("_COMPLETE"):
        raise Unreadable(f"{stack} is {status}")
    return True


def changed_by(account: Account, drift: Drift) -> ChangedBy | None:
    """Who made the change last, of the newest 50 such calls in CloudTrail's 90 days."""
    found = account.read(
        "cloudtrail",
        "lookup_events",
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": drift.call}],
        MaxResults=50,
    )
    for each in found.get("Events", ()):
        event = json_object(each.get("CloudTrailEvent"))
        user = event.get("userIdentity") or {}
        asked = json.dumps(event.get("requestParameters")).lower()
        mine = f'"{drift.named}"'.lower() in asked
        touched = not drift.differences or any(key.lower() in asked for key in drift.properties)
        # A service that acts for somebody, such as CloudFormation, is named in `invokedBy`.
        if mine and touched and "invokedBy" not in user and not event.get("errorCode"):
            who = str(user.get("arn") or each.get("Username") or "somebody")
            return ChangedBy(each["EventTime"], who, drift.call)
    return None


# ----------------------------------------------------------------------------------------- scaling


Stated = tuple[Mapping[str, Any], dict[str, Mapping[str, Any]]]  # a target, its policies by ID


def stated_targets(account: Account, stack: str, endpoint: StackEndpoint) -> dict[str, Stated]:
    """Variant name to its scalable target and policies, as the template states them."""
    resources = template_resources(account, stack)
    targets = {}
    for logical_id, resource in resources.items():
        properties = resource.get("Properties") or {}
        text = json.dumps(properties.get("ResourceId", ""))
        ours = f'"{endpoint.logical_id}"' in text or f"/{endpoint.name}/" in text
        if resource["Type"] != TARGET or not ours:
            continue
        variant = text.rpartition("/variant/")[2].partition('"')[0]
        policies = {
            name: other["Properties"]
            for name, other in resources.items()
            if other["Type"] == POLICY
            and other["Properties"].get("ScalingTargetId") == {"Ref": logical_id}
        }
        targets[variant] = (properties, policies)
    return targets


def scheduled_limits(target: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The limits that each scheduled action of a stated target sets."""
    actions = target.get("ScheduledActions") or ()
    return [action.get("ScalableTargetAction") or {} for action in actions]


def range_differences(
    stated: Mapping[str, Any],
    found: Mapping[str, Any],
    now: datetime,
    updated: datetime | None = None,
) -> Iterator[DriftedProperty]:
    """Limits of a scalable target that are not due now, by the template and its set times.

    >>> night = {"ScalableTargetAction": {"MinCapacity": 2}}
    >>> stated = {"MinCapacity": 4, "MaxCapacity": 9, "ScheduledActions": [night]}
    >>> list(range_differences(stated, {"MinCapacity": 2, "MaxCapacity": 9}, datetime.now()))
    []
    >>> changed = range_differences(stated, {"MinCapacity": 3, "MaxCapacity": 9}, datetime.now())
    >>> [*map(str, changed)]
    ['MinCapacity is 3, the template says 4']
    """
    ranges = due_ranges(stated, now, updated) if stated.get("ScheduledActions") else None
    if ranges:
        capacity = CapacityRange(*(found[key] for key in _LIMITS))
        yield from differences(dict(zip(_LIMITS, nearest(ranges, capacity), strict=True)), found)
        return
    for key in _LIMITS:
        at_times = [limits[key] for limits in scheduled_limits(stated) if key in limits]
        if key in stated and found.get(key) not in at_times:
            yield from differences({key: stated[key]}, found)


def scaling_drifts(account: Account, stack: str, endpoint: StackEndpoint) -> Iterator[Drift]:
    """Limits, policies and suspended scaling of each variant that the template scales."""
    stated = stated_targets(account, stack, endpoint)
    by_hours = any(properties.get("ScheduledActions") for properties, _ in stated.values())
    now, updated = account_now(), _updated(account, stack) if by_hours else None
    targets = scalable_targets(account, endpoint.name, stated)
    names = stack_ids(account, stack, POLICY)
    for variant, (properties, policies) in stated.items():
        resource = f"endpoint/{endpoint.name}/variant/{variant}"
        of_target = partial(Drift, TARGET, named=resource, variant=variant)
        target = targets.get(variant)
        if target is None:
            yield of_target(
                "not registered: the number of instances does not follow the load",
                f"{REVERTED} Then `low-latency verify`: its policies went with it.",
                "DeregisterScalableTarget",
            )
            continue
        for limit in range_differences(properties, target, now, updated):
            option = xform_name(limit.path, "-")
            at_once = (
                f"{_scaling_command('register-scalable-target')} "
                f"--resource-id {shell_word(resource)} "
                f"--{option} {shell_word(_text(limit.stated))}"
            )
            scheduled = limit.stated != properties.get(limit.path)
            repair = f"`{at_once}`: a scheduled action sets this number." if scheduled else REVERTED
            yield of_target(
                str(limit),
                _YOURS + repair if limit.adds_capacity else repair,
                "RegisterScalableTarget",
                differences=(limit,),
                at_once=at_once,
            )
        if "SuspendedState" not in properties:
            yield from _suspended(target, resource, variant)
        live = scaling_policies(account, endpoint.name, variant)
        for logical_id, policy in policies.items():
            name = names.get(logical_id, "").rpartition("/")[2]
            yield from _policy_drift(policy, live, name, resource, variant)


def _suspended(target: Mapping[str, Any], resource: str, variant: str) -> Iterator[Drift]:
    """What is suspended: what keeps instances from coming apart from what keeps them there."""
    suspended = [key for key, value in (target.get("SuspendedState") or {}).items() if value]
    staying = [key for key in suspended if key == _STAYING]
    for keys in ([key for key in suspended if key != _STAYING], staying):
        if not keys:
            continue
        off = ",".join(f"{key}=false" for key in keys)
        yield Drift(
            TARGET,
            f"suspended: {', '.join(keys)}",
            f"Unless a load test needs it: `{_scaling_command('register-scalable-target')} "
            f"--resource-id {shell_word(resource)} --suspended-state {shell_word(off)}`. The template states "
            "nothing of it, so no deployment does that.",
            "RegisterScalableTarget",
            resource,
            tuple(DriftedProperty(key, True, None) for key in keys),
            variant,
        )


def _scaling_command(operation: str) -> str:
    return (
        f"aws application-autoscaling {operation} --service-namespace sagemaker "
        "--scalable-dimension sagemaker:variant:DesiredInstanceCount"
    )


def _policy_drift(
    stated: Mapping[str, Any], live: list[Mapping[str, Any]], name: str, resource: str, variant: str
) -> Iterator[Drift]:
    metric = tracked_metric(stated)
    kind = next((key for key in stated if key.endswith("PolicyConfiguration")), "")
    found = next(
        (
            each
            for each in sorted(live, key=lambda each: each.get("PolicyName") != name)
            if each.get("PolicyName") == name or (metric and tracked_metric(each) == metric)
        ),
        None,
    )
    changes = tuple(differences(stated.get(kind) or {}, (found or {}).get(kind)))
    if found is not None and not changes:
        return
    put = (found or {}).get("PolicyName", name)
    yield Drift(
        POLICY,
        f"the policy on {metric or name} is missing"
        if found is None
        else f"the policy on {metric or name}: {'; '.join(map(str, changes))}",
        f"CloudFormation does not detect drift of scaling policies, so put it again: "
        f"`{_scaling_command('put-scaling-policy')} --resource-id {shell_word(resource)} "
        f"--policy-name {shell_word(put)} --policy-type {shell_word(stated.get('PolicyType'))} "
        f"--{shell_word(xform_name(kind, '-'))} {shell_word(json.dumps(stated.get(kind)))}`.",
        "DeleteScalingPolicy" if found is None else "PutScalingPolicy",
        resource,
        changes if found is not None else (),
        variant,
    )


# ------------------------------------------------------------------------------------------ alarms


def alarm_drifts(
    account: Account, stack: str, endpoint: StackEndpoint | None = None
) -> Iterator[Drift]:
    """Alarms that are gone, changed or silenced: of an endpoint, or of the whole stack."""
    resources = template_resources(account, stack)
    endpoints = {
        name: resource.get("Properties") or {}
        for name, resource in resources.items()
        if resource["Type"] == ENDPOINT_TYPE
    }
    rolled_back_on = json.dumps(list(endpoints.values()))
    for kind in (ALARM, COMPOSITE):
        names = {
            logical_id: name
            for logical_id, name in stack_ids(account, stack, kind).items()
            if endpoint is None or _is_of(endpoint, logical_id, resources, endpoints)
        }
        alarms = alarms_named(account, names.values(), composite=kind == COMPOSITE)
        for logical_id, name in sorted(names.items()):
            stated = resources.get(logical_id, {}).get("Properties") or {}
            alone = f'"{logical_id}"' not in rolled_back_on
            yield from _alarm_drift(kind, name, alarms.get(name), stated, alone)


def _is_of(
    endpoint: StackEndpoint,
    logical_id: str,
    resources: Mapping[str, Mapping[str, Any]],
    endpoints: Mapping[str, Mapping[str, Any]],
) -> bool:
    """Whether an alarm, or one that it is composed of, is on this endpoint or on none."""
    text = json.dumps(resources.get(logical_id, {}))
    text += "".join(
        json.dumps(resources[resource]) for resource in resources if f'"{resource}"' in text
    )
    on = {
        each
        for each, stated in endpoints.items()
        if f'"{each}"' in text or f'"{stated.get("EndpointName")}"' in text
    }
    return not on or endpoint.logical_id in on


def _alarm_drift(
    kind: str, name: str, alarm: Mapping[str, Any] | None, stated: Mapping[str, Any], alone: bool
) -> Iterator[Drift]:
    since = (alarm or {}).get("AlarmConfigurationUpdatedTimestamp")
    put = "PutMetricAlarm" if kind == ALARM else "PutCompositeAlarm"
    if alarm is None:
        made = "put-metric-alarm" if kind == ALARM else "put-composite-alarm --alarm-rule ..."
        same = (
            "Deployments roll back on it: make it again under this name by "
            f"`aws cloudwatch {made} --alarm-name {shell_word(name)} ...`;"
        )
        repair = REVERTED if alone else f"{same} `{REVERT}` gives it another one."
        yield Drift(kind, f"{name} is gone", repair, "DeleteAlarms", name)
        return
    compared = {key: value for key, value in stated.items() if key not in _APART}
    if changes := tuple(differences(compared, alarm)):
        words = f"{name}: {'; '.join(map(str, changes))}"
        yield Drift(kind, words, REVERTED, put, name, changes, since=since)
    if not alarm.get("ActionsEnabled", True) and stated.get("ActionsEnabled", True):
        yield Drift(
            kind,
            f"{name} notifies nobody: its actions are off",
            f"`aws cloudwatch enable-alarm-actions --alarm-names {shell_word(name)}`.",
            "DisableAlarmActions",
            name,
            since=since,
            pages=bool(alarm.get("AlarmActions")),
        )


# ----------------------------------------------------------------------------------- configuration


def stated_configuration(account: Account, stack: str, endpoint: StackEndpoint) -> tuple[str, str]:
    """The configuration that the stack has for an endpoint: logical ID and name, empty without."""
    configuration_name = endpoint.properties.get("EndpointConfigName")
    if not isinstance(configuration_name, Mapping):
        return "", str(configuration_name or "")
    logical_id = str(
        configuration_name.get("Ref") or (configuration_name.get("Fn::GetAtt") or [""])[0]
    )
    # The physical ID is the configuration's ARN, which is in lower case.
    ids = stack_ids(account, stack, CONFIGURATION)
    return logical_id, ids.get(logical_id, "").rpartition("/")[2]


def configuration_drifts(account: Account, stack: str, endpoint: StackEndpoint) -> Iterator[Drift]:
    """Another configuration than the stack's, and weights and counts of variants by hand."""
    found = describe_endpoint(account, endpoint.name)
    logical_id, name = stated_configuration(account, stack, endpoint)
    if found is None or not name or found["EndpointStatus"] != "InService":
        return
    serving = str(found["EndpointConfigName"])
    if serving.lower() != name.lower():
        reason = found.get("FailureReason")
        yield Drift(
            ENDPOINT_TYPE,
            f"{serving} serves, the stack has {name}"
            + (f": SageMaker rolled the last update back: {reason}" if reason else ""),
            "Do not delete that configuration. Fix the cause in the reason, and deploy: a new "
            "configuration takes over."
            if reason
            else f"Do not delete what serves. {REVERTED}",
            "UpdateEndpoint",
            endpoint.name,
            (DriftedProperty("EndpointConfigName", serving, name),),
            since=found.get("LastModifiedTime"),
        )
        return
    scaled = stated_targets(account, stack, endpoint)
    properties = template_resources(account, stack).get(logical_id, {}).get("Properties") or {}
    running = {variant["VariantName"]: variant for variant in found.get("ProductionVariants") or ()}
    for production_variant in properties.get("ProductionVariants") or ():
        variant = production_variant["VariantName"]
        now = running.get(variant, {})
        kept = {"DesiredWeight": "InitialVariantWeight"}
        # Scaling moves the counts, and updates keep them where the template says so.
        if variant not in scaled and not endpoint.properties.get("RetainAllVariantProperties"):
            kept["DesiredInstanceCount"] = "InitialInstanceCount"
        wanted = {
            key: production_variant[of]
            for key, of in kept.items()
            if of in production_variant and key in now
        }
        if changes := tuple(differences(wanted, now)):
            values = ",".join(f"{change.path}={_text(change.stated)}" for change in changes)
            again = shell_word(f"VariantName={variant},{values}")
            repair = (
                "CloudFormation does not look at it: `aws sagemaker "
                "update-endpoint-weights-and-capacities "
                f"--endpoint-name {shell_word(endpoint.name)} "
                f"--desired-weights-and-capacities {again}`."
            )
            call, words = "UpdateEndpointWeightsAndCapacities", "; ".join(map(str, changes))
            yield Drift(CAPACITY, words, repair, call, endpoint.name, changes, variant)


# --------------------------------------------------------------------------------------- what serves


_MAKE_AGAIN = (
    "Make {what} of that name again{of}; or deploy under another endpoint_name, and let callers "
    "move there."
)


def deleted_parts(account: Account, endpoint: DeployedEndpoint) -> list[Drift]:
    """What an endpoint runs on and somebody deleted: its configuration, or its variants' models.

    Not looked at are the models' data, images and roles, of which AWS Health's notices speak too.
    """
    name = endpoint.configuration_name
    configuration = describe_configuration(account, name)
    if configuration is None:
        words = f"{name}, the configuration that serves, is deleted"
        of = ", from its models and the variants in DescribeEndpoint"
        repair = _MAKE_AGAIN.format(what="a configuration", of=of)
        return [Drift(CONFIGURATION, words, repair, "DeleteEndpointConfig", name)]
    deleted = []
    for model, variants in models_of(configuration).items():
        if model_description(account, model) is None:
            words = f"{model}, the model that serves {', '.join(variants)}, is deleted"
            of = ", with the same image, data and role"
            repair = _MAKE_AGAIN.format(what="a model", of=of)
            deleted.append(Drift(MODEL, words, repair, "DeleteModel", model))
    return deleted


def models_of(configuration: Mapping[str, Any]) -> dict[str, list[str]]:
    """Model name to the variants that it serves, shadows included."""
    models: dict[str, list[str]] = {}
    for key in ("ProductionVariants", "ShadowProductionVariants"):
        for variant in configuration.get(key) or ():
            if model := variant.get("ModelName"):
                models.setdefault(model, []).append(variant["VariantName"])
    return models


_PARTS = {"configuration": configuration_drifts, "scaling": scaling_drifts, "alarms": alarm_drifts}
