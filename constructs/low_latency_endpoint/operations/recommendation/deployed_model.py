"""The deployed model of an endpoint: its name, its network, as the job's input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ...settings import Settings
from .job_requests import VpcConfig
from .rules import MODEL_TO_TEST

__all__ = ["DeployedModel", "find_deployed_model", "find_endpoint", "read_model"]

ClientFactory = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class DeployedModel:
    """A model in SageMaker; ``vpc`` is ``None`` for a model without a network of its own."""

    name: str
    vpc: VpcConfig | None


def find_deployed_model(client: ClientFactory, settings: Settings, key: str) -> DeployedModel:
    """The model that the endpoint of the settings runs now.

    Parameters
    ----------
    client : callable
        Service name to boto3 client. Asks SageMaker, and CloudFormation where the settings leave
        the endpoint's name open.
    settings : Settings
    key : str
        The endpoint's key in the settings.

    Raises
    ------
    ConfigurationError
        LLE972 when nothing is deployed, or several endpoints could be meant.
    """
    sagemaker = client("sagemaker")
    name = find_endpoint(client, settings, key)
    endpoint = _described(sagemaker.describe_endpoint, f"endpoint {name}", EndpointName=name)
    configuration = sagemaker.describe_endpoint_config(
        EndpointConfigName=endpoint["EndpointConfigName"])
    wanted = settings.endpoints[key].variant_name
    variants = configuration["ProductionVariants"]
    variant = next((each for each in variants if each["VariantName"] == wanted), variants[0])
    if not variant.get("ModelName"):
        raise MODEL_TO_TEST.error(got=f"variant {variant['VariantName']} without a model of its "
                                      "own (inference components)", allowed="a variant with one")
    return read_model(client, variant["ModelName"])


def read_model(client: ClientFactory, name: str) -> DeployedModel:
    """A model by its name.

    Raises
    ------
    ConfigurationError
        LLE972 when there is no such model.
    """
    model = _described(client("sagemaker").describe_model, f"model {name}", ModelName=name)
    network = model.get("VpcConfig")
    return DeployedModel(name, VpcConfig(
        tuple(network["Subnets"]), tuple(network["SecurityGroupIds"])) if network else None)


def _described(describe: Callable[..., dict[str, Any]], what: str, **request: str) -> Any:
    try:
        return describe(**request)
    except ClientError as error:
        # SageMaker's word for "there is none" is a ValidationException with this text.
        if "Could not find" not in str(error):
            raise
    raise MODEL_TO_TEST.error(got=f"no {what}", allowed="what is deployed")


def find_endpoint(client: ClientFactory, settings: Settings, key: str) -> str:
    """The deployed endpoint's name: the settings' own, or what CloudFormation made.

    Raises
    ------
    ConfigurationError
        LLE972 when several endpoints could be meant, or none is deployed.
    """
    return settings.endpoints[key].endpoint_name or _only_endpoint(client, settings, key)


def _only_endpoint(client: ClientFactory, settings: Settings, key: str) -> str:
    """The endpoint's name from the stack, when the stack has but one.

    Endpoints without a name of their own get one from CloudFormation that only the stack knows.
    """
    if len(settings.endpoints) > 1:
        raise MODEL_TO_TEST.error(
            got=f"{key} has no endpoint_name", allowed="endpoint_name in the settings",
            mend="State endpoint_name, or pass --model-name with the deployed model's name.")
    pages = client("cloudformation").get_paginator("list_stack_resources")
    try:
        found = [resource["PhysicalResourceId"]
                 for page in pages.paginate(StackName=settings.stack_name)
                 for resource in page["StackResourceSummaries"]
                 if resource["ResourceType"] == "AWS::SageMaker::Endpoint"
                 and resource["ResourceStatus"] != "DELETE_COMPLETE"]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        found = []
    if len(found) != 1:
        raise MODEL_TO_TEST.error(got=f"{len(found)} endpoints in stack {settings.stack_name}",
                                  allowed="one endpoint")
    return str(found[0].rpartition("/")[2])  # the physical ID is the endpoint's ARN
