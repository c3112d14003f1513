"""Inference components: instances that hold several models, each model with a number of copies, and
the scaling of these copies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal, cast

from aws_cdk import Duration, Resource, Size
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..facts.component_limits import (
    COMPONENT_ACCELERATORS,
    COMPONENT_CPUS,
    COMPONENT_MEMORY,
    COMPONENT_NAME,
    CONSOLIDATION_COOLDOWN,
    CONSOLIDATION_STEP,
    COPIES,
    MANAGED_INSTANCES,
    SCALED_COPIES,
)
from ..facts.limits import (
    CONTAINER_STARTUP_SECONDS,
    MAX_INSTANCES,
    MODEL_DOWNLOAD_SECONDS,
    SCALING_TARGET,
)
from ..facts.metrics import check_statistic, metric_facts
from ..facts.rules import (
    COMPONENTS_NEED_A_HOST,
    CONSOLIDATION_IS_OFF,
    METRIC_NOT_PUBLISHED,
    MORE_COPIES_THAN_MAXIMUM,
)
from ..network.vpc_endpoints import INVOKE_ACTIONS
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..synthesis.annotations import warn
from ..synthesis.arns import arn
from ..synthesis.construct_tree import kept, path_below, path_of, stack_of
from ..synthesis.launched_names import launched_name_of, name_anywhere
from ..synthesis.stated_names import claim_name
from ..synthesis.template_values import check, check_seconds, in_seconds, is_token
from .component_room import ComponentCopies, SharedRoom
from .endpoint import Endpoint
from .endpoint_configuration import EndpointConfiguration, check_images
from .endpoint_interface import IEndpoint
from .endpoint_metrics import checked_period
from .execution_role import HostedInNetwork, groups_in
from .images import ContainerImage
from .model_interface import IModel
from .scaling import ScalableTarget, ScalingStep, check_range
from .variant import ProductionVariant, VariantAttributes

_DESIRED_COPIES = "sagemaker:inference-component:DesiredCopyCount"
_INVOCATIONS = "SageMakerInferenceComponentInvocationsPerCopy"
_CONCURRENCY = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
_DIMENSION = "InferenceComponentName"


@checked_arguments
class ComponentHost(HostedInNetwork):
    """Stands in a model's place in a variant, whose instances then hold inference components.

    SageMaker adds and removes the instances by itself, as the copies of the components need them.
    What a component needs, it asks for: :class:`InferenceComponent`. How AWS treats components is
    taken from its pages and from reports; none of it was seen on AWS yet.

    Components are for many models on few accelerators, and for models that may be at zero. A model
    that has to hold a latency is better on instances of its own (:class:`Model`): neighbours share
    CPUs and memory bandwidth, and there are no plan, no guarded deployment, no warm-up.

    Attributes
    ----------
    role, grant_principal : aws_iam.IRole
    connections : aws_ec2.Connections
    min_instances, max_instances : int
    network : ZoneAlignedNetwork

    Examples
    --------
    >>> from aws_cdk import App, Size, Stack
    >>> from low_latency_endpoint import *
    >>> stack = Stack(App(), "Models")
    >>> network = ZoneAlignedNetwork(
    ...     stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"))
    >>> host = ComponentHost(stack, "Host", network=network, min_instances=1, max_instances=4)
    >>> configuration = EndpointConfiguration(stack, "Configuration", variants=[
    ...     ProductionVariant(model=host, instance_type="ml.g5.12xlarge",
    ...                       initial_instance_count=1,
    ...                       routing=RoutingStrategy.LEAST_OUTSTANDING_REQUESTS)])
    >>> endpoint = Endpoint(stack, "Endpoint", configuration=configuration)
    >>> model = Model(stack, "Llama", network=network, role=host.role, containers=[
    ...     Container.from_dlc("djl-inference", "0.36.0-lmi28.0.0-cu130",
    ...                        data="s3://models/llama-3-8b/")])
    >>> llama = InferenceComponent(stack, "Component", endpoint=endpoint, model=model,
    ...                            accelerators=1, memory=Size.gibibytes(32), copies=1)
    >>> scaling = llama.scale(min_copies=1, max_copies=8).track_concurrency(
    ...     max_concurrency_per_copy=4)
    """

    max_instances: int
    images: Sequence[ContainerImage] = ()
    shape: str = "inference-component"

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        max_instances: int,
        min_instances: int = 2,
        role: iam.IRole | None = None,
        network_isolation: bool = False,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        scale_in: Literal["IDLE_RELEASE", "CONSOLIDATION"] | None = None,
        consolidation_cooldown: Duration | timedelta | str | None = None,
        consolidation_step: int | None = None,
    ) -> None:
        """Stands in a model's place in a variant, whose instances then hold inference components.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            network: Where the instances run.
            min_instances: The fewest instances; by default 2, so that two zones serve. With 0, SageMaker lets the last instance go, and requests fail for minutes until one is there again; a warning says so. It was seen to be refused in one Region (eu-west-3).
            max_instances: The most instances, which the subnets keep room for.
            role: Execution role of the endpoint configuration, which such an endpoint needs; by default a new one. Give the components' models the same one, ``Model(role=host.role)``: AWS does not say which of the two fetches images and data.
            network_isolation: No network calls from or to the containers; by default off. The models' should be the same.
            security_groups: By default the network's ``model_security_group``.
            scale_in: ``IDLE_RELEASE`` releases instances without a copy. ``CONSOLIDATION`` also moves copies onto fewer instances, which costs less and lets copies start again elsewhere; their ``placement`` holds. By default as SageMaker does; AWS does not say which that is.
            consolidation_cooldown: How long after the last change of the endpoint SageMaker looks for instances to consolidate, 5 minutes to a day in whole minutes; by default 20 minutes.
            consolidation_step: The most instances that one consolidation releases, 1 to 100; by default 1.

        Raises:
            ConfigurationError: LLE106 and LLE444 for the numbers of instances, LLE621 for a
                minimum above the maximum, LLE310, LLE807, LLE452 to LLE454 for how instances
                are released.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(MANAGED_INSTANCES, min_instances, path)
        check(MAX_INSTANCES, max_instances, path)
        check_range(min_instances, max_instances, path)
        if not is_token(min_instances) and min_instances == 0:
            warn(
                self,
                "noInstance",
                "If no component has a copy, SageMaker removes the last instance. Requests then fail "
                "for several minutes until an instance is back, so no latency target is met.",
            )
        placed = groups_in(network, security_groups, path)
        self._host(network, placed, role, statements=[])
        self.needed = self._needed
        self.min_instances, self.max_instances = min_instances, max_instances
        self.model_name = None
        self.configuration_properties = {
            "ExecutionRoleArn": self.role.role_arn,
            "EnableNetworkIsolation": network_isolation,
            "VpcConfig": {"SecurityGroupIds": placed.group_ids, "Subnets": placed.subnet_ids},
        }
        managed: dict[str, Any] = {
            "Status": "ENABLED",
            "MinInstanceCount": min_instances,
            "MaxInstanceCount": max_instances,
        }
        policy = _scale_in_policy(scale_in, consolidation_cooldown, consolidation_step, path)
        if policy:
            managed["ScaleInPolicy"] = policy
        self.variant_properties = {"ManagedInstanceScaling": managed}


def _scale_in_policy(
    strategy: str | None, cooldown: Duration | timedelta | str | None, step: int | None, where: str
) -> dict[str, Any]:
    """CloudFormation's ``ScaleInPolicy``; empty where SageMaker's default holds."""
    consolidation: dict[str, Any] = {}
    if cooldown is not None:
        seconds = in_seconds(cooldown, where)
        minutes = seconds if is_token(seconds) else seconds / 60
        consolidation["CooldownInMinutes"] = CONSOLIDATION_COOLDOWN.check(minutes, where)
    if step is not None:
        consolidation["MaximumStepSize"] = check(CONSOLIDATION_STEP, step, where)
    if consolidation and strategy != "CONSOLIDATION":
        raise CONSOLIDATION_IS_OFF.error(
            got=f"scale_in={strategy!r}", allowed="scale_in='CONSOLIDATION'", where=where
        )
    return {"Strategy": strategy, **consolidation} if strategy else {}


@checked_arguments
class CopyScaling(ScalableTarget):
    """An inference component as a scalable target; what :meth:`InferenceComponent.scale` returns.

    Attributes
    ----------
    cfn_scalable_target : aws_applicationautoscaling.CfnScalableTarget
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        component: Construct,
        component_name: str,
        initial_copies: int,
        min_copies: int,
        max_copies: int,
        no_capacity: cloudwatch.IMetric,
    ) -> None:
        """An inference component as a scalable target; what :meth:`InferenceComponent.scale` returns."""
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(COPIES, initial_copies, path)
        check(SCALED_COPIES, min_copies, path)
        check(SCALED_COPIES, max_copies, path)
        check_range(min_copies, max_copies, path, initial=initial_copies, unit=" copies")
        self._no_capacity = no_capacity
        self._max_copies = max_copies
        self._register(
            _DESIRED_COPIES,
            f"inference-component/{component_name}",
            min_copies,
            max_copies,
            of=component_name,
        )
        # CloudFormation has no attribute with the component's name that would order the two.
        self.cfn_scalable_target.node.add_dependency(component)

    def track_invocations(
        self,
        *,
        target_invocations_per_copy: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
    ) -> CopyScaling:
        """Hold invocations per copy and minute at a target.

        Args:
            target_invocations_per_copy: May be a token.
            scale_in_cooldown: By default 300 seconds, as Application Auto Scaling does.
            scale_out_cooldown: By default 300 seconds, as Application Auto Scaling does.
            disable_scale_in: Only ever add copies; by default they are removed again.

        Raises:
            ConfigurationError: LLE602, LLE605, LLE626.
        """
        return self._track(
            "Invocations",
            _INVOCATIONS,
            check(SCALING_TARGET, target_invocations_per_copy, path_of(self)),
            self._cooldown(scale_in_cooldown),
            self._cooldown(scale_out_cooldown),
            disable_scale_in,
        )

    def track_concurrency(
        self,
        *,
        max_concurrency_per_copy: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
    ) -> CopyScaling:
        """Hold requests in flight per copy, measured every 10 seconds.

        Args:
            max_concurrency_per_copy: Requests in flight at a copy that scaling aims at.
            scale_in_cooldown: By default 300 seconds, as Application Auto Scaling does.
            scale_out_cooldown: By default 300 seconds, as Application Auto Scaling does.
            disable_scale_in: Only ever add copies; by default they are removed again.

        Raises:
            ConfigurationError: LLE602, LLE605, LLE626.
        """
        return self._track(
            "Concurrency",
            _CONCURRENCY,
            check(SCALING_TARGET, max_concurrency_per_copy, path_of(self)),
            self._cooldown(scale_in_cooldown),
            self._cooldown(scale_out_cooldown),
            disable_scale_in,
        )

    def from_zero(self, *, copies: int = 1, cooldown: Duration | None = None) -> cloudwatch.Alarm:
        """Bring copies back when a request finds none.

        Target tracking does not: without a copy there are no invocations per copy. Requests fail
        until the first copy serves, for minutes where an instance has to start. Source:
        https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-zero-instances.html

        Args:
            copies: How many to begin with; by default 1.
            cooldown: By default 60 seconds.

        Raises:
            ConfigurationError: LLE451 for more copies than scaling makes, LLE605, LLE626.
        """
        most = self._max_copies
        if not is_token(copies) and not is_token(most) and copies > most:
            raise MORE_COPIES_THAN_MAXIMUM.error(
                got=f"{copies} copies", allowed=f"at most max_copies={most}", where=path_of(self)
            )
        return self._step(
            "FromZero",
            metric=self._no_capacity,
            threshold=1,
            steps=[ScalingStep(lower=0, change=copies)],
            cooldown=cooldown or Duration.seconds(60),
            description="A request found no copy of the inference component",
        )


@checked_arguments
class InferenceComponent(Resource):
    """A model's copies on the instances of a :class:`ComponentHost`.

    Callers name endpoint and component. Not seen on AWS yet.

    Attributes
    ----------
    component_name : str
        The name itself: whoever uses it says by a dependency that it comes after the component.
    component_arn : str
        A token: whoever uses it is made after the component.
    cfn_inference_component : aws_sagemaker.CfnInferenceComponent

    Examples
    --------
    See :class:`ComponentHost`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        model: IModel,
        memory: Size,
        accelerators: int | None = None,
        cpus: float | None = None,
        max_memory: Size | None = None,
        copies: int = 2,
        placement: Literal["SPREAD", "BINPACK"] | None = None,
        cache_artifacts: bool = False,
        startup_health_check_timeout: Duration | timedelta | str | None = None,
        model_data_download_timeout: Duration | timedelta | str | None = None,
        component_name: str | None = None,
        variant_name: str | None = None,
    ) -> None:
        """A model's copies on the instances of a :class:`ComponentHost`.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: Whose variant has a :class:`ComponentHost` in a model's place, or one imported.
            model: What the copies serve; ``Model(role=host.role)`` for the host's role.
            memory: Memory that a copy needs at least, 128 MiB or more. A part of an instance's memory, which AWS does not state, is SageMaker's own: ask for what the copy needs, not for all there is.
            accelerators: GPUs or Neuron devices that a copy has to itself; by default none.
            cpus: vCPUs that a copy reserves, 0.25 or more; by default none are reserved.
            max_memory: Memory that a copy may use at most; by default not limited.
            copies: Copies at the first deployment, by default 2 so that two zones can serve; scaling owns the number afterwards.
            placement: Copies spread over instances, and balanced over zones; or packed onto few. By default as SageMaker does.
            cache_artifacts: Keep model data and image on each instance, for a faster start of further copies. By default SageMaker decides: on types with more than 232 GiB of local NVMe storage it caches by itself, whatever is stated (CloudFormation's schema, ``CurrentDataCacheConfig``).
            startup_health_check_timeout: How long a container may take to answer its first ping, 1 minute to 1 hour. By default SageMaker's.
            model_data_download_timeout: How long the download of the model's data may take, 1 minute to 1 hour. By default SageMaker's.
            component_name: What callers name. By default derived from the construct's path, in lower case. It stays: another name is another component, under another id.
            variant_name: By default the endpoint's first variant.

        Raises:
            ConfigurationError: LLE439 to LLE443 for name, copies and resources, LLE406 and
                LLE407 for the timeouts, LLE445 for a variant that has a model, LLE446 where
                the copies do not fit onto the instances, LLE622 for an unknown variant,
                LLE631 for an endpoint imported without variants, LLE33x when an image
                cannot run on the instance type, LLE931 for a name that another component has.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        stated = check(COMPONENT_NAME, component_name, path)
        claim_name(self, "components", stated)
        self.component_name: str = stated or name_anywhere(launched_name_of(self))
        check(COPIES, copies, path)
        needs = {
            "min_memory_required_in_mb": _mebibytes(memory, path),
            "max_memory_required_in_mb": _mebibytes(max_memory, path),
            "number_of_accelerator_devices_required": check(
                COMPONENT_ACCELERATORS, accelerators, path
            ),
            "number_of_cpu_cores_required": check(COMPONENT_CPUS, cpus, path),
        }
        variant = _variant(endpoint, variant_name, path)
        self._copies = ComponentCopies(variant, needs, copies)
        room: SharedRoom = kept(endpoint, "shared_room", lambda: SharedRoom(endpoint))
        room.add(self._copies, path)
        self._check_model(endpoint, variant, model)
        if accelerators is None:
            self._warn_of_accelerators(variant)
        component = sagemaker.CfnInferenceComponent
        startup = {
            "container_startup_health_check_timeout_in_seconds": check_seconds(
                CONTAINER_STARTUP_SECONDS, startup_health_check_timeout, path
            ),
            "model_data_download_timeout_in_seconds": check_seconds(
                MODEL_DOWNLOAD_SECONDS, model_data_download_timeout, path
            ),
        }
        self.cfn_inference_component = component(
            self,
            "Resource",
            inference_component_name=self.component_name,
            endpoint_name=endpoint.endpoint_name,
            variant_name=variant.name,
            specification=component.InferenceComponentSpecificationProperty(
                model_name=model.model_name,
                compute_resource_requirements=(
                    component.InferenceComponentComputeResourceRequirementsProperty(**needs)
                ),
                startup_parameters=component.InferenceComponentStartupParametersProperty(**startup)
                if any(startup.values())
                else None,
            ),
            runtime_config=component.InferenceComponentRuntimeConfigProperty(copy_count=copies),
        )
        if placement is not None:
            # Newer than the oldest aws-cdk-lib; CloudFormation wants both members.
            self.cfn_inference_component.add_property_override(
                "Specification.SchedulingConfig",
                {
                    "PlacementStrategy": placement,
                    "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 0},
                },
            )
        if cache_artifacts:
            self.cfn_inference_component.add_property_override(
                "Specification.DataCacheConfig", {"EnableCaching": True}
            )
        if endpoint.confirmation is not None:
            self.cfn_inference_component.node.add_dependency(endpoint.confirmation)
        self._endpoint = endpoint
        self.component_arn: str = self.cfn_inference_component.ref

    def scale(self, *, min_copies: int, max_copies: int) -> CopyScaling:
        """Let the number of copies follow the load; add a policy to what returns.

        Components may share instances that do not hold the most copies of all of them; a warning
        at synthesis says by how much.

        Args:
            min_copies: The fewest copies. With 0, :meth:`CopyScaling.from_zero` brings the first one back, and until it serves, for minutes, requests fail.
            max_copies: The most copies that scaling makes.

        Raises:
            ConfigurationError: LLE446 where the most copies do not fit onto the instances, LLE449,
                LLE621 and LLE625 for the range.
        """
        check(SCALED_COPIES, max_copies, path_of(self))
        self._copies.scale_to(max_copies, path_of(self))
        return CopyScaling(
            self,
            "Scaling",
            component=self.cfn_inference_component,
            component_name=self.component_name,
            initial_copies=self._copies.first,
            min_copies=min_copies,
            max_copies=max_copies,
            no_capacity=self.metric("NoCapacityInvocationFailures", statistic="Sum"),
        )

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal invoke the component, whole responses and streamed ones.

        IAM lists the endpoint and the component as resources of the action: both are granted.

        Args:
            grantee: Who gets the right.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(INVOKE_ACTIONS),
            resource_arns=[
                self._endpoint.endpoint_arn,
                arn("sagemaker", f"inference-component/{self.component_name}"),
            ],
        )

    def metric(
        self, name: str, *, statistic: str, period: Duration | timedelta | str | None = None
    ) -> cloudwatch.Metric:
        """A metric of the component by its name in CloudWatch, such as ``ModelLatency``.

        Args:
            name: CloudWatch's name of the metric.
            statistic: One that CloudWatch lists for the metric. Latencies are in microseconds.
            period: By default 1 minute; 10 seconds for the high-resolution ones.

        Raises:
            ConfigurationError: LLE730 to LLE732 for name and statistic, LLE366 for the
                period, LLE722 for a metric that components do not publish.
        """
        where = path_of(self)
        facts = metric_facts(name, where=where)
        check_statistic(name, statistic, where)
        if (_DIMENSION,) not in facts.dimensions:
            raise METRIC_NOT_PUBLISHED.error(
                got=f"{name} of a component",
                allowed=f"published for {', '.join(facts.shapes)}, not by component",
                where=where,
            )
        return cloudwatch.Metric(
            namespace=facts.namespace,
            metric_name=name,
            dimensions_map={_DIMENSION: self.component_name},
            statistic=statistic,
            period=checked_period(period, facts.period_seconds, where),
        )

    def _warn_of_accelerators(self, variant: VariantAttributes) -> None:
        """Say that a component may need an accelerator of an instance that has some."""
        types = [
            instance_type.name
            for instance_type in variant.instance_types
            if instance_type.facts is not None and instance_type.facts.accelerator_count
        ]
        if types:
            warn(
                self,
                "noAccelerators",
                f"The component reserves no accelerator of {types[0]}. SageMaker may refuse it on "
                "instances that have some, as a user of AWS reports "
                "(cloud-custodian/cloud-custodian#11078); AWS's pages do not say. Pass "
                "accelerators.",
            )

    def _check_model(self, endpoint: IEndpoint, variant: VariantAttributes, model: IModel) -> None:
        """Hold the model against its host, where both are made in the app."""
        if not isinstance(endpoint, Endpoint) or not isinstance(
            endpoint.configuration, EndpointConfiguration
        ):
            return
        hosting = cast(ProductionVariant, endpoint.configuration.variant(variant.name))
        for instance_type in variant.instance_types:
            check_images(
                self,
                ProductionVariant(
                    model=model,
                    instance_type=instance_type,
                    name=variant.name,
                    inference_ami=hosting.inference_ami,
                ),
            )
        if model.role is not hosting.model.role:
            warn(
                self,
                "rolesOfComponent",
                "The model's role is not the role of the endpoint's configuration, and AWS does not say "
                "which role fetches the image and data. Use Model(role=host.role) for both.",
            )
            if path_of(stack_of(endpoint)) == path_of(stack_of(model)):
                # Such a model waits for the endpoint's network interfaces to go.
                endpoint.cfn_endpoint.node.add_dependency(model)


def _mebibytes(size: Size | None, where: str) -> Any:
    return check(COMPONENT_MEMORY, size and size.to_mebibytes(), where)


def _variant(endpoint: IEndpoint, name: str | None, where: str) -> VariantAttributes:
    """The variant that holds the component."""
    if name is None and endpoint.variants:
        name = endpoint.variants[0].name
    variant = endpoint.variant(name).attributes
    if endpoint.variants and variant.shape != "inference-component":
        raise COMPONENTS_NEED_A_HOST.error(
            got=f"variant {variant.name} with a model",
            allowed="a variant with a ComponentHost",
            where=where,
        )
    return variant
