"""The settings file: one stack, its shared network and PrivateLink, and its endpoints.

:func:`load_settings` reads ``endpoint.yaml`` and reports every mistake at once, each with its
line. The models are frozen; durations are held as :class:`datetime.timedelta`. Nothing here
imports ``aws_cdk`` or ``boto3``.
"""

from __future__ import annotations

from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.container import ContainerSettings, ImageSettings, ModelDataSettings
from .endpoint import EndpointSettings, instances_in_update
from .loading import load_settings, parse_settings
from .plan_report import SharedResources, explain_variants, fleet_with_addresses, shared_resources
from .schema import settings_json_schema
from .stack import Settings, region_of
from .stack_cost import fleets_along, rises_along, set_times_along, stack_cost
from .variant_plans import (
    PlannedVariant,
    environment_place,
    has_own_model,
    plan_endpoint,
    planned_variants,
    served_containers,
)

__all__ = [
    "ContainerSettings",
    "EndpointSettings",
    "HuggingFaceSettings",
    "ImageSettings",
    "ModelDataSettings",
    "PlannedVariant",
    "Settings",
    "SharedResources",
    "environment_place",
    "explain_variants",
    "fleet_with_addresses",
    "fleets_along",
    "has_own_model",
    "instances_in_update",
    "load_settings",
    "parse_settings",
    "plan_endpoint",
    "planned_variants",
    "region_of",
    "rises_along",
    "served_containers",
    "set_times_along",
    "settings_json_schema",
    "shared_resources",
    "stack_cost",
]
