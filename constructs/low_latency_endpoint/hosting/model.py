"""The SageMaker model: containers, data, role, and its place in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..facts.limits import ARCHITECTURE, ENDPOINT_NAME
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..plan.published_metrics import endpoint_shape
from ..synthesis.arns import bucket_arn, split_s3_uri
from ..synthesis.construct_tree import path_below
from ..synthesis.rights import reading
from ..synthesis.template_values import cfn_tags, check
from .container import (
    Container,
    check_containers,
    container_definition,
    container_on,
    warn_of_secrets,
)
from .execution_role import HostedInNetwork, groups_in
from .images import ContainerImage
from .model_interface import IModel, ImportedModel, model_of_cfn


@checked_arguments
class Model(HostedInNetwork):
    """A SageMaker model in the network's subnets, with a role of its own.

    The role may pull this image, read this data, write the logs of ``endpoint_names`` and
    SageMaker's metrics, and make the network interfaces in these subnets; nothing else (never
    AmazonSageMakerFullAccess). Its policies exist before the model does. What one version needs
    (image, data, subnets, groups, names of endpoints) is in policies whose names follow their
    content: an update adds the new version's and takes the old ones away after the endpoint has
    changed, so that the old fleet can replace instances as long as it serves. The model carries no
    fixed name: any change but of its tags replaces it.

    When the stack goes, role, policies, groups and subnets wait for SageMaker's network
    interfaces to go, which costs one Lambda function per stack.

    Attributes
    ----------
    model_name, model_arn : str
    role, grant_principal : aws_iam.IRole
    connections : aws_ec2.Connections
    cfn_model : aws_sagemaker.CfnModel
    containers : tuple of Container
    images : tuple of ContainerImage
        The containers' images, as far as they are known.
    shape : {"single-model", "multi-model", "pipeline"}
        What it serves, which decides which metrics there are.
    network : ZoneAlignedNetwork

    Examples
    --------
    >>> from aws_cdk import App, Stack
    >>> from low_latency_endpoint import (
    ...     ClientZones, Container, ContainerImage, Model, ModelData, ZoneAlignedNetwork)
    >>> stack = Stack(App(), "Serving")
    >>> network = ZoneAlignedNetwork(
    ...     stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"))
    >>> model = Model(stack, "Model", network=network, containers=[Container(
    ...     image=ContainerImage.from_dlc(
    ...         "huggingface-pytorch-inference",
    ...         "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"),
    ...     data=ModelData.from_uri("s3://models/distilbert/model.tar.gz"),
    ...     environment={"HF_TASK": "text-classification"})])
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        containers: Sequence[Container],
        role: iam.IRole | None = None,
        inference_mode: Literal["Serial", "Direct"] | None = None,
        network_isolation: bool | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        architecture: str | None = None,
        endpoint_names: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """A SageMaker model in the network's subnets, with a role of its own.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            network: Where the instances run: the same subnets as the interface endpoint's, so that a call can do without a hop between zones (not seen on AWS).
            containers: One, or up to fifteen in a pipeline (serial) or to choose from (direct).
            role: Execution role; by default a new one. A policy with what the model needs is attached to it, where CDK can change it.
            inference_mode: How several containers are invoked; by default Serial.
            network_isolation: No network calls from or to the containers; SageMaker then fetches model data through the VPC, which the network's S3 gateway endpoint serves. By default on where all containers serve models of the Hugging Face Hub, which are staged for that; else off.
            architecture: Of the instances, for images built from a Dockerfile without a platform of their own. By default they are built for the machine that builds them.
            security_groups: By default the network's ``model_security_group``.
            endpoint_names: Names of all endpoints that serve the model, as they are stated to them: the role writes only these endpoints' logs. By default every endpoint's, as a model does not know its endpoints. Not an endpoint's ``endpoint_name``, which waits for the model.
            tags: By default none. With others the model is updated in place, and not replaced; what ``Tags.of(...)`` adds goes beside them, and wins over the same key.

        Raises:
            ConfigurationError: LLE301, LLE308 to LLE311, LLE314, LLE321 to LLE324, LLE501
                for a name of an endpoint, LLE509 to LLE511 for tags, LLE807.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        names = [check(ENDPOINT_NAME, name, path) for name in endpoint_names]
        containers = [container_on(container, (), where=path) for container in containers]
        check_containers(containers, inference_mode, path)
        check(ARCHITECTURE, architecture, path)
        containers = [
            replace(container, image=container.image and container.image.built_for(architecture))
            for container in containers
        ]
        placed = groups_in(network, security_groups, path)

        statements: list[Mapping[str, Any]] = []
        definitions = []
        for index, container in enumerate(containers):
            warn_of_secrets(self, container.environment)
            part = Construct(self, f"Container{index}")
            definition, needed = container_definition(part, container)
            definitions.append(definition)
            statements += [statement for statement in needed if statement not in statements]
        network.let_into_s3([*statements, *_named_in_environments(containers)])
        self._host(network, placed, role, statements, names)

        several = len(definitions) > 1
        self.cfn_model = sagemaker.CfnModel(
            self,
            "Resource",
            execution_role_arn=self.role.role_arn,
            primary_container=None if several else definitions[0],
            containers=definitions if several else None,
            inference_execution_config=(
                sagemaker.CfnModel.InferenceExecutionConfigProperty(mode=inference_mode or "Serial")
                if several
                else None
            ),
            enable_network_isolation=all(
                container.hugging_face is not None for container in containers
            )
            if network_isolation is None
            else network_isolation,
            vpc_config=sagemaker.CfnModel.VpcConfigProperty(
                security_group_ids=placed.group_ids, subnets=placed.subnet_ids
            ),
            tags=cfn_tags(tags, path),
        )
        # SageMaker checks the role when the model is made, and fetches data when the endpoint is.
        # What the grant_* methods add goes into the policy too, so nothing runs ahead of it.
        self._before(self.cfn_model)
        self.model_name: str = self.cfn_model.attr_model_name
        self.model_arn: str = self.cfn_model.ref
        self.containers = tuple(containers)
        self.images = tuple(
            container.image for container in containers if container.image is not None
        )
        self.hub_servings = tuple(
            container.hugging_face.serving
            for container in containers
            if container.hugging_face and container.hugging_face.serving
        )
        self.shape = endpoint_shape(
            len(containers), multi_model=any(container.multi_model for container in containers)
        )

    @classmethod
    def from_model_name(cls, scope: Construct, id: str, model_name: str) -> IModel:
        """A model of this account and Region that is made elsewhere, by its name.

        Raises
        ------
        ConfigurationError
            LLE373 for an impossible name.
        """
        return ImportedModel(scope, id, model_name=model_name)

    @classmethod
    def from_model_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        model_name: str,
        role: iam.IRole | None = None,
        images: Sequence[ContainerImage] = (),
        shape: Literal["single-model", "multi-model", "pipeline"] = "single-model",
        network: ZoneAlignedNetwork | None = None,
    ) -> IModel:
        """A model that is made elsewhere, with what a variant asks of it.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            model_name: The model's name.
            role: Its execution role, which data capture, core dumps and volume keys have to be allowed for; by default not known, and a warning says what to allow.
            images: Held against the instance type; by default not known.
            shape: Decides which metrics there are; by default a single model.
            network: Where its instances run, whose room then is counted. By default not known: whether it stands in the callers' zones is then yours to see to.

        Raises:
            ConfigurationError: LLE373 for an impossible name.

        Examples:
            >>> from aws_cdk import App, Stack
            >>> from low_latency_endpoint import (
            ...     EndpointConfiguration, InstanceType, Model, ProductionVariant, RoutingStrategy)
            >>> stack = Stack(App(), "Serving")
            >>> model = Model.from_model_name(stack, "Approved", "fraud-2026-11-20")
            >>> configuration = EndpointConfiguration(stack, "Configuration", variants=[
            ...     ProductionVariant(model=model, instance_type=InstanceType("ml.m5.xlarge"),
            ...                       routing=RoutingStrategy.LEAST_OUTSTANDING_REQUESTS)])
        """
        return ImportedModel(
            scope, id, model_name=model_name, role=role, images=images, shape=shape, network=network
        )

    @classmethod
    def from_cfn_model(
        cls,
        cfn_model: sagemaker.CfnModel,
        *,
        role: iam.IRole | None = None,
        network: ZoneAlignedNetwork | None = None,
    ) -> IModel:
        """A model that other code of the app made as an L1 construct.

        Args:
            cfn_model: Its images are held against the instance type, as far as they are text.
            role: Its execution role, which data capture, core dumps and volume keys have to be allowed for; by default not known, and a warning says what to allow.
            network: Where its instances run, whose room then is counted. By default not known: whether it stands in the callers' zones is then yours to see to.
        """
        return model_of_cfn(cfn_model, role=role, network=network)


def _named_in_environments(containers: Sequence[Container]) -> list[dict[str, Any]]:
    """Reading the S3 URIs of environments, for the way only: the role says what may be read."""
    locations = [
        location
        for container in containers
        for value in container.environment.values()
        if (location := split_s3_uri(value)) is not None
    ]
    return [
        statement
        for bucket, key in locations
        if bucket
        for statement in reading(bucket_arn(bucket), key)
    ]
