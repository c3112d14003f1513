"""The rules about variants, deployments and inference components that creation and updates meet.

Words of refusals are ours unless a source is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .application import Caller
from .hosting import all_variants, containers_of, hosts_components, scaling
from .protocols import Invalid
from .runtime.options import RuntimeOptions

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_COPIED = ("ManagedInstanceScaling", "RoutingConfig", "CapacityReservationConfig")


def check_shadows(config: Mapping[str, Any]) -> None:
    """Refuse a shadow variant beside several variants of either kind.

    "If you use this field, you can only specify one variant for ProductionVariants and one variant
    for ShadowProductionVariants" (API reference, CreateEndpointConfig); the words are ours.
    """
    shadows = config.get("ShadowProductionVariants") or []
    production = config.get("ProductionVariants") or []
    if shadows and (len(shadows) > 1 or len(production) != 1):
        raise Invalid(
            "With ShadowProductionVariants only one variant can be specified for "
            "ProductionVariants and one for ShadowProductionVariants: "
            f"got {len(production)} and {len(shadows)}"
        )


_ENVIRONMENT_BYTES = 32 * 1024  # API reference, ContainerDefinition


def check_containers(containers: Sequence[Mapping[str, Any]]) -> None:
    """Hold a model's containers to what ContainerDefinition says of several fields."""
    named = [container for container in containers if container.get("ContainerHostname")]
    if named and len(named) < len(containers):
        raise Invalid("ContainerHostname must be specified for every container of a pipeline")
    environments = [container.get("Environment") or {} for container in containers]
    if sum(map(_size, environments)) > _ENVIRONMENT_BYTES:
        raise Invalid("Environment can have 32 KB at most, over all containers")
    for container in containers:
        if container.get("Mode") == "MultiModel" and container.get("ModelDataSource"):
            raise Invalid("ModelDataSource cannot be used with multi-model endpoints")


def _size(environment: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in environment.items())


def check_serverless(
    variant: Mapping[str, Any], config: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]]
) -> None:
    """Hold a serverless variant to what its API reference says."""
    serverless = variant.get("ServerlessConfig")
    if not serverless:
        return
    if serverless.get("ProvisionedConcurrency", 0) > serverless["MaxConcurrency"]:
        raise Invalid("ProvisionedConcurrency should be less than or equal to MaxConcurrency")
    if config.get("CrossRegionTrafficConfig"):
        raise Invalid("CrossRegionTrafficConfig cannot be specified with serverless variants")
    containers = containers_of(models.get(variant.get("ModelName", ""), {}))
    if any(container.get("ModelDataSource") for container in containers):
        raise Invalid("ModelDataSource cannot be used with serverless endpoints")


def check_component_variants(config: Mapping[str, Any], options: RuntimeOptions) -> None:
    """Hold a configuration to what inference components need of it, and models forbid.

    That the role is needed was measured (https://github.com/stdapi-ai/stdapi.ai/issues/43), as was
    the refusal of 0 instances, whose words are AWS's; those about the role are ours.
    """
    for variant in all_variants(config):
        managed = variant.get("ManagedInstanceScaling") or {}
        if not hosts_components(variant):
            if managed:  # hashicorp/terraform-provider-aws#45926
                raise Invalid(
                    "ManagedInstanceScaling is only supported for inference component endpoints"
                )
            continue
        if not config.get("ExecutionRoleArn"):
            raise Invalid(
                f"ExecutionRoleArn must be specified: variant {variant['VariantName']} has no "
                "ModelName, and is for inference components"
            )
        enabled = managed.get("Status") == "ENABLED"
        if enabled and managed.get("MinInstanceCount") == 0 and not options.managed_scaling_to_zero:
            raise Invalid(
                "Min instance count needs to be greater than 0 for enabled managed instance scaling"
            )


def describe_variants(
    variants: list[dict[str, Any]],
    models: dict[str, dict[str, Any]],
    current: dict[str, dict[str, Any]],
    retained: frozenset[str],
    at: datetime,
) -> list[dict[str, Any]]:
    result = []
    for variant in variants:
        name = variant["VariantName"]
        before = current.get(name, {})
        described: dict[str, Any] = {"VariantName": name}
        containers = containers_of(models.get(variant.get("ModelName", ""), {}))
        images = [deployed_image(each["Image"], at) for each in containers if each.get("Image")]
        if images:
            described["DeployedImages"] = images
        weight = variant.get("InitialVariantWeight", 1.0)
        if "DesiredWeight" in retained:
            weight = before.get("DesiredWeight", weight)
        described["CurrentWeight"] = described["DesiredWeight"] = weight
        if "ServerlessConfig" in variant:
            described["CurrentServerlessConfig"] = variant["ServerlessConfig"]
        else:
            count = variant.get("InitialInstanceCount", 1)
            if "DesiredInstanceCount" in retained:
                count = before.get("DesiredInstanceCount", count)
            described["CurrentInstanceCount"] = described["DesiredInstanceCount"] = count
        described |= {key: variant[key] for key in _COPIED if key in variant}
        result.append(described)
    return result


