"""How a new endpoint configuration takes over from the old one, as CloudFormation takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from ..facts.deployments import check_guardrails
from ..facts.limits import ROLLBACK_ALARM_COUNT
from ..facts.rules import ROLLING_NEEDS_ONE_VARIANT
from ..options.deployment import DeploymentPolicy
from ..synthesis.template_values import in_seconds
from .variant_attributes import VariantAttributes


def deployment_property(
    policy: DeploymentPolicy,
    variants: Sequence[VariantAttributes],
    alarms: Sequence[cloudwatch.IAlarm],
    where: str = "",
    *,
    shadow: VariantAttributes | None = None,
) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
    """Errors: LLE508, LLE522 for rolling with several variants, LLE523 for Inf1 with guardrails."""
    kind = policy.kind
    if kind == "ROLLING" and len(variants) > 1:
        raise ROLLING_NEEDS_ONE_VARIANT.error(
            got=f"{len(variants)} variants", allowed="1", where=where
        )
    everything = [*variants, *([shadow] if shadow else [])]
    types = [each.name for variant in everything for each in variant.instance_types]
    check_guardrails(kind, types, rolls_back=bool(alarms), where=where)
    wait = in_seconds(policy.wait, where)
    termination, maximum = (
        None if stated is None else in_seconds(stated, where)
        for stated in (policy.termination_wait, policy.maximum_execution)
    )
    endpoint = sagemaker.CfnEndpoint
    size = endpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=policy.percent)
    made: dict[str, Any] = {}
    if kind == "ROLLING":
        made["rolling_update_policy"] = endpoint.RollingUpdatePolicyProperty(
            maximum_batch_size=size,
            rollback_maximum_batch_size=size,  # see facts.deployments.instances_in_update
            wait_interval_in_seconds=wait,
            maximum_execution_timeout_in_seconds=maximum,
        )
    else:
        part = {"CANARY": "canary_size", "LINEAR": "linear_step_size"}.get(kind)
        made["blue_green_update_policy"] = endpoint.BlueGreenUpdatePolicyProperty(
            traffic_routing_configuration=endpoint.TrafficRoutingConfigProperty(
                type=kind, wait_interval_in_seconds=wait, **({part: size} if part else {})
            ),
            termination_wait_in_seconds=termination,
            maximum_execution_timeout_in_seconds=maximum,
        )
    if alarms:
        ROLLBACK_ALARM_COUNT.check(len(alarms), where)
        made["auto_rollback_configuration"] = endpoint.AutoRollbackConfigProperty(
            alarms=[endpoint.AlarmProperty(alarm_name=alarm.alarm_name) for alarm in alarms]
        )
    return endpoint.DeploymentConfigProperty(**made)
