"""The containers of a model as CloudFormation takes them, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..plan.limits import CONTAINER_COUNT, ENVIRONMENT_TOTAL_BYTES
from ..plan.rules import (
    DIRECT_NEEDS_HOSTNAMES,
    HOSTNAME_TWICE,
    HOSTNAMES_ALL_OR_NONE,
    MODE_NEEDS_CONTAINERS,
)
from ..plan.secrets import secret_warning
from ..synthesis.findings import warn
from ..synthesis.validation import is_token
from .container import Container
from .model_data import container_property


def check_containers(
    containers: Sequence[Container], inference_mode: str | None, where: str
) -> None:
    CONTAINER_COUNT.check(len(containers), where)
    if inference_mode and len(containers) == 1:
        raise MODE_NEEDS_CONTAINERS.error(
            got=f"{inference_mode} with one container", allowed="no inference mode", where=where
        )
    hostnames = [container.hostname for container in containers if container.hostname]
    if len(containers) > 1:
        if hostnames and len(hostnames) < len(containers):
            raise HOSTNAMES_ALL_OR_NONE.error(
                got=f"{len(hostnames)} hostnames for {len(containers)} containers",
                allowed=f"0 or {len(containers)}",
                where=where,
            )
        if inference_mode == "Direct" and not hostnames:
            raise DIRECT_NEEDS_HOSTNAMES.error(
                got="no hostnames", allowed="one for each container", where=where
            )
        for hostname in hostnames:
            if hostnames.count(hostname) > 1:
                raise HOSTNAME_TWICE.error(
                    got=hostname, allowed="hostnames that differ", where=where
                )
    ENVIRONMENT_TOTAL_BYTES.check(
        sum(
            len(key.encode()) + (0 if is_token(value) else len(value.encode()))
            for container in containers
            for key, value in container.environment.items()
        ),
        where,
    )


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
