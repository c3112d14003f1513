"""The SageMaker endpoint: how it is updated, scaled, called and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..facts.deployments import check_guardrails, check_rollback_alarms
from ..facts.limits import ENDPOINT_NAME
from ..facts.rules import COUNTS_OF_A_SCALED_FLEET, ROLLING_NEEDS_ONE_VARIANT
from ..options.argument_kinds import checked_arguments
from ..options.deployment import DeploymentPolicy, default_deployment
from ..synthesis.annotations import warn
from ..synthesis.arns import endpoint_arn
from ..synthesis.construct_tree import TreePart, path_below
from ..synthesis.lambda_functions import shared_function
from ..synthesis.launched_names import launched_name_of
from ..synthesis.rights import looking_at_endpoint, looking_at_stack
from ..synthesis.stated_names import claim_name
from ..synthesis.template_values import cfn_tags, check, in_seconds
from .endpoint_configuration import ROLLING_WITH_SHADOW, IEndpointConfiguration
from .endpoint_interface import IEndpoint, ImportedEndpoint
from .variant import VariantAttributes

_TIMEOUT_SECONDS = 300  # for a scaling action that is under way


@checked_arguments
class Endpoint(IEndpoint):
    """A real-time endpoint whose updates are guarded.

    Attributes
    ----------
    endpoint_name : str
        Token of the name: whoever uses it is made after the endpoint. For what must exist before
        it, :meth:`name_in`.
    endpoint_arn : str
    cfn_endpoint : aws_sagemaker.CfnEndpoint
    configuration : IEndpointConfiguration
    confirmation : constructs.Construct, optional
        What confirms updates: make things depend on it that need this configuration to serve.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        configuration: IEndpointConfiguration,
        endpoint_name: str | None = None,
        deployment: DeploymentPolicy | None = None,
        rollback_alarms: Sequence[cloudwatch.IAlarm] = (),
        tags: Mapping[str, str] | None = None,
        keep_instance_counts: bool | None = None,
        confirm_updates: bool = True,
    ) -> None:
        """A real-time endpoint whose updates are guarded.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            configuration: An :class:`EndpointConfiguration`, or one imported.
            endpoint_name: What callers name; changing it replaces the endpoint. By default derived from the construct's path and, where that says another, from the stack's name; known at synth, in lower case. It changes when the construct, or a scope around it, moves or gets another id. Set it where callers depend on it.
            deployment: How a new configuration takes over; by default a canary of 10 percent for 5 minutes (on Inf1, which AWS excludes from guarded deployments, and with inference components, of which it says nothing, all at once).
            rollback_alarms: Alarms that roll a deployment back. They must not refer to the endpoint's resource: use metrics of :meth:`metric`, which carry its name as text.
            tags: The endpoint's own; configuration and models have theirs. By default none.
            keep_instance_counts: Whether an update keeps the numbers of instances that are running (``RetainAllVariantProperties``); otherwise it sets those of the configuration. By default as soon as a variant scales. Say it when you turn scaling off or on: then nothing of the endpoint itself changes, and no update with an unchanged configuration is sent.
            confirm_updates: Fail a deployment after which SageMaker does not serve this configuration, because it rolled the update back; by default yes. It costs one Lambda function per stack, which runs for seconds at each deployment.

        Raises:
            ConfigurationError: LLE157 when the subnets have no room, LLE501 for the name,
                LLE502 to LLE511 and LLE52x for deployment and tags, LLE931 for a name that
                another endpoint of the app has.
        """
        super().__init__(scope, id)
        self._path = path = path_below(self, scope, id)
        stated = check(ENDPOINT_NAME, endpoint_name, path)
        claim_name(self, "endpoints", stated, in_any_case=True)
        self._name: str = stated or launched_name_of(self)
        self.configuration = configuration
        self.cfn_endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self.name_in(self),
            endpoint_config_name=configuration.endpoint_config_name,
            tags=cfn_tags(tags, path),
        )
        self.endpoint_name: str = self.cfn_endpoint.attr_endpoint_name
        self.endpoint_arn: str = self.cfn_endpoint.ref
        self.endpoint_config_name = configuration.endpoint_config_name
        self.variants = configuration.variant_attributes
        self.shadow = configuration.shadow_attributes
        self.enhanced_metrics = configuration.enhanced_metrics
        self._deployment = deployment or _default_deployment(self.all_variants)
        self._rollback_alarms: list[cloudwatch.IAlarm] = []
        self._scaled = {}
        for variant in self.all_variants:
            self._hold_room(variant, variant.max_instances or variant.instance_count or 1)
        if self.shadow is not None and self._deployment.kind == "ROLLING":
            warn(self, "rollingWithShadow", ROLLING_WITH_SHADOW)
        self.roll_back_on(*rollback_alarms)
        self._keep_counts = keep_instance_counts
        self._after_scaling()
        self.confirmation: Construct | None = (
            _ServingCheck(self, "ServingCheck") if confirm_updates else None
        )

    def roll_back_on(self, *alarms: cloudwatch.IAlarm) -> None:
        """Add alarms that roll a deployment back; the endpoint is made after them.

        None should watch a shadow variant, whose answers no caller sees; :class:`LatencyAlarms`
        make none that does.
        """
        self._rollback_alarms += alarms
        self.cfn_endpoint.deployment_config = self._deployment_property()

    @classmethod
    def from_endpoint_name(cls, scope: Construct, id: str, endpoint_name: str) -> IEndpoint:
        """An endpoint of this account and Region that is made elsewhere, by its name.

        Grants, and metrics of ``.variant("AllTraffic")``, need no more. What goes over all of its
        variants (alarms, dashboard, warm-up) needs :meth:`from_endpoint_attributes`.

        Raises
        ------
        ConfigurationError
            LLE501 for an impossible name.

        Examples
        --------
        >>> from aws_cdk import App, Stack
        >>> from low_latency_endpoint import Endpoint
        >>> endpoint = Endpoint.from_endpoint_name(Stack(App(), "Callers"), "Sentiment", "sentiment")
        >>> endpoint.variant("AllTraffic").metric_model_latency("p99").metric_name
        'ModelLatency'
        """
        return ImportedEndpoint(scope, id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> IEndpoint:
        """An endpoint that is made elsewhere, by its ARN, which may be a token.

        ARNs are in lower case. Whether CloudWatch and callers take the name in lower case where it
        was given otherwise, was not seen on AWS: state both with :meth:`from_endpoint_attributes`.

        Raises
        ------
        ConfigurationError
            LLE513 for anything but an endpoint's ARN.
        """
        return ImportedEndpoint(scope, id, endpoint_arn=endpoint_arn)

    @classmethod
    def from_endpoint_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
        variants: Sequence[VariantAttributes] = (),
        endpoint_config_name: str | None = None,
        enhanced_metrics: bool = False,
    ) -> IEndpoint:
        """An endpoint that is made elsewhere, with what alarms, warm-up and scaling ask of it.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint_name: The endpoint's name; needed unless ``endpoint_arn`` is given.
            endpoint_arn: Its ARN; needed unless ``endpoint_name`` is given.
            variants: Its variants; by default not known.
            endpoint_config_name: What it serves, for metrics of the new fleet alone (``fleet="new"``), and so that a warm-up runs again when it changes. By default not known.
            enhanced_metrics: Whether it publishes metrics by instance and container; by default not.

        Raises:
            ConfigurationError: LLE501, LLE513 for name and ARN, LLE514 for neither, LLE421
                for two variants of a name.

        Examples:
            >>> from aws_cdk import App, Duration, Stack
            >>> from low_latency_endpoint import *
            >>> stack = Stack(App(), "OnCall")
            >>> endpoint = Endpoint.from_endpoint_attributes(
            ...     stack, "Sentiment", endpoint_name="sentiment",
            ...     variants=[VariantAttributes(
            ...         name="AllTraffic", instance_types=[InstanceType("ml.g5.xlarge")])])
            >>> watched = AlarmOptions(model_latency={"p99": Duration.millis(200)})
            >>> alarms = LatencyAlarms(stack, "Alarms", endpoint=endpoint, options=watched)
            >>> list(alarms.alarms)[:2]
            ['AllTraffic/ModelLatency/p99', 'AllTraffic/Invocation5XXErrors/Rate']
        """
        return ImportedEndpoint(
            scope,
            id,
            endpoint_name=endpoint_name,
            endpoint_arn=endpoint_arn,
            variants=variants,
            endpoint_config_name=endpoint_config_name,
            enhanced_metrics=enhanced_metrics,
        )

    def _before_scaling(self, variant_name: str) -> None:
        if self._keep_counts is False:
            raise COUNTS_OF_A_SCALED_FLEET.error(
                got=f"scale({variant_name!r}) with keep_instance_counts=False",
                allowed="keep_instance_counts=True, or unset",
                where=self._path,
            )

    def _after_scaling(self) -> None:
        """Say what an update does with the numbers of instances."""
        # No form of these properties is right both for a fleet that scales and for one of a fixed
        # size: retained, a changed initial count never arrives; not retained, an update throws a
        # scaled fleet back to it. CloudFormation sends an UpdateEndpoint when they alone change,
        # with the configuration that serves already: refused, ignored or a whole deployment, nobody
        # has said which.
        keep = bool(self._scaled) if self._keep_counts is None else self._keep_counts
        if keep:
            self.cfn_endpoint.retain_all_variant_properties = True
            self.cfn_endpoint.exclude_retained_variant_properties = [
                sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type="DesiredWeight")
            ]

    def _instances_in_update(self, instances: int) -> int:
        return self._deployment.instances_in_update(instances)

    def _owners(self, alarms: Sequence[cloudwatch.IAlarm]) -> Counter[str]:
        """How many of them each variant has, whose names begin the alarms' ids; and the rest."""
        names = [variant.name for variant in self.variants]
        return Counter(_beginning_of(alarm.node.id, names) for alarm in alarms)

    def _deployment_property(self) -> sagemaker.CfnEndpoint.DeploymentConfigProperty:
        """Errors: LLE508, LLE522 for rolling with several variants, LLE523 for Inf1 with guardrails."""
        policy, alarms, where = self._deployment, self._rollback_alarms, self._path
        kind = policy.kind
        if kind == "ROLLING" and len(self.variants) > 1:
            raise ROLLING_NEEDS_ONE_VARIANT.error(
                got=f"{len(self.variants)} variants", allowed="1", where=where
            )
        types = _types_of(self.all_variants)
        check_guardrails(kind, types, rolls_back=bool(alarms), where=where)
        wait = in_seconds(policy.wait, where)
        termination, maximum = (
            None if stated is None else in_seconds(stated, where)
            for stated in (policy.termination_wait, policy.maximum_execution)
        )
        endpoint = sagemaker.CfnEndpoint
        size = endpoint.CapacitySizeProperty(type="CAPACITY_PERCENT", value=policy.percent)
        properties: dict[str, Any] = {}
        if kind == "ROLLING":
            properties["rolling_update_policy"] = endpoint.RollingUpdatePolicyProperty(
                maximum_batch_size=size,
                rollback_maximum_batch_size=size,  # see facts.deployments.instances_in_update
                wait_interval_in_seconds=wait,
                maximum_execution_timeout_in_seconds=maximum,
            )
        else:
            part = {"CANARY": "canary_size", "LINEAR": "linear_step_size"}.get(kind)
            properties["blue_green_update_policy"] = endpoint.BlueGreenUpdatePolicyProperty(
                traffic_routing_configuration=endpoint.TrafficRoutingConfigProperty(
                    type=kind, wait_interval_in_seconds=wait, **({part: size} if part else {})
                ),
                termination_wait_in_seconds=termination,
                maximum_execution_timeout_in_seconds=maximum,
            )
        if alarms:
            check_rollback_alarms(self._owners(alarms), where)
            properties["auto_rollback_configuration"] = endpoint.AutoRollbackConfigProperty(
                alarms=[endpoint.AlarmProperty(alarm_name=alarm.alarm_name) for alarm in alarms]
            )
        return endpoint.DeploymentConfigProperty(**properties)


