"""The SageMaker endpoint: how it is updated, scaled, called and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import CfnTag, Duration, Names
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..network.private_link_policy import CALL_WITH_BEARER_TOKEN, invoke_actions
from ..plan.argument_kinds import checked_arguments
from ..plan.limits import ENDPOINT_NAME, MAX_INSTANCES, TAG_COUNT, TAG_KEY, TAG_VALUE
from ..plan.rules import COUNTS_OF_A_SCALED_FLEET, UNKNOWN_VARIANT, VARIANT_SCALED_TWICE
from ..synthesis.asked_once import path_below
from ..synthesis.findings import warn
from ..synthesis.validation import check
from .deployment import DeploymentPolicy
from .endpoint_configuration import EndpointConfiguration
from .endpoint_metrics import EndpointVariant, MetricSource
from .scaling import InvocationScaling
from .serving_check import ServingCheck
from .shadow import ROLLING_WITH_SHADOW
from .variant import ProductionVariant


@checked_arguments
class Endpoint(MetricSource, Construct):
    """A real-time endpoint whose updates are guarded.

    Parameters
    ----------
    scope, id
        As for every construct.
    configuration : EndpointConfiguration
    endpoint_name : str, optional
        What callers name; changing it replaces the endpoint. By default derived from the
        construct's path, known at synth, in lower case.
    deployment : DeploymentPolicy, optional
        How a new configuration takes over; by default a canary of 10 percent for 5 minutes (on
        Inf1, which AWS excludes from guarded deployments, all at once).
    rollback_alarms : sequence of aws_cloudwatch.IAlarm
        Alarms that roll a deployment back. They must not refer to the endpoint's resource: use
        metrics of :meth:`metric`, which carry its name as text.
    tags : mapping of str to str, optional
    keep_instance_counts : bool, optional
        Whether an update keeps the numbers of instances that are running
        (``RetainAllVariantProperties``); otherwise it sets those of the configuration. By default
        as soon as a variant scales. Say it when you turn scaling off or on: then nothing of the
        endpoint itself changes, and no update with an unchanged configuration is sent.
    confirm_updates : bool
        Fail a deployment after which SageMaker does not serve this configuration, because it
        rolled the update back; by default yes. It costs one Lambda function per stack, which runs
        for seconds at each deployment.

    Attributes
    ----------
    endpoint_name : str
        Token of the name: whoever uses it is made after the endpoint.
    name_at_synth : str
        The name itself, for what must exist before the endpoint.
    endpoint_arn : str
    cfn_endpoint : aws_sagemaker.CfnEndpoint
    configuration : EndpointConfiguration
    confirmation : constructs.Construct, optional
        What confirms updates: make things depend on it that need this configuration to serve.

    Raises
    ------
    ConfigurationError
        LLE157 when the subnets have no room, LLE501 for the name, LLE502 to LLE511 and LLE52x for
        deployment and tags.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        configuration: EndpointConfiguration,
        endpoint_name: str | None = None,
        deployment: DeploymentPolicy | None = None,
        rollback_alarms: Sequence[cloudwatch.IAlarm] = (),
        tags: Mapping[str, str] | None = None,
        keep_instance_counts: bool | None = None,
        confirm_updates: bool = True,
    ) -> None:
        super().__init__(scope, id)
        self._path = path = path_below(self, scope, id)
        self.name_at_synth: str = check(ENDPOINT_NAME, endpoint_name, path) or (
            Names.unique_resource_name(self, max_length=63, separator="-").lower()
        )
        TAG_COUNT.check(len(tags or {}), path)
        for key, value in (tags or {}).items():
            check(TAG_KEY, key, path)
            check(TAG_VALUE, value, f"{path}, tag {key}")
        self.configuration = configuration
        self.cfn_endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self.name_at_synth,
            endpoint_config_name=configuration.endpoint_config_name,
            tags=[CfnTag(key=key, value=value) for key, value in (tags or {}).items()] or None,
        )
        self.endpoint_name: str = self.cfn_endpoint.attr_endpoint_name
        self.endpoint_arn: str = self.cfn_endpoint.ref
        self._deployment = deployment or _default_deployment(configuration.all_variants)
        self._rollback_alarms: list[cloudwatch.IAlarm] = []
        self._scaled: dict[str, InvocationScaling] = {}
        for variant in configuration.all_variants:
            self._hold_room(variant, variant.initial_instance_count)
        if configuration.shadow is not None and self._deployment.kind == "ROLLING":
            warn(self, "rollingWithShadow", ROLLING_WITH_SHADOW)
        self.roll_back_on(*rollback_alarms)
        self._keep_counts = keep_instance_counts
        self._retain_what_is_running()
        self.confirmation: Construct | None = (
            ServingCheck(
                self,
                "ServingCheck",
                endpoint_name=self.endpoint_name,
                name_at_synth=self.name_at_synth,
                configuration_name=configuration.endpoint_config_name,
            )
            if confirm_updates
            else None
        )

    def roll_back_on(self, *alarms: cloudwatch.IAlarm) -> None:
        """Add alarms that roll a deployment back; the endpoint is made after them.

        None should watch a shadow variant, whose answers no caller sees; :class:`LatencyAlarms`
        make none that does.
        """
        self._rollback_alarms += alarms
        self.cfn_endpoint.deployment_config = self._deployment.to_cfn(
            self.configuration.variants,
            self._rollback_alarms,
            self._path,
            shadow=self.configuration.shadow,
        )

    def scale(
        self, variant_name: str, *, min_instances: int, max_instances: int
    ) -> InvocationScaling:
        """Let a variant's number of instances follow its load; add a policy to what returns.

        From now on an update keeps the instance counts that scaling has reached
        (``RetainAllVariantProperties``), while weights follow the configuration.

        Parameters
        ----------
        variant_name : str
            Also the shadow's: AWS recommends to scale it too.
        min_instances, max_instances : int
            The fewest (at least 1) and the most instances.

        Raises
        ------
        ConfigurationError
            LLE106, LLE512, LLE601, LLE621 to LLE625, LLE157 when the subnets have no room.
        """
        path = self._path
        variant = self._variant(variant_name)
        if variant_name in self._scaled:
            raise VARIANT_SCALED_TWICE.error(
                got=f"a second scale({variant_name!r})", allowed="one", where=path
            )
        if self._keep_counts is False:
            raise COUNTS_OF_A_SCALED_FLEET.error(
                got=f"scale({variant_name!r}) with keep_instance_counts=False",
                allowed="keep_instance_counts=True, or none",
                where=path,
            )
        check(MAX_INSTANCES, max_instances, path)
        self._hold_room(variant, max_instances)
        scaling = InvocationScaling(
            self,
            f"Scaling-{variant_name}",
            endpoint_name=self.endpoint_name,
            name_at_synth=self.name_at_synth,
            variant=variant,
            min_instances=min_instances,
            max_instances=max_instances,
            hold_room=lambda instances: self._hold_room(variant, instances),
        )
        self._scaled[variant_name] = scaling
        self._retain_what_is_running()
        return scaling

    def scaling_of(self, variant_name: str) -> InvocationScaling | None:
        """What :meth:`scale` returned for the variant; None if it does not scale."""
        return self._scaled.get(variant_name)

    def grant_invoke(
        self,
        grantee: iam.IGrantable,
        *,
        bidirectional_streaming: bool = False,
        openai: bool = False,
    ) -> iam.Grant:
        """Let a principal invoke the endpoint, whole responses and streamed ones.

        Parameters
        ----------
        grantee : aws_iam.IGrantable
        bidirectional_streaming : bool
            Bidirectional streams too; by default not. AWS names no action for them, so this grants
            ``sagemaker:InvokeEndpoint*`` on the endpoint. Not seen on AWS yet.
        openai : bool
            The OpenAI-compatible path too; by default not. It needs
            ``sagemaker:CallWithBearerToken``, which takes no single resource.
        """
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            resource_arns=[self.endpoint_arn],
            actions=list(invoke_actions(bidirectional_streaming=bidirectional_streaming)),
        )
        if not openai:
            return grant
        return grant.combine(
            iam.Grant.add_to_principal(
                grantee=grantee, actions=[CALL_WITH_BEARER_TOKEN], resource_arns=["*"]
            )
        )

    def variant(self, name: str | None = None) -> EndpointVariant:
        """A variant with its metrics, also the shadow; by default the configuration's first one.

        Raises
        ------
        ConfigurationError
            LLE622 for an unknown name.
        """
        metrics = self.configuration.metrics
        return EndpointVariant(
            self._variant(name or self.configuration.variants[0].name),
            endpoint_name=self.name_at_synth,
            endpoint_config_name=self.configuration.endpoint_config_name,
            enhanced=metrics is not None and metrics.enhanced,
            where=self._path,
        )

    def metric(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | None = None,
        fleet: Literal["whole", "new"] = "whole",
        dimensions: Mapping[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """A metric of the first variant; see :meth:`MetricSource.metric`."""
        return self.variant().metric(
            name, statistic=statistic, period=period, fleet=fleet, dimensions=dimensions
        )

    def _retain_what_is_running(self) -> None:
        """Say what an update does with the numbers of instances.

        No form of these properties is right both for a fleet that scales and for one of a fixed
        size: retained, a changed initial count never arrives; not retained, an update throws a
        scaled fleet back to the initial count. So they differ, and CloudFormation sends an
        UpdateEndpoint when they alone change, with the configuration that serves already: refused,
        ignored or a whole deployment, nobody has said which. Whoever turns scaling off or on
        states ``keep_instance_counts`` and leaves them as they are.
        """
        keep = bool(self._scaled) if self._keep_counts is None else self._keep_counts
        if keep:
            self.cfn_endpoint.retain_all_variant_properties = True
            self.cfn_endpoint.exclude_retained_variant_properties = [
                sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type="DesiredWeight")
            ]

    def _hold_room(self, variant: ProductionVariant, instances: int) -> None:
        network = variant.model.network
        network.fleet_room.hold(
            f"{self._path}/{variant.name}",
            instances,
            network=network,
            in_update=self._deployment.instances_in_update(instances),
            where=self._path,
        )

    def _variant(self, name: str) -> ProductionVariant:
        variant = self.configuration.variant(name)
        if variant is None:
            raise UNKNOWN_VARIANT.error(
                got=repr(name),
                allowed=", ".join(variant.name for variant in self.configuration.all_variants),
                where=self._path,
            )
        return variant


def _default_deployment(variants: Sequence[ProductionVariant]) -> DeploymentPolicy:
    inf1 = any(
        instance_type.name.startswith("ml.inf1.")
        for variant in variants
        for instance_type in variant.instance_types
    )
    return DeploymentPolicy.all_at_once() if inf1 else DeploymentPolicy.canary()
