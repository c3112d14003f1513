"""Low-latency Amazon SageMaker real-time endpoints as AWS CDK constructs.

State where the callers run and what latency they must see; the constructs put subnets, the
PrivateLink interface endpoint and the model into the callers' Availability Zones and set routing,
scaling and alarms from the target.

Names are imported on first use (PEP 562): ``low_latency_endpoint.planning`` and
``low_latency_endpoint.operations`` start no Node.js.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .alarm_options import AlarmOptions, SlowRequests
    from .alarm_topic import AlarmTopic
    from .alarms import LatencyAlarms
    from .client_zones import ClientZones
    from .dashboard import LatencyDashboard
    from .deployment import DeploymentPolicy
    from .endpoint import Endpoint
    from .endpoint_configuration import DataCapture, EndpointConfiguration, MetricsPublishing
    from .images import ContainerImage
    from .load_test_fleet import LoadTestFleet
    from .low_latency_endpoint import LowLatencyEndpoint
    from .model import Container, Model, ModelData
    from .network import ZoneAlignedNetwork
    from .pattern_options import ConfigurationOptions, EndpointOptions, ModelOptions
    from .planning.endpoint_request import ScalingOptions
    from .planning.latency_target import LatencyTarget
    from .planning.throughput import MeasuredThroughput
    from .private_link import RuntimePrivateLink
    from .safeguards import Safeguards
    from .scaling import InvocationScaling
    from .variant import (
        InferenceAmi,
        InstancePool,
        InstanceType,
        ProductionVariant,
        RoutingStrategy,
        VariantOptions,
    )
    from .warm_up import WarmUp
    from .warm_up_options import KeepWarmOptions, WarmUpMiss, WarmUpOptions
    from .warm_up_payload import WarmUpPayload

_MODULE_OF = {
    "AlarmOptions": "alarm_options",
    "AlarmTopic": "alarm_topic",
    "ClientZones": "client_zones",
    "ConfigurationOptions": "pattern_options",
    "Container": "model",
    "ContainerImage": "images",
    "DataCapture": "endpoint_configuration",
    "DeploymentPolicy": "deployment",
    "Endpoint": "endpoint",
    "EndpointConfiguration": "endpoint_configuration",
    "EndpointOptions": "pattern_options",
    "InferenceAmi": "variant",
    "InstancePool": "variant",
    "InstanceType": "variant",
    "InvocationScaling": "scaling",
    "KeepWarmOptions": "warm_up_options",
    "LatencyAlarms": "alarms",
    "LatencyDashboard": "dashboard",
    "LatencyTarget": "planning.latency_target",
    "LoadTestFleet": "load_test_fleet",
    "LowLatencyEndpoint": "low_latency_endpoint",
    "MeasuredThroughput": "planning.throughput",
    "MetricsPublishing": "endpoint_configuration",
    "Model": "model",
    "ModelData": "model",
    "ModelOptions": "pattern_options",
    "ProductionVariant": "variant",
    "RoutingStrategy": "variant",
    "RuntimePrivateLink": "private_link",
    "Safeguards": "safeguards",
    "ScalingOptions": "planning.endpoint_request",
    "SlowRequests": "alarm_options",
    "VariantOptions": "variant",
    "WarmUp": "warm_up",
    "WarmUpMiss": "warm_up_options",
    "WarmUpOptions": "warm_up_options",
    "WarmUpPayload": "warm_up_payload",
    "ZoneAlignedNetwork": "network",
}

__all__ = [
    "AlarmOptions",
    "AlarmTopic",
    "ClientZones",
    "ConfigurationOptions",
    "Container",
    "ContainerImage",
    "DataCapture",
    "DeploymentPolicy",
    "Endpoint",
    "EndpointConfiguration",
    "EndpointOptions",
    "InferenceAmi",
    "InstancePool",
    "InstanceType",
    "InvocationScaling",
    "KeepWarmOptions",
    "LatencyAlarms",
    "LatencyDashboard",
    "LatencyTarget",
    "LoadTestFleet",
    "LowLatencyEndpoint",
    "MeasuredThroughput",
    "MetricsPublishing",
    "Model",
    "ModelData",
    "ModelOptions",
    "ProductionVariant",
    "RoutingStrategy",
    "RuntimePrivateLink",
    "Safeguards",
    "ScalingOptions",
    "SlowRequests",
    "VariantOptions",
    "WarmUp",
    "WarmUpMiss",
    "WarmUpOptions",
    "WarmUpPayload",
    "ZoneAlignedNetwork",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
