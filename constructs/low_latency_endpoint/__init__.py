"""Low-latency Amazon SageMaker real-time endpoints as AWS CDK constructs.

State where the callers run and what latency they must see; the constructs put subnets, the
PrivateLink interface endpoint and the model into the callers' Availability Zones and set routing,
scaling and alarms from the target.

Names are imported on first use (PEP 562): ``low_latency_endpoint.plan`` and
``low_latency_endpoint.operate`` start no Node.js.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .hosting.deployment import DeploymentPolicy
    from .hosting.endpoint import Endpoint
    from .hosting.endpoint_configuration import (
        DataCapture,
        EndpointConfiguration,
        MetricsPublishing,
    )
    from .hosting.images import ContainerImage
    from .hosting.model import Container, Model, ModelData
    from .hosting.scaling import InvocationScaling
    from .hosting.variant import (
        InferenceAmi,
        InstancePool,
        InstanceType,
        ProductionVariant,
        RoutingStrategy,
        VariantOptions,
    )
    from .load_test_fleet.load_test_fleet import LoadTestFleet
    from .monitoring.alarm_options import AlarmOptions, SlowRequests
    from .monitoring.alarm_topic import AlarmTopic
    from .monitoring.alarms import LatencyAlarms
    from .monitoring.dashboard import LatencyDashboard
    from .network.client_zones import ClientZones
    from .network.private_link import RuntimePrivateLink
    from .network.zone_aligned_network import ZoneAlignedNetwork
    from .pattern.low_latency_endpoint import LowLatencyEndpoint
    from .pattern.options import ConfigurationOptions, EndpointOptions, ModelOptions
    from .plan.endpoint_request import ScalingOptions
    from .plan.latency_target import LatencyTarget
    from .plan.throughput import MeasuredThroughput
    from .synthesis.safeguards import Safeguards
    from .warm_up.options import KeepWarmOptions, WarmUpMiss, WarmUpOptions
    from .warm_up.payload import WarmUpPayload
    from .warm_up.warm_up import WarmUp

_MODULE_OF = {
    "AlarmOptions": "monitoring.alarm_options",
    "AlarmTopic": "monitoring.alarm_topic",
    "ClientZones": "network.client_zones",
    "ConfigurationOptions": "pattern.options",
    "Container": "hosting.model",
    "ContainerImage": "hosting.images",
    "DataCapture": "hosting.endpoint_configuration",
    "DeploymentPolicy": "hosting.deployment",
    "Endpoint": "hosting.endpoint",
    "EndpointConfiguration": "hosting.endpoint_configuration",
    "EndpointOptions": "pattern.options",
    "InferenceAmi": "hosting.variant",
    "InstancePool": "hosting.variant",
    "InstanceType": "hosting.variant",
    "InvocationScaling": "hosting.scaling",
    "KeepWarmOptions": "warm_up.options",
    "LatencyAlarms": "monitoring.alarms",
    "LatencyDashboard": "monitoring.dashboard",
    "LatencyTarget": "plan.latency_target",
    "LoadTestFleet": "load_test_fleet.load_test_fleet",
    "LowLatencyEndpoint": "pattern.low_latency_endpoint",
    "MeasuredThroughput": "plan.throughput",
    "MetricsPublishing": "hosting.endpoint_configuration",
    "Model": "hosting.model",
    "ModelData": "hosting.model",
    "ModelOptions": "pattern.options",
    "ProductionVariant": "hosting.variant",
    "RoutingStrategy": "hosting.variant",
    "RuntimePrivateLink": "network.private_link",
    "Safeguards": "synthesis.safeguards",
    "ScalingOptions": "plan.endpoint_request",
    "SlowRequests": "monitoring.alarm_options",
    "VariantOptions": "hosting.variant",
    "WarmUp": "warm_up.warm_up",
    "WarmUpMiss": "warm_up.options",
    "WarmUpOptions": "warm_up.options",
    "WarmUpPayload": "warm_up.payload",
    "ZoneAlignedNetwork": "network.zone_aligned_network",
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