def deployed_image(image: str, at: datetime) -> dict[str, Any]:
    return {"SpecifiedImage": image, "ResolvedImage": image, "ResolutionTime": at}


def check_deployment_config(deployment: dict[str, Any] | None, described: dict[str, Any]) -> None:
    """Refuse a deployment configuration with sizes out of range."""
    if not deployment:
        return
    blue_green = deployment.get("BlueGreenUpdatePolicy")
    total = sum(
        variant.get("DesiredInstanceCount", 0)
        for variant in described.get("ProductionVariants") or []
    )
    check_sizes(deployment.get("RollingUpdatePolicy") or {}, total)
    if not blue_green:
        return
    routing = blue_green["TrafficRoutingConfiguration"]
    for kind, field in (("CANARY", "CanarySize"), ("LINEAR", "LinearStepSize")):
        if (routing["Type"] == kind) != (field in routing):
            verb = "must" if routing["Type"] == kind else "must not"
            raise Invalid(f"{field} {verb} be specified for traffic routing type {routing['Type']}")
    check_sizes(routing, total)


# Source: API reference, TrafficRoutingConfig, RollingUpdatePolicy and that of inference components.
# Of the rollback's batch nothing is said but its default, 100 percent.
_SHARES = {
    "CanarySize": (0, 50),
    "LinearStepSize": (10, 50),
    "MaximumBatchSize": (5, 50),
    "RollbackMaximumBatchSize": (0, 100),
}
"""Percent of all instances of a variant, or copies of a component, by a deployment's field."""


def check_sizes(policy: Mapping[str, Any], total: int) -> None:
    """Hold a deployment's sizes against their ranges; the words of the refusal are ours."""
    for name, (least, most) in _SHARES.items():
        size = policy.get(name)
        if size is None:
            continue
        share = size["Value"]
        if size["Type"] != "CAPACITY_PERCENT":
            share = 100 * size["Value"] / max(total, 1)
        if not least <= share <= most:
            raise Invalid(
                f"{name} of {size['Value']} ({size['Type']}) of {total} must be between {least}% and "
                f"{most}% of the total count"
            )


def check_scalable_variants(
    caller: Caller, endpoint: str, former: dict[str, Any], config: dict[str, Any]
) -> None:
    """Refuse to remove, or to change the instance type of, a variant that scaling watches."""
    targets = scaling(*caller.place).targets
    wanted = {v["VariantName"]: v for v in all_variants(config)}
    blocked = []
    for variant in all_variants(former):
        name = variant["VariantName"]
        if ("sagemaker", f"endpoint/{endpoint}/variant/{name}", _DIMENSION) not in targets:
            continue
        same_type = name in wanted and (
            wanted[name].get("InstanceType") == variant.get("InstanceType")
        )
        if not same_type:
            blocked.append(name)
    if blocked:
        raise Invalid(
            f'The variant(s) "[{", ".join(blocked)}]" must be deregistered as scalable targets '
            "with AutoScaling before they can be removed or have their instance type updated."
        )


def check_component(
    request: dict[str, Any], endpoint: dict[str, Any], config: dict[str, Any]
) -> str:
    """Refuse a component that has no place; gives the name of its variant."""
    if request.get("Specifications") or not request.get("Specification"):
        raise Invalid("Specifications are not emulated by the local AWS; give one Specification")
    if endpoint["EndpointStatus"] != "InService":
        raise Invalid(
            f'Endpoint "{endpoint["EndpointArn"]}" is {endpoint["EndpointStatus"]}; an inference '
            "component can only be created on one that is InService."
        )
    variants = {variant["VariantName"]: variant for variant in all_variants(config)}
    name = request.get("VariantName") or (next(iter(variants)) if len(variants) == 1 else "")
    if name not in variants:
        raise Invalid(
            f'The variant name "{name}" is not present within endpoint configuration '
            f'"{config["EndpointConfigName"]}".'
        )
    if not hosts_components(variants[name]):
        raise Invalid(f"Variant {name} has a model, and can host no inference components.")
    if not (request.get("RuntimeConfig") or {}).get("CopyCount"):
        # Measured, words included: https://github.com/stdapi-ai/stdapi.ai/issues/43
        raise Invalid("Inference components copy count an integer larger than 0")
    return str(name)


def check_specification(specification: dict[str, Any]) -> None:
    """Refuse a specification that names no model, or not what a copy needs."""
    if specification.get("BaseInferenceComponentName"):
        raise Invalid("Adapter inference components are not emulated by the local AWS")
    container = specification.get("Container") or {}
    if bool(specification.get("ModelName")) == bool(container.get("Image")):
        raise Invalid("One and only one of ModelName and Container with Image must be specified")
    # "Omit this parameter if your request is meant to create an adapter inference component" (API
    # reference, InferenceComponentSpecification).
    if not specification.get("ComputeResourceRequirements"):
        raise Invalid("ComputeResourceRequirements must be specified")
