"""AWS::ApplicationAutoScaling::*."""

from __future__ import annotations

from typing import Any

from ..protocols import ServiceError
from .properties import Tagging, call, only, tag_map, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")


@emulated
class ScalableTarget(ResourceType):
    """What scales, with its limits and scheduled actions."""

    type_name = "AWS::ApplicationAutoScaling::ScalableTarget"
    tags_by = Tagging(
        "application-autoscaling", "tag_resource", "untag_resource", "ResourceARN", spelt=tag_map
    )

    def create(self, at: Place, properties: Properties) -> Created:
        scaling = at.client("application-autoscaling")
        key = only(properties, *_KEY)
        stated = without(properties, "ScheduledActions")
        stated["Tags"] = tag_map(properties.get("Tags"))
        call(scaling, "register_scalable_target", stated)
        for action in properties.get("ScheduledActions") or []:
            call(scaling, "put_scheduled_action", {**action, **key})
        identity = "|".join(
            properties[name] for name in ("ResourceId", "ScalableDimension", "ServiceNamespace")
        )
        return Created(identity, {"Id": identity})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self.create(at, {"SuspendedState": _NOT_SUSPENDED, **without(properties, "Tags")})
        kept = {a["ScheduledActionName"] for a in properties.get("ScheduledActions") or []}
        for action in existing.properties.get("ScheduledActions") or []:
            if action["ScheduledActionName"] not in kept:
                at.client("application-autoscaling").delete_scheduled_action(
                    ScheduledActionName=action["ScheduledActionName"], **only(properties, *_KEY)
                )

    def tagged_as(self, at: Place, existing: Existing) -> str:
        stated = existing.properties
        found = at.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace=stated["ServiceNamespace"],
            ResourceIds=[stated["ResourceId"]],
            ScalableDimension=stated["ScalableDimension"],
        )
        return str(found["ScalableTargets"][0]["ScalableTargetARN"])

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("application-autoscaling").deregister_scalable_target(
            **only(existing.properties, *_KEY)
        )


_NOT_SUSPENDED = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


@emulated
class ScalingPolicy(ResourceType):
    """How it scales."""

    type_name = "AWS::ApplicationAutoScaling::ScalingPolicy"
    name_property = "PolicyName"
    # The schema's identifier is the ARN, which has the target in it.
    named_within = frozenset({"ScalingTargetId", *_KEY})

    def create(self, at: Place, properties: Properties) -> Created:
        arn = call(
            at.client("application-autoscaling"),
            "put_scaling_policy",
            {**without(properties, "ScalingTargetId"), **self._key(properties)},
        )["PolicyARN"]
        return Created(arn, {"Arn": arn})

    @staticmethod
    def _key(properties: Properties) -> dict[str, Any]:
        if properties.get("ScalingTargetId"):
            resource, dimension, namespace = properties["ScalingTargetId"].split("|")
            return {
                "ResourceId": resource,
                "ScalableDimension": dimension,
                "ServiceNamespace": namespace,
            }
        missing = [name for name in _KEY if name not in properties]
        if missing:
            raise ServiceError(f"ScalingTargetId or {', '.join(missing)} must be specified")
        return only(properties, *_KEY)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self.create(at, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("application-autoscaling").delete_scaling_policy(
            PolicyName=existing.properties["PolicyName"], **self._key(existing.properties)
        )
