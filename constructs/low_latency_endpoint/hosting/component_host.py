"""Instances that hold inference components: several models on one fleet, each with its copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from ..facts.limits import MANAGED_INSTANCES, MAX_INSTANCES
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import path_below
from ..synthesis.template_values import check, is_token
from .execution_role import ExecutionRole, HostedInNetwork, groups_in
from .images import ContainerImage
from .scaling_policies import check_order

if TYPE_CHECKING:
    pass


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
    ...                       initial_instance_count=1)])
    >>> endpoint = Endpoint(stack, "Endpoint", configuration=configuration)
    >>> model = Model(stack, "Llama", network=network, role=host.role, containers=[
    ...     Container.from_dlc("djl-inference", "0.36.0-lmi28.0.0-cu130",
    ...                        data="s3://models/llama-3-8b/")])
    >>> llama = InferenceComponent(stack, "Component", endpoint=endpoint, model=model,
    ...                            accelerators=1, memory=Size.gibibytes(32), copies=1)
    >>> scaling = llama.scale(min_copies=1, max_copies=8).track_concurrency(
    ...     max_concurrency_per_copy=4)
    """

    role: iam.IRole
    network: ZoneAlignedNetwork
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

        Raises:
            ConfigurationError: LLE106 and LLE444 for the numbers of instances, LLE621 for a
                minimum above the maximum, LLE310, LLE807.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(MANAGED_INSTANCES, min_instances, path)
        check(MAX_INSTANCES, max_instances, path)
        check_order(min_instances, max_instances, path)
        if not is_token(min_instances) and min_instances == 0:
            warn(
                self,
                "noInstance",
                "SageMaker lets the last instance go when no component has a copy, and requests "
                "then fail for several minutes until one is there again: no latency holds.",
            )
        placed = groups_in(network, security_groups, path)
        self._execution = ExecutionRole(
            self, network=network, placed=placed, role=role, statements=[]
        )
        self.role = self._execution.role
        self.needed = self._execution.needed
        self.min_instances, self.max_instances = min_instances, max_instances
        self.network = network
        self.model_name = None
        self.configuration_properties = {
            "ExecutionRoleArn": self.role.role_arn,
            "EnableNetworkIsolation": network_isolation,
            "VpcConfig": {"SecurityGroupIds": placed.group_ids, "Subnets": placed.subnet_ids},
        }
        self.variant_properties = {
            "ManagedInstanceScaling": {
                "Status": "ENABLED",
                "MinInstanceCount": min_instances,
                "MaxInstanceCount": max_instances,
            }
        }
