"""The settings file: one stack, its shared network and PrivateLink, and its endpoints.

:func:`load_settings` reads ``endpoint.yaml`` and reports every mistake at once, each with its
line. The models are frozen; durations are held as :class:`datetime.timedelta`. Nothing here
imports ``aws_cdk`` or ``boto3``.
"""

from __future__ import annotations

from .alarms import AlarmSettings, SlowRequestSettings
from .containers import (
    ContainerSettings,
    DeepLearningContainerSettings,
    EcrImageSettings,
    ImageSettings,
    ModelDataSettings,
)
from .deployment import (
    AllAtOnceSettings,
    CanarySettings,
    DeploymentSettings,
    LinearSettings,
    RollingSettings,
)
from .endpoint import CoreDumpSettings, DataCaptureSettings, EndpointSettings, MetricSettings
from .loading import load_settings, parse_settings
from .network import ClientZoneSettings, NetworkSettings, PrivateLinkSettings
from .plans import (
    endpoint_request,
    explain_endpoint,
    instances_in_update,
    largest_fleet,
    plan_endpoint,
    stack_cost,
)
from .recommendation import PhaseSettings, RecommendationSettings, StairsSettings
from .safeguards import SafeguardSettings
from .schema import settings_json_schema
from .stack import Settings
from .traffic import (
    InstanceCountSettings,
    LatencySettings,
    PrefixAwareRouting,
    PrefixAwareSettings,
    ScalingSettings,
    ThroughputSettings,
)
from .warm_up import KeepWarmSettings, WarmUpPayloadSettings, WarmUpSettings

__all__ = [
    "AlarmSettings",
    "AllAtOnceSettings",
    "CanarySettings",
    "ClientZoneSettings",
    "ContainerSettings",
    "CoreDumpSettings",
    "DataCaptureSettings",
    "DeepLearningContainerSettings",
    "DeploymentSettings",
    "EcrImageSettings",
    "EndpointSettings",
    "ImageSettings",
    "InstanceCountSettings",
    "KeepWarmSettings",
    "LatencySettings",
    "LinearSettings",
    "MetricSettings",
    "ModelDataSettings",
    "NetworkSettings",
    "PhaseSettings",
    "PrefixAwareRouting",
    "PrefixAwareSettings",
    "PrivateLinkSettings",
    "RecommendationSettings",
    "RollingSettings",
    "SafeguardSettings",
    "ScalingSettings",
    "Settings",
    "SlowRequestSettings",
    "StairsSettings",
    "ThroughputSettings",
    "WarmUpPayloadSettings",
    "WarmUpSettings",
    "endpoint_request",
    "explain_endpoint",
    "instances_in_update",
    "largest_fleet",
    "load_settings",
    "parse_settings",
    "plan_endpoint",
    "settings_json_schema",
    "stack_cost",
]
