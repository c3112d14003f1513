"""Limits that AWS sets on inference components and on the instances that hold them."""

from __future__ import annotations

from .limit_kinds import number_range, text_form
from .limits import API, NAME_FORM, SAGEMAKER_NAME

_COMPONENT = API + "CreateInferenceComponent.html"
_RESOURCES = API + "InferenceComponentComputeResourceRequirements.html"

COMPONENT_NAME = text_form(
    "LLE439",
    "the inference component's name",
    SAGEMAKER_NAME,
    NAME_FORM,
    max_length=63,
    source=_COMPONENT,
)
COPIES = number_range(
    "LLE440",
    "the number of copies at the first deployment",
    1,
    None,
    source=_COMPONENT,
    fix="SageMaker was seen to refuse 0 at creation. Scale to 0 later: scale(min_copies=0, ...).",
)
SCALED_COPIES = number_range(
    "LLE449",
    "the number of copies that scaling goes to",
    0,
    None,
    source="/autoscaling/application/APIReference/API_RegisterScalableTarget.html",
)
COMPONENT_MEMORY = number_range(
    "LLE441", "the memory of a copy", 128, None, unit="MiB", source=_RESOURCES
)
COMPONENT_ACCELERATORS = number_range(
    "LLE442", "the number of accelerators of a copy", 1, None, source=_RESOURCES
)
COMPONENT_CPUS = number_range(
    "LLE443", "the number of vCPUs of a copy", 0.25, None, whole=False, source=_RESOURCES
)
MANAGED_INSTANCES = number_range(
    "LLE444",
    "the number of instances that SageMaker scales to",
    0,
    None,
    source=API + "ProductionVariantManagedInstanceScaling.html",
)
CONSOLIDATION_COOLDOWN = number_range(
    "LLE452",
    "the cooldown before copies are consolidated",
    5,
    1440,
    unit="minutes",
    source=API + "ProductionVariantManagedInstanceScalingScaleInPolicy.html",
)
CONSOLIDATION_STEP = number_range(
    "LLE453",
    "the number of instances that a consolidation releases at a time",
    1,
    100,
    source=API + "ProductionVariantManagedInstanceScalingScaleInPolicy.html",
)
