"""The rules about an inference component that its creation meets, and each update.

Words of refusals are ours unless a source is given.
"""

from __future__ import annotations

from typing import Any

from .hosting import all_variants, hosts_components
from .protocols import Invalid


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
