"""The containers of a model as CloudFormation takes them, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..errors.findings import located
from ..options.container import rules_of_containers
from ..plan.secrets import secret_warning
from ..synthesis.annotations import warn
from ..synthesis.template_values import is_token
from .container import Container
from .model_data import container_property


def check_containers(
    containers: Sequence[Container], inference_mode: str | None, where: str
) -> None:
    """The same as of a settings file's."""
    for _, error in rules_of_containers(containers, inference_mode):
        raise located(error, where)


def container_definition(
    scope: Construct, container: Container
) -> tuple[sagemaker.CfnModel.ContainerDefinitionProperty, list[dict[str, Any]]]:
    """The container as CloudFormation takes it, and what the model's role must be allowed."""
    package, image, data = container.model_package, container.image, container.model_data
    properties: dict[str, Any] = {}
    statements: list[dict[str, Any]] = []
    if image is not None:
        uri, statements = image.bind(scope)
        if package is None:
            properties = {"image": uri, **image.registry_access}
    if data is not None:
        uri, needed = data.bind(scope)
        statements = [*statements, *needed]
        if package is None:
            properties |= container_property(data, uri, multi_model=container.multi_model)
    if package is not None:
        properties["model_package_name"] = package
        if image is None or data is None:
            warn(
                scope,
                "modelPackageRights",
                "What the model package holds is not known at synth: allow the model's role to "
                "pull its image (ecr:BatchCheckLayerAvailability, ecr:BatchGetImage, "
                "ecr:GetDownloadUrlForLayer) and to read its data (s3:GetObject), or say them "
                "with image= and data= beside model_package.",
            )
    if container.environment:
        properties["environment"] = dict(container.environment)
    if container.hostname:
        properties["container_hostname"] = container.hostname
    if container.multi_model:
        properties["mode"] = "MultiModel"
    if container.model_cache is not None:
        properties["multi_model_config"] = sagemaker.CfnModel.MultiModelConfigProperty(
            model_cache_setting="Enabled" if container.model_cache else "Disabled"
        )
    return sagemaker.CfnModel.ContainerDefinitionProperty(**properties), statements


def warn_of_secrets(model: Construct, environment: Mapping[str, str]) -> None:
    """Say which values of an environment look like secrets, and not what they are."""
    for name, value in environment.items():
        text = None if is_token(value) else secret_warning(name, value)
        if text is not None:
            warn(model, f"secretInEnvironment:{name}", text)