def _beginning_of(alarm_id: str, names: Sequence[str]) -> str:
    """The name that an alarm's ID begins with, maybe with a shorter one in it; else "others"."""
    beginnings = (name for name in names if alarm_id.startswith(f"{name}-"))
    return max(beginnings, key=len, default="others")


def _types_of(variants: Sequence[VariantAttributes]) -> list[str]:
    return [instance_type.name for variant in variants for instance_type in variant.instance_types]


def _default_deployment(variants: Sequence[VariantAttributes]) -> DeploymentPolicy:
    """All at once with inference components too, of which nothing is known."""
    if any(variant.shape == "inference-component" for variant in variants):
        return DeploymentPolicy.all_at_once()
    return default_deployment(_types_of(variants))


class _ServingCheck(TreePart):
    """Fails a deployment after which the endpoint does not serve its configuration."""

    # After an update that SageMaker gives up (a rollback alarm, a container that fails, no
    # capacity) the endpoint is in service as before, with the former configuration. Whether
    # CloudFormation takes that for a success is not known; Terraform's provider did
    # (hashicorp/terraform-provider-aws#46663, #48997), and deleted the configuration that served.
    # This resource comes before CloudFormation's clean-up: the stack goes back while that exists.

    def __init__(self, endpoint: Endpoint, id: str) -> None:
        super().__init__(endpoint, id)
        function = shared_function(
            self,
            "EndpointServingCheck",
            "check_endpoint",
            description="Confirms that endpoints serve the configuration they were given",
            statements=[looking_at_stack(Aws.STACK_ID)],
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        rights = function.role.also(
            "Policy", looking_at_endpoint(endpoint_arn(self, endpoint.name_in(self))), scope=self
        )
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::EndpointServingCheck",
            service_token=function.arn,
            # A function that dies must not hold the stack for CloudFormation's hour.
            service_timeout=Duration.seconds(_TIMEOUT_SECONDS + 60),
            properties={
                "EndpointName": endpoint.endpoint_name,
                "EndpointConfigName": endpoint.configuration.endpoint_config_name,
            },
        )
        resource.node.add_dependency(rights)
