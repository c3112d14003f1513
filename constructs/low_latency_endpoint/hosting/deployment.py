"""How a new endpoint configuration takes over from the old one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker

from ..plan.argument_kinds import checked_arguments
from ..plan.deployments import check_guardrails, instances_in_update
from ..plan.limits import (
    CANARY_PERCENT,
    LINEAR_STEP_PERCENT,
    MAX_INSTANCES,
    MAXIMUM_EXECUTION_SECONDS,
    ROLLBACK_ALARM_COUNT,
    ROLLING_BATCH_PERCENT,
    TERMINATION_WAIT_SECONDS,
    TRAFFIC_WAIT_SECONDS,
)
from ..plan.rules import EXECUTION_TIME_TOO_SHORT, ROLLING_NEEDS_ONE_VARIANT, SIZE_OF_ALL_AT_ONCE
from ..synthesis.validation import check, check_seconds, is_token
from .variant_attributes import VariantAttributes

_DEFAULT_WAIT_SECONDS = 300


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class DeploymentPolicy:
    """How traffic moves to a new fleet; make one with :meth:`canary`, :meth:`linear`,
    :meth:`all_at_once` or :meth:`rolling`.

    Examples
    --------
    >>> from aws_cdk import Duration
    >>> from low_latency_endpoint import DeploymentPolicy
    >>> DeploymentPolicy.canary(size_percent=10, wait=Duration.minutes(5)).kind
    'CANARY'
    """

    kind: Literal["CANARY", "LINEAR", "ALL_AT_ONCE", "ROLLING"]
    size_percent: int | None = None
    wait: Duration | None = None
    termination_wait: Duration | None = None
    maximum_execution: Duration | None = None

    def __post_init__(self) -> None:
        limit = {
            "CANARY": CANARY_PERCENT,
            "LINEAR": LINEAR_STEP_PERCENT,
            "ROLLING": ROLLING_BATCH_PERCENT,
        }.get(self.kind)
        if limit is not None:
            check(limit, self.size_percent)
        elif self.size_percent is not None:
            raise SIZE_OF_ALL_AT_ONCE.error(got=self.size_percent, allowed="no size")

    @classmethod
    def canary(
        cls,
        *,
        size_percent: int = 10,
        wait: Duration | None = None,
        termination_wait: Duration | None = None,
        maximum_execution: Duration | None = None,
    ) -> DeploymentPolicy:
        """A small share of the new fleet first, the rest after ``wait`` without an alarm.

        Args:
            size_percent: Share of the new fleet that gets traffic first, 1 to 50; by default 10. SageMaker rounds to whole instances, at least one.
            wait: Up to 1 hour; by default 5 minutes.
            termination_wait: How long the old fleet stays afterwards, up to 1 hour; by default it ends at once.
            maximum_execution: 10 minutes to 8 hours, and more than all waits; by default SageMaker's.
        """
        return cls(
            kind="CANARY",
            size_percent=size_percent,
            wait=wait,
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
        )

    @classmethod
    def linear(
        cls,
        *,
        step_percent: int = 25,
        wait: Duration | None = None,
        termination_wait: Duration | None = None,
        maximum_execution: Duration | None = None,
    ) -> DeploymentPolicy:
        """Equal steps of 10 to 50 percent, with ``wait`` between them (default 5 minutes)."""
        return cls(
            kind="LINEAR",
            size_percent=step_percent,
            wait=wait,
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
        )

    @classmethod
    def all_at_once(
        cls,
        *,
        wait: Duration | None = None,
        termination_wait: Duration | None = None,
        maximum_execution: Duration | None = None,
    ) -> DeploymentPolicy:
        """All traffic in one step; ``wait`` is how long alarms are watched (default none)."""
        return cls(
            kind="ALL_AT_ONCE",
            wait=wait or Duration.seconds(0),
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
        )

    @classmethod
    def rolling(
        cls,
        *,
        batch_percent: int = 25,
        wait: Duration | None = None,
        maximum_execution: Duration | None = None,
    ) -> DeploymentPolicy:
        """Batches of 5 to 50 percent, old instances ending as new ones serve: needs room for one
        batch only, where blue/green needs a second fleet. For endpoints with one variant.

        A rollback goes back in batches of the same size. SageMaker's own default would bring up
        the whole old fleet at once, for which there may be no instances and no addresses; an
        endpoint whose rollback fails stays a mixture of both.
        """
        return cls(
            kind="ROLLING",
            size_percent=batch_percent,
            wait=wait,
            maximum_execution=maximum_execution,
        )

    def instances_in_update(self, instances: int) -> int:
        """The most instances of a fleet in an update: one batch more, or a second fleet."""
        check(MAX_INSTANCES, instances)
        known = self.kind == "ROLLING" and not is_token(self.size_percent)
        return instances_in_update(instances, self.size_percent if known else None)

    def to_cfn(
        self,
        variants: Sequence[VariantAttributes],
        alarms: Sequence[cloudwatch.IAlarm],
        where: str = "",
        *,
        shadow: VariantAttributes | None = None,
    ) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        """The policy as CloudFormation takes it.

        Raises
        ------
        ConfigurationError
            LLE502 to LLE508 for values out of range, LLE521 when the waits exceed the longest
            time, LLE522 for rolling with several variants, LLE523 for Inf1 with guardrails.
        """
        self._check_variants(variants, alarms, where, shadow)
        wait = check_seconds(TRAFFIC_WAIT_SECONDS, self.wait, where)
        wait = _DEFAULT_WAIT_SECONDS if wait is None else wait
        termination = check_seconds(TERMINATION_WAIT_SECONDS, self.termination_wait, where)
        maximum = check_seconds(MAXIMUM_EXECUTION_SECONDS, self.maximum_execution, where)
        self._check_total(wait, termination or 0, maximum, where)
        endpoint = sagemaker.CfnEndpoint
        policy: dict[str, Any] = {}
        if self.kind == "ROLLING":
            policy["rolling_update_policy"] = endpoint.RollingUpdatePolicyProperty(
                maximum_batch_size=self._size(),
                rollback_maximum_batch_size=self._size(),  # see instances_in_update
                wait_interval_in_seconds=wait,
                maximum_execution_timeout_in_seconds=maximum,
            )
        else:
            size = {"CANARY": "canary_size", "LINEAR": "linear_step_size"}.get(self.kind)
            policy["blue_green_update_policy"] = endpoint.BlueGreenUpdatePolicyProperty(
                traffic_routing_configuration=endpoint.TrafficRoutingConfigProperty(
                    type=self.kind,
                    wait_interval_in_seconds=wait,
                    **({size: self._size()} if size else {}),
                ),
                termination_wait_in_seconds=termination,
                maximum_execution_timeout_in_seconds=maximum,
            )
        if alarms:
            ROLLBACK_ALARM_COUNT.check(len(alarms), where)
            policy["auto_rollback_configuration"] = endpoint.AutoRollbackConfigProperty(
                alarms=[endpoint.AlarmProperty(alarm_name=alarm.alarm_name) for alarm in alarms]
            )
        return endpoint.DeploymentConfigProperty(**policy)

    def _size(self) -> sagemaker.CfnEndpoint.CapacitySizeProperty:
        return sagemaker.CfnEndpoint.CapacitySizeProperty(
            type="CAPACITY_PERCENT", value=self.size_percent or 100
        )

    def _check_variants(
        self,
        variants: Sequence[VariantAttributes],
        alarms: Sequence[cloudwatch.IAlarm],
        where: str,
        shadow: VariantAttributes | None,
    ) -> None:
        if self.kind == "ROLLING" and len(variants) > 1:
            raise ROLLING_NEEDS_ONE_VARIANT.error(
                got=f"{len(variants)} variants", allowed="1", where=where
            )
        everything = [*variants, *([shadow] if shadow else [])]
        types = [each.name for variant in everything for each in variant.instance_types]
        check_guardrails(self.kind, types, rolls_back=bool(alarms), where=where)

    def _check_total(self, wait: int, termination: int, maximum: int | None, where: str) -> None:
        if any(is_token(value) for value in (wait, termination, maximum)):
            return
        steps = 1
        if self.kind in ("LINEAR", "ROLLING"):
            steps = -(-100 // (self.size_percent or 100))
        total = wait * steps + termination
        waits = f"waits of {total} seconds ({steps} x {wait} + {termination})"
        longest = int(MAXIMUM_EXECUTION_SECONDS.maximum or 0)
        if total >= longest:  # whatever the maximum is, or is by default
            raise EXECUTION_TIME_TOO_SHORT.error(
                got=waits,
                allowed=f"waits of less than {longest} seconds together",
                fix="Shorten the waits, or take larger steps.",
                where=where,
            )
        if maximum is not None and total >= maximum:
            raise EXECUTION_TIME_TOO_SHORT.error(
                got=f"{maximum} seconds, with {waits}",
                allowed=f"more than {total} seconds",
                where=where,
            )
