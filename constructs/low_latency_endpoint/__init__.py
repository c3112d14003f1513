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
    from .hosting.container import Container, HuggingFaceModel
    from .hosting.endpoint import Endpoint
    from .hosting.endpoint_configuration import EndpointConfiguration, IEndpointConfiguration
    from .hosting.endpoint_interface import IEndpoint
    from .hosting.images import ContainerImage
    from .hosting.inference_component import ComponentHost, CopyScaling, InferenceComponent
    from .hosting.instance_type import InstanceType
    from .hosting.model import Model
    from .hosting.model_data import ModelData
    from .hosting.model_interface import IModel
    from .hosting.scaling import InvocationScaling
    from .hosting.staged_model import StagedModel
    from .hosting.variant import InstancePool, ProductionVariant, VariantAttributes
    from .load_test_fleet.load_test_fleet import LoadTestFleet
    from .monitoring.alarm_topic import AlarmTopic
    from .monitoring.alarms import LatencyAlarms
    from .monitoring.dashboard import LatencyDashboard
    from .monitoring.shadow_alarms import ShadowAlarms
    from .monitoring.token_alarms import TokenLatencyAlarms
    from .network.private_link import RuntimePrivateLink
    from .network.zone_aligned_network import ZoneAlignedNetwork
    from .options.alarms import AlarmOptions, SlowRequests, TokenAlarmOptions
    from .options.canary import CanaryOptions
    from .options.deployment import DeploymentPolicy
    from .options.endpoint import (
        ConfigurationOptions,
        EndpointOptions,
        MetricsPublishing,
        ModelOptions,
    )
    from .options.latency_target import LatencyTarget
    from .options.load import TokenLengths, TokenTraffic
    from .options.network import ClientZones
    from .options.safeguards import Safeguards
    from .options.scaling import (
        InstanceCounts,
        ScalingOptions,
        ScalingSchedule,
        ScalingSteps,
        StepUp,
    )
    from .options.throughput import MeasuredThroughput, PeakAtTime
    from .options.variant import InferenceAmi, RoutingStrategy, VariantOptions
    from .options.warm_up import KeepWarmOptions, WarmUpOptions, WarmUpPayload
    from .options.written_to_s3 import CoreDump, DataCapture
    from .pattern.load_test_fleet_stack import LoadTestFleetStack
    from .pattern.low_latency_endpoint import LowLatencyEndpoint
    from .pattern.low_latency_endpoint_stack import LowLatencyEndpointStack
    from .pattern.variants import FurtherVariant
    from .warm_up.warm_up import WarmUp
    from .warm_up.zone_canary import ZoneCanary

_MODULE_OF = {
    name: module
    for module, names in {
        "hosting.container": "Container HuggingFaceModel",
        "hosting.endpoint": "Endpoint",
        "hosting.endpoint_configuration": "EndpointConfiguration IEndpointConfiguration",
        "hosting.endpoint_interface": "IEndpoint",
        "hosting.images": "ContainerImage",
        "hosting.inference_component": "ComponentHost CopyScaling InferenceComponent",
        "hosting.instance_type": "InstanceType",
        "hosting.model": "Model",
        "hosting.model_data": "ModelData",
        "hosting.model_interface": "IModel",
        "hosting.scaling": "InvocationScaling",
        "hosting.staged_model": "StagedModel",
        "hosting.variant": "InstancePool ProductionVariant VariantAttributes",
        "load_test_fleet.load_test_fleet": "LoadTestFleet",
        "monitoring.alarm_topic": "AlarmTopic",
        "monitoring.alarms": "LatencyAlarms",
        "monitoring.dashboard": "LatencyDashboard",
        "monitoring.shadow_alarms": "ShadowAlarms",
        "monitoring.token_alarms": "TokenLatencyAlarms",
        "network.private_link": "RuntimePrivateLink",
        "network.zone_aligned_network": "ZoneAlignedNetwork",
        "options.alarms": "AlarmOptions SlowRequests TokenAlarmOptions",
        "options.deployment": "DeploymentPolicy",
        "options.endpoint": "ConfigurationOptions EndpointOptions MetricsPublishing ModelOptions",
        "options.latency_target": "LatencyTarget",
        "options.network": "ClientZones",
        "options.safeguards": "Safeguards",
        "options.scaling": "InstanceCounts ScalingOptions ScalingSchedule ScalingSteps StepUp",
        "options.load": "TokenLengths TokenTraffic",
        "options.throughput": "MeasuredThroughput PeakAtTime",
        "options.variant": "InferenceAmi RoutingStrategy VariantOptions",
        "options.canary": "CanaryOptions",
        "options.warm_up": "KeepWarmOptions WarmUpOptions WarmUpPayload",
        "options.written_to_s3": "CoreDump DataCapture",
        "pattern.load_test_fleet_stack": "LoadTestFleetStack",
        "pattern.low_latency_endpoint": "LowLatencyEndpoint",
        "pattern.low_latency_endpoint_stack": "LowLatencyEndpointStack",
        "pattern.variants": "FurtherVariant",
        "warm_up.warm_up": "WarmUp",
        "warm_up.zone_canary": "ZoneCanary",
    }.items()
    for name in names.split()
}

__all__ = [
    "AlarmOptions",
    "AlarmTopic",
    "CanaryOptions",
    "ClientZones",
    "ComponentHost",
    "ConfigurationOptions",
    "Container",
    "ContainerImage",
    "CopyScaling",
    "CoreDump",
    "DataCapture",
    "DeploymentPolicy",
    "Endpoint",
    "EndpointConfiguration",
    "EndpointOptions",
    "FurtherVariant",
    "HuggingFaceModel",
    "IEndpoint",
    "IEndpointConfiguration",
    "IModel",
    "InferenceAmi",
    "InferenceComponent",
    "InstanceCounts",
    "InstancePool",
    "InstanceType",
    "InvocationScaling",
    "KeepWarmOptions",
    "LatencyAlarms",
    "LatencyDashboard",
    "LatencyTarget",
    "LoadTestFleet",
    "LoadTestFleetStack",
    "LowLatencyEndpoint",
    "LowLatencyEndpointStack",
    "MeasuredThroughput",
    "MetricsPublishing",
    "Model",
    "ModelData",
    "ModelOptions",
    "PeakAtTime",
    "ProductionVariant",
    "RoutingStrategy",
    "RuntimePrivateLink",
    "Safeguards",
    "ScalingOptions",
    "ScalingSchedule",
    "ScalingSteps",
    "ShadowAlarms",
    "SlowRequests",
    "StagedModel",
    "StepUp",
    "TokenAlarmOptions",
    "TokenLatencyAlarms",
    "TokenLengths",
    "TokenTraffic",
    "VariantAttributes",
    "VariantOptions",
    "WarmUp",
    "WarmUpOptions",
    "WarmUpPayload",
    "ZoneAlignedNetwork",
    "ZoneCanary",
]


if not TYPE_CHECKING:  # which would take every misspelled name for one that this finds

    def __getattr__(name: str) -> Any:
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
