"""Whatever kind of value somebody passes: accepted if the signature says so, else a coded error.

The calls are made from the signatures, so a new parameter is tried as soon as it exists. Whether a
value fits is read from the annotation's text, not from what the library makes of it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from constructs import Construct

import low_latency_endpoint
from low_latency_endpoint import (
    AlarmTopic,
    ClientZones,
    ComponentHost,
    Container,
    ContainerImage,
    CopyScaling,
    DataCapture,
    DeploymentPolicy,
    Endpoint,
    EndpointConfiguration,
    InferenceComponent,
    InstanceType,
    InvocationScaling,
    LatencyAlarms,
    LatencyTarget,
    LoadTestFleet,
    LowLatencyEndpoint,
    LowLatencyEndpointStack,
    Model,
    ProductionVariant,
    RuntimePrivateLink,
    Safeguards,
    WarmUp,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.hosting.scaling_policies import ScalingStep
from low_latency_endpoint.hosting.variant import CoreDump
from low_latency_endpoint.plan.argument_kinds import _evaluated, _module_of, checked_arguments
from low_latency_endpoint.plan.latency_plan import CONCURRENCY_METRIC, ScalingPolicy
from low_latency_endpoint.settings import load_settings
from tests.pinned_models import QWEN, written_lock

SETTINGS = load_settings(Path(__file__).parents[2] / "endpoint.yaml")
SECRET = "hunter2"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/scorer:1"

#: What people pass by mistake, and the annotations that it fits.
BATTERY: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "text": (lambda: SECRET, ("str", "Literal")),
    "bytes": (lambda: SECRET.encode(), ("bytes",)),
    "a number": (lambda: -1, ("int", "float")),
    "a fraction": (lambda: 1.5, ("int", "float")),
    "nan": (lambda: float("nan"), ("int", "float")),
    "a huge number": (lambda: 10**400, ("int", "float")),
    "the least number": (lambda: -1.7e308, ("int", "float")),
    "infinity": (lambda: float("inf"), ("int", "float")),
    "a timedelta": (lambda: timedelta(minutes=7), ("Duration",)),
    "no time": (lambda: timedelta(), ("Duration",)),
    "an odd time": (lambda: Duration.millis(7321), ("Duration",)),
    "a long time": (lambda: Duration.days(10**6), ("Duration",)),
    "a part of a millisecond": (lambda: timedelta(microseconds=7), ("Duration",)),
    "a time that is not known": (
        lambda: Duration.minutes(cdk.Token.as_number({"Ref": "Wait"})),
        ("Duration",),
    ),
    "True": (lambda: True, ("bool",)),
    "None": (lambda: None, ("None",)),
    "a list": (list, ("Sequence", "list")),
    "a tuple": (lambda: (), ("Sequence", "tuple")),
    "a list of None": (lambda: [None], ()),
    "a mapping": (dict, ("Mapping", "dict", "Thresholds")),
    "a mapping of None": (lambda: {None: None}, ()),
    "a set": (set, ()),
    "a generator": (lambda: (each for each in ()), ()),
    "an object": (object, ()),
    "a class": (lambda: Construct, ("Callable",)),
    "an exception": (lambda: ValueError(SECRET), ()),
    "a construct": (lambda: cdk.App(), ("Construct",)),
}
#: Numbers, and none that is right anywhere.
NEVER = ("nan", "infinity", "a huge number")
#: Options only say kinds: their numbers are judged by what takes them, which is tried as well.
OPTIONS_OF = {
    "TokenAlarmOptions": "TokenLatencyAlarms",
    "AlarmOptions": "LatencyAlarms",
    "KeepWarmOptions": "WarmUp.keep_warm",
    "ConfigurationOptions": "EndpointConfiguration",
    "ModelOptions": "Model",
    "VariantOptions": "ProductionVariant",
    "WarmUpOptions": "WarmUp",
}


KINDS = ("LLE360", "LLE801", "LLE807")  # a limit's own error says what it is about in words


class Things:
    """One valid thing of each kind, made when it is asked for."""

    def __init__(self, stack: cdk.Stack, parts: Any) -> None:
        self.stack, self.parts, self._made, self._count = stack, parts, {}, 0

    def __getattr__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = MAKERS[name](self)
        return self._made[name]

    def place(self) -> dict[str, Any]:
        self._count += 1
        return {"scope": self.stack, "id": f"Tried{self._count}"}


MAKERS: dict[str, Callable[[Things], Any]] = {
    "zones": lambda t: ClientZones.of_ids("use1-az1", "use1-az2"),
    "container": lambda t: t.parts.container(),
    "image": lambda t: ContainerImage.from_uri(IMAGE),
    "network": lambda t: ZoneAlignedNetwork(  # with room for all the endpoints that are tried
        t.stack, "Network", client_zones=t.zones, max_instances=3000
    ),
    "link": lambda t: RuntimePrivateLink(t.stack, "Link", network=t.network),
    "model": lambda t: Model(t.stack, "Model", network=t.network, containers=[t.container]),
    "variant": lambda t: ProductionVariant(
        name="primary", model=t.model, instance_type=InstanceType("ml.m5.xlarge")
    ),
    "configuration": lambda t: EndpointConfiguration(
        t.stack, "Configuration", variants=[t.variant]
    ),
    "endpoint": lambda t: Endpoint(t.stack, "Endpoint", configuration=t.configuration),
    "shadowed": lambda t: Endpoint(
        t.stack,
        "Shadowed",
        configuration=EndpointConfiguration(
            t.stack,
            "ShadowConfiguration",
            variants=[replace(t.candidate, name="primary")],
            shadow=t.candidate,
        ),
    ),
    "candidate": lambda t: ProductionVariant(
        name="candidate", model=t.model, instance_type=InstanceType("ml.m5.xlarge")
    ),
    "host": lambda t: ComponentHost(t.stack, "Host", network=t.network, max_instances=9),
    "hosting": lambda t: Endpoint(
        t.stack,
        "Hosting",
        configuration=EndpointConfiguration(
            t.stack,
            "HostConfiguration",
            variants=[ProductionVariant(model=t.host, instance_type="ml.m5.xlarge")],
        ),
    ),
    "component": lambda t: InferenceComponent(
        **t.place(), endpoint=t.hosting, model=t.model, memory=cdk.Size.gibibytes(1)
    ),
    "scaling": lambda t: InvocationScaling(
        **t.place(),
        endpoint_name="e",
        name_at_synth="e",
        variant=t.variant.attributes,
        min_instances=2,
        max_instances=4,
    ),
    "fleet": lambda t: LoadTestFleet(
        t.stack,
        "Fleet",
        network=t.network,
        private_link=t.link,
        endpoint="sentiment",
        image=t.image,
    ),
    "serving": lambda t: LowLatencyEndpointStack(**t.place(), settings=SETTINGS),
    "pattern": lambda t: LowLatencyEndpoint(t.stack, "Pattern", **pattern(t)),
    "vpc": lambda t: ec2.Vpc.from_vpc_attributes(
        t.stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    ),
    "adopted": lambda t: ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        t.stack, "Adopted", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    ),
    "role": lambda t: iam.Role(
        t.stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com")
    ),
    "bucket": lambda t: s3.Bucket.from_bucket_name(t.stack, "Bucket", "models"),
    "repository": lambda t: ecr.Repository.from_repository_name(t.stack, "Repository", "scorer"),
    "lock": lambda t: str(written_lock(Path(t.stack.node.root.outdir))),
    "metric": lambda t: cloudwatch.Metric(namespace="Shop", metric_name="Orders"),
}


def pattern(t: Things) -> dict[str, Any]:
    return {
        "client_zones": t.zones,
        "containers": [t.container],
        "instance_type": InstanceType("ml.m5.xlarge"),
        "latency": LatencyTarget(p99=Duration.millis(200)),
    }


def warm_up(t: Things) -> dict[str, Any]:
    return {
        "endpoint": t.endpoint,
        "private_link": t.link,
        "network": t.network,
        "payload": WarmUpPayload.from_json({}),
    }


#: A valid call of everything public that needs arguments; a method's receiver is ``Things``' own.
CALLS: dict[str, Callable[[Things], dict[str, Any]]] = {
    "AlarmOptions": lambda t: {},
    "AlarmTopic": lambda t: t.place(),
    "ClientZones": lambda t: {"kind": "id", "zones": ("use1-az1", "use1-az2")},
    "ClientZones.of_ids": lambda t: {"zones": ["use1-az1", "use1-az2"]},
    "ClientZones.of_names": lambda t: {"zones": ["us-east-1a", "us-east-1b"]},
    "ClientZones.of_vpc": lambda t: {"vpc": t.vpc},
    "ComponentHost": lambda t: {**t.place(), "network": t.network, "max_instances": 4},
    "ComponentHost.grant_volume_key": lambda t: CALLS["Model.grant_volume_key"](t),
    "ComponentHost.grant_write": lambda t: {"s3_uri": "s3://written"},
    "ConfigurationOptions": lambda t: {},
    "Container": lambda t: {"image": t.image},
    "Container.from_dlc": lambda t: {"repository": "pytorch-inference", "tag": "2.6.0-cpu"},
    "Container.from_hugging_face": lambda t: {"model": QWEN.model, "lock": t.lock},
    "Container.from_uri": lambda t: {"image_uri": IMAGE},
    "ContainerImage.built_for": lambda t: {"architecture": "arm64"},
    "ContainerImage.from_asset": lambda t: {"directory": "."},
    "ContainerImage.from_dlc": lambda t: {"repository": "pytorch-inference", "tag": "2.6.0-cpu"},
    "ContainerImage.from_ecr_repository": lambda t: {"repository": t.repository},
    "ContainerImage.from_private_registry": lambda t: {"uri": "registry.example.com/scorer:1"},
    "ContainerImage.from_uri": lambda t: {"uri": IMAGE},
    "CopyScaling": lambda t: {
        **t.place(),
        "component": t.stack,
        "component_name": "llama",
        "initial_copies": 2,
        "min_copies": 1,
        "max_copies": 4,
        "no_capacity": t.metric,
    },
    "CopyScaling.from_zero": lambda t: {},
    "CopyScaling.track_concurrency": lambda t: {"max_concurrency_per_copy": 4},
    "CopyScaling.track_invocations": lambda t: {"target_invocations_per_copy": 400},
    "CoreDump": lambda t: {"destination": "s3://dumps"},
    "DataCapture": lambda t: {"destination": "s3://captured"},
    "DeploymentPolicy": lambda t: {"kind": "CANARY"},
    "DeploymentPolicy.all_at_once": lambda t: {},
    "DeploymentPolicy.canary": lambda t: {},
    "DeploymentPolicy.instances_in_update": lambda t: {"instances": 4},
    "DeploymentPolicy.linear": lambda t: {},
    "DeploymentPolicy.rolling": lambda t: {},
    "DeploymentPolicy.to_cfn": lambda t: {"variants": [t.variant.attributes], "alarms": []},
    "Endpoint": lambda t: {
        **t.place(),
        "configuration": t.configuration,
        "confirm_updates": False,  # for rights of so many endpoints its function has no room
    },
    "Endpoint.from_endpoint_arn": lambda t: {
        **t.place(),
        "endpoint_arn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/sentiment",
    },
    "Endpoint.from_endpoint_attributes": lambda t: {**t.place(), "endpoint_name": "sentiment"},
    "Endpoint.from_endpoint_name": lambda t: {**t.place(), "endpoint_name": "sentiment"},
    "Endpoint.grant": lambda t: {"grantee": t.role, "actions": ["sagemaker:DescribeEndpoint"]},
    "Endpoint.grant_invoke": lambda t: {"grantee": t.role},
    "Endpoint.metric": lambda t: {"name": "Invocations", "statistic": "Sum"},
    "Endpoint.roll_back_on": lambda t: {"alarms": []},
    "Endpoint.scale": lambda t: {"variant_name": "primary", "min_instances": 2, "max_instances": 4},
    "Endpoint.scaling_of": lambda t: {"variant_name": "primary"},
    "Endpoint.variant": lambda t: {},
    "EndpointConfiguration": lambda t: {**t.place(), "variants": [t.variant]},
    "EndpointConfiguration.from_endpoint_config_name": lambda t: {
        **t.place(),
        "endpoint_config_name": "approved",
        "variants": [t.variant.attributes],
    },
    "EndpointOptions": lambda t: {},
    "EndpointConfiguration.variant": lambda t: {"name": "primary"},
    "FurtherVariant": lambda t: {"name": "challenger"},
    "HuggingFaceModel": lambda t: {"model": QWEN.model, "lock": t.lock},
    "InferenceAmi": lambda t: {"version": "al2-ami-sagemaker-inference-gpu-2"},
    "InferenceAmi.custom": lambda t: {"version": "al2-ami-sagemaker-inference-gpu-9"},
    "InferenceComponent": lambda t: {
        **t.place(),
        "endpoint": t.hosting,
        "model": t.model,
        "memory": cdk.Size.gibibytes(1),
    },
    "InferenceComponent.grant_invoke": lambda t: {"grantee": t.role},
    "InferenceComponent.metric": lambda t: {"name": "Invocations", "statistic": "Sum"},
    "InferenceComponent.scale": lambda t: {"min_copies": 1, "max_copies": 4},
    "InstancePool": lambda t: {"instance_type": InstanceType("ml.m5.xlarge"), "priority": 1},
    "InstanceType": lambda t: {"name": "ml.m5.xlarge"},
    "InvocationScaling": lambda t: {
        **t.place(),
        "endpoint_name": "e",
        "name_at_synth": "e",
        "variant": t.variant.attributes,
        "min_instances": 2,
        "max_instances": 4,
    },
    "InvocationScaling.on_schedule": lambda t: {
        "name": t.place()["id"],
        "schedule": appscaling.Schedule.cron(hour="1"),
        "min_instances": 3,
    },
    "InvocationScaling.step_on_metric": lambda t: {
        "policy_name": t.place()["id"],
        "metric": t.metric,
        "threshold": 1,
        "steps": [ScalingStep(lower=0, change=1)],
    },
    "InvocationScaling.track": lambda t: {"policy": ScalingPolicy(CONCURRENCY_METRIC, 4, 60, 300)},
    "InvocationScaling.track_concurrency": lambda t: {
        "policy_name": t.place()["id"],
        "max_concurrency_per_instance": 4,
    },
    "InvocationScaling.track_invocations": lambda t: {
        "policy_name": t.place()["id"],
        "max_tps_per_instance": 200,
    },
    "KeepWarmOptions": lambda t: {},
    "LatencyAlarms": lambda t: {**t.place(), "endpoint": t.endpoint},
    "LatencyDashboard": lambda t: {**t.place(), "endpoint": t.endpoint},
    "LatencyTarget": lambda t: {"p99": Duration.millis(200)},
    "LoadTestFleet": lambda t: {
        **t.place(),
        "network": t.network,
        "private_link": t.link,
        "endpoint": "sentiment",
        "image": t.image,
        "interface_endpoints": False,
    },
    "LoadTestFleet.grant_run": lambda t: {"grantee": t.role},
    "LoadTestFleetStack": lambda t: {**t.place(), "serving": t.serving},
    "LowLatencyEndpoint": lambda t: {**t.place(), **pattern(t)},
    "LowLatencyEndpoint.grant_invoke": lambda t: {"grantee": t.role},
    "LowLatencyEndpoint.metric": lambda t: {"name": "Invocations", "statistic": "Sum"},
    "LowLatencyEndpointStack": lambda t: {**t.place(), "settings": SETTINGS},
    "LowLatencyEndpointStack.from_settings": lambda t: {**t.place(), "path_or_settings": SETTINGS},
    "LowLatencyEndpoint.publish_parameters": lambda t: {"prefix": "/low-latency"},
    "MeasuredThroughput": lambda t: {"peak_tps": 100, "tps_per_instance": 10},
    "MeasuredThroughput.instances_at_peak": lambda t: {"client_zones": 2},
    "MetricsPublishing": lambda t: {},
    "Model": lambda t: {**t.place(), "network": t.network, "containers": [t.container]},
    "Model.from_cfn_model": lambda t: {"cfn_model": t.model.cfn_model},
    "Model.from_model_attributes": lambda t: {**t.place(), "model_name": "approved"},
    "Model.from_model_name": lambda t: {**t.place(), "model_name": "approved"},
    "Model.grant_volume_key": lambda t: {
        "key": kms.Key.from_key_arn(
            t.stack, t.place()["id"], "arn:aws:kms:us-east-1:123456789012:key/a"
        )
    },
    "Model.grant_write": lambda t: {"s3_uri": "s3://written"},
    "ModelOptions": lambda t: {},
    "ModelData.from_asset": lambda t: {"path": "model.tar.gz"},
    "ModelData.from_hugging_face": lambda t: {"pinned": QWEN},
    "ModelData.from_s3": lambda t: {"bucket": t.bucket, "key": "model.tar.gz"},
    "ModelData.from_uri": lambda t: {"uri": "s3://models/model.tar.gz"},
    "ProductionVariant": lambda t: {
        "name": "primary",
        "model": t.model,
        "instance_type": InstanceType("ml.m5.xlarge"),
    },
    "RoutingStrategy": lambda t: {"name": "RANDOM"},
    "RoutingStrategy.custom": lambda t: {"name": "NEWEST"},
    "RoutingStrategy.prefix_aware": lambda t: {"prefix_length": 1024, "concurrency_threshold": 16},
    "RuntimePrivateLink": lambda t: {**t.place(), "network": t.network, "private_dns": False},
    "RuntimePrivateLink.allow_from": lambda t: {"caller": ec2.Peer.ipv4("10.0.0.0/16")},
    "RuntimePrivateLink.check_serves": lambda t: {"network": t.network, "where": ""},
    "RuntimePrivateLink.from_interface_endpoint": lambda t: {
        **t.place(),
        "network": t.network,
        "interface_endpoint": t.adopted,
    },
    "RuntimePrivateLink.serve": lambda t: {"endpoint_name": "sentiment"},
    "ScalingOptions": lambda t: {},
    "ScalingSchedule": lambda t: {"name": "night", "expression": "rate(1 day)", "min_instances": 2},
    "ScalingStep": lambda t: {"change": 1},
    "ScalingSteps": lambda t: {"adds": {8: 2}},
    "Safeguards": lambda t: {},
    "Safeguards.apply_to": lambda t: {"scope": t.stack},
    "ShadowAlarms": lambda t: {**t.place(), "endpoint": t.shadowed},
    "SlowRequests": lambda t: {"threshold": Duration.millis(200)},
    "TokenAlarmOptions": lambda t: {},
    "TokenLatencyAlarms": lambda t: {**t.place(), "endpoint": t.endpoint, "kv_cache_use": 0.9},
    "TokenLengths": lambda t: {"p50": 300, "p95": 1800},
    "TokenTraffic": lambda t: {"input": 512, "output": 128},
    "VariantAttributes": lambda t: {"name": "AllTraffic"},
    "StagedModel": lambda t: {**t.place(), "pinned": QWEN},
    "VariantOptions": lambda t: {},
    "WarmUp": lambda t: {**t.place(), **warm_up(t)},
    "WarmUp.keep_warm": lambda t: {},
    "WarmUpOptions": lambda t: {"payload": WarmUpPayload.from_json({})},
    "WarmUpPayload": lambda t: {"body": b"{}", "content_type": "application/json"},
    "WarmUpPayload.from_file": lambda t: {"path": __file__},
    "WarmUpPayload.from_json": lambda t: {"data": {}},
    "WarmUpPayload.from_text": lambda t: {"text": "1,2"},
    "ZoneAlignedNetwork": lambda t: {**t.place(), "client_zones": t.zones},
    "ZoneAlignedNetwork.add_interface_endpoint": lambda t: {
        "id": t.place()["id"],
        "service": ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
    },
    "ZoneAlignedNetwork.allow_s3": lambda t: {"bucket": t.bucket},
    "ZoneAlignedNetwork.in_vpc": lambda t: {
        **t.place(),
        "vpc": t.vpc,
        "client_zones": ClientZones.of_names("us-east-1a", "us-east-1b"),
    },
    "ZoneAlignedNetwork.subnet_of": lambda t: {"zone": "use1-az1"},
}
RECEIVERS: dict[str, Callable[[Things], Any]] = {
    "ComponentHost": lambda t: t.host,
    "CopyScaling": lambda t: CopyScaling(**CALLS["CopyScaling"](t)),
    "InferenceComponent": lambda t: t.component,
    "InferenceComponent.scale": lambda t: InferenceComponent(**CALLS["InferenceComponent"](t)),
    "ContainerImage": lambda t: t.image,
    "DeploymentPolicy": lambda t: DeploymentPolicy.canary(),
    "Endpoint": lambda t: t.endpoint,
    "Endpoint.scale": lambda t: Endpoint(
        **t.place(), configuration=t.configuration, confirm_updates=False
    ),
    "EndpointConfiguration": lambda t: t.configuration,
    "InvocationScaling": lambda t: t.scaling,
    "LoadTestFleet": lambda t: t.fleet,
    "LowLatencyEndpoint": lambda t: t.pattern,
    "MeasuredThroughput": lambda t: low_latency_endpoint.MeasuredThroughput(100, 10),
    "Model": lambda t: t.model,
    "RuntimePrivateLink": lambda t: t.link,
    "WarmUp": lambda t: WarmUp(**t.place(), **warm_up(t)),  # is kept warm once
    "Safeguards": lambda t: Safeguards(),
    "ZoneAlignedNetwork": lambda t: t.network,
}
#: Not for people to call: the library's own halves of a construct.
INTERNAL = {
    "ContainerImage.bind",
    "ModelData.bind",
    "Safeguards.let_write_logs",
    "ZoneAlignedNetwork.let_into_s3",
}


def public() -> Iterator[tuple[str, Any]]:
    """Name and function of everything public that takes arguments."""
    classes = {name: getattr(low_latency_endpoint, name) for name in low_latency_endpoint.__all__}
    for name, kind in {**classes, "CoreDump": CoreDump, "ScalingStep": ScalingStep}.items():
        if issubclass(kind, Enum):
            continue  # Python's own ValueError names the values
        if name in ("IEndpoint", "IEndpointConfiguration", "IModel"):
            continue  # what offers their methods is tried
        if not inspect.isabstract(kind):
            yield name, kind.__init__
        for method, member in inspect.getmembers(kind, inspect.isroutine):
            module = getattr(member, "__module__", None) or ""
            full = f"{name}.{method}"
            ours = module.startswith("low_latency_endpoint")
            if ours and not method.startswith("_") and full not in INTERNAL and _parameters(member):
                yield full, member


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {
        name: parameter
        for name, parameter in found.items()
        if name not in ("self", "cls") and parameter.kind is not parameter.VAR_KEYWORD
    }


TRIED = [
    (name, function, parameter)
    for name, function in public()
    for parameter in _parameters(function).values()
]


def members(annotation: str) -> list[str]:
    """A union's members, at the top only."""
    found, depth = [""], 0
    for part in annotation.split(" | "):
        found[-1] += (" | " if found[-1] else "") + part
        depth += part.count("[") - part.count("]")
        if not depth:
            found.append("")
    return found[:-1]


def inner(member: str) -> list[str]:
    """What stands in the brackets: ``str`` and ``int | None`` of ``Mapping[str, int | None]``."""
    text = member[member.index("[") + 1 : -1]
    return (
        [part.strip() for part in text.split(",", 1)]
        if member.startswith(("Mapping", "dict"))
        else [text.removesuffix(", ...")]
    )


def fitting(annotation: str, value: str) -> bool:
    names = [member.partition("[")[0] for member in members(annotation)]
    return "Any" in names or any(name in BATTERY[value][1] for name in names)


def values(annotation: str) -> Iterator[tuple[str, Any, bool]]:
    """What to try for an annotation: its name, the value, and whether the kind is right."""
    kinds = members(annotation)
    for name, (make, _) in BATTERY.items():
        right = fitting(annotation, name)
        if (
            name in NEVER
            or (name == "text" and not {"str", "Any"} & set(kinds))
            or (name == "a fraction" and "float" not in kinds)
        ):
            right = right and "Any" in kinds
        yield name, make(), right
    for kind in kinds:
        if kind.startswith(("Sequence[", "list[", "tuple[")):
            make = tuple if kind.startswith("tuple") else list
            for name, value, right in values(inner(kind)[0]):
                yield f"{name} in a list", make([value]), right
        elif kind.startswith(("Mapping[", "dict[")):
            for name, value, right in values(inner(kind)[1]):
                yield f"{name} in a mapping", {"k": value}, right
            yield "a number as a key", {1: "v"}, False


@pytest.fixture(scope="module")
def things(new_stack, parts):
    """All made before anything is tried: what a trial leaves behind could take a thing's place.

    A link with private DNS, say, is the VPC's only one. Which trials come first is the runner's.
    """
    made = Things(new_stack(), parts)
    for name in MAKERS:
        getattr(made, name)
    return made


def function_of(things: Things, name: str) -> Any:
    owner, _, method = name.partition(".")
    kind = {"CoreDump": CoreDump, "ScalingStep": ScalingStep}.get(owner) or getattr(
        low_latency_endpoint, owner
    )
    if not method:
        return kind
    static = isinstance(inspect.getattr_static(kind, method), (classmethod, staticmethod))
    receiver = kind if static else (RECEIVERS.get(name) or RECEIVERS[owner])(things)
    return getattr(receiver, method)


def call(function: Any, given: dict[str, Any]) -> Any:
    parameters = list(inspect.signature(function).parameters.values())
    places = [each.kind for each in parameters]
    if inspect.Parameter.VAR_POSITIONAL not in places:
        return function(**given)
    *before, rest = parameters[: places.index(inspect.Parameter.VAR_POSITIONAL) + 1]
    first = [given.pop(each.name) for each in before]
    return function(*first, *given.pop(rest.name, ()), **given)


def valid(things: Things, name: str) -> dict[str, Any]:
    # The metric_* methods have defaults for all.
    return CALLS[name](things) if ".metric_" not in name else {}


def test_all_that_is_public_is_tried():
    names = {name for name, _ in public() if ".metric_" not in name}
    assert names == set(CALLS)


@pytest.mark.parametrize(("options", "taker"), OPTIONS_OF.items())
def test_options_are_what_their_taker_takes(options, taker):
    functions = dict(public())
    taken = set(_parameters(functions[taker]))
    assert set(_parameters(functions[options])) - {"keep_warm"} <= taken


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name, _, parameter in TRIED],
    ids=[f"{name}-{parameter.name}" for name, _, parameter in TRIED],
)
def test_a_wrong_kind_is_a_coded_error(things, name, parameter):
    for what, value, right in values(parameter.annotation):
        if name in OPTIONS_OF and what == "a fraction":
            continue
        passed = [value] if parameter.kind is parameter.VAR_POSITIONAL else value
        error = refusal(things, name, {parameter.name: passed})
        if not right:
            assert isinstance(error, ConfigurationError), f"{what}: {error!r}"
            assert parameter.name in str(error) or error.code not in KINDS, f"{what}: {error}"
            # What a limit on text shows is text of the right kind.
            text = "str" in parameter.annotation or "Literal" in parameter.annotation
            assert text or SECRET not in str(error), what
        elif isinstance(error, SettingsError):  # text of the right kind, but no file
            assert parameter.name == "path_or_settings"
        elif error is not None and not isinstance(error, ConfigurationError):
            # Two things of one name, names and actions that CDK cannot use, are CDK's to refuse.
            assert isinstance(error, RuntimeError), f"{what}: {error!r}"
            assert parameter.name in ("scope", "id", "policy_name", "name", "actions"), (
                f"{what}: {error!r}"
            )


def refusal(things: Things, name: str, changed: dict[str, Any]) -> Exception | None:
    function, given = function_of(things, name), valid(things, name)
    try:
        call(function, {**given, **changed})
    except Exception as error:
        return error
    return None


# --- what is right is taken ----------------------------------------------------------------------


@jsii.implements(cloudwatch.IAlarmAction)
class Pager:
    """An action that somebody wrote in Python."""

    def bind(self, scope: Construct, alarm: cloudwatch.IAlarm) -> cloudwatch.AlarmActionConfig:
        return cloudwatch.AlarmActionConfig(alarm_action_arn="arn:aws:sns:us-east-1:1:pager")


@checked_arguments
class Taker:
    """A parameter for each interface and class of CDK's that the library takes."""

    def action(self, value: cloudwatch.IAlarmAction) -> None: ...
    def alarm(self, value: cloudwatch.IAlarm) -> None: ...
    def bucket(self, value: s3.IBucket) -> None: ...
    def caller(self, value: ec2.IConnectable) -> None: ...
    def construct(self, value: Construct) -> None: ...
    def duration(self, value: Duration) -> None: ...
    def function(self, value: lambda_.IFunction) -> None: ...
    def grantee(self, value: iam.IGrantable) -> None: ...
    def group(self, value: ec2.ISecurityGroup) -> None: ...
    def interface_endpoint(self, value: ec2.IInterfaceVpcEndpoint) -> None: ...
    def key(self, value: kms.IKey) -> None: ...
    def metric(self, value: cloudwatch.IMetric) -> None: ...
    def number(self, value: int) -> None: ...
    def prefix_list(self, value: ec2.IPrefixList) -> None: ...
    def repository(self, value: ecr.IRepository) -> None: ...
    def role(self, value: iam.IRole) -> None: ...
    def service(self, value: ec2.IInterfaceVpcEndpointService) -> None: ...
    def secret(self, value: secretsmanager.ISecret) -> None: ...
    def schedule(self, value: appscaling.Schedule) -> None: ...
    def selection(self, value: ec2.SubnetSelection) -> None: ...
    def subnet(self, value: ec2.ISubnet) -> None: ...
    def text(self, value: str) -> None: ...
    def texts(self, value: Sequence[str]) -> None: ...
    def vpc(self, value: ec2.IVpc) -> None: ...


KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000"
ROLE_ARN = "arn:aws:iam::123456789012:role/hosting"
RIGHT: dict[str, list[Callable[[Things], Any]]] = {
    "action": [
        lambda t: cloudwatch_actions.SnsAction(
            sns.Topic.from_topic_arn(t.stack, "Topic", "arn:aws:sns:us-east-1:123456789012:pages")
        ),
        lambda t: AlarmTopic(**t.place()).action,
        lambda t: Pager(),
    ],
    "alarm": [
        lambda t: cloudwatch.Alarm.from_alarm_arn(
            t.stack, "Alarm", "arn:aws:cloudwatch:us-east-1:123456789012:alarm:a"
        ),
        lambda t: next(
            iter(
                LatencyAlarms(**t.place(), endpoint=t.endpoint, error_rate=0.1).composites.values()
            )
        ),
    ],
    "bucket": [
        lambda t: t.bucket,
        lambda t: s3.Bucket(**t.place()),
        lambda t: t.fleet.results_bucket,
    ],
    "caller": [
        lambda t: ec2.Peer.any_ipv4(),
        lambda t: ec2.Peer.prefix_list("pl-1"),
        lambda t: ec2.SecurityGroup(**t.place(), vpc=t.vpc),
        lambda t: ec2.Connections(),
        lambda t: t.fleet,
        lambda t: t.model,
        lambda t: t.adopted,
        lambda t: t.network.model_security_group,
    ],
    "construct": [
        lambda t: t.stack,
        lambda t: cdk.App(),
        lambda t: cdk.Stage(cdk.App(), "Stage"),
        lambda t: cdk.Stack.of(t.network),
        lambda t: t.network.node.scope,
        lambda t: t.stack.node.root,
        lambda t: t.network.vpc,
        lambda t: t.stack.node.find_all()[-1],
    ],
    "duration": [
        lambda t: Duration.millis(3),
        lambda t: timedelta(1),
        lambda t: Duration.seconds(1).plus(Duration.seconds(2)),
    ],
    "function": [
        lambda t: lambda_.Function.from_function_arn(
            **t.place(), function_arn="arn:aws:lambda:us-east-1:123456789012:function:login"
        ),
        lambda t: lambda_.Function.from_function_name(**t.place(), function_name="login"),
    ],
    "grantee": [
        lambda t: t.role,
        lambda t: t.model,
        lambda t: iam.User(**t.place()),
        lambda t: iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
        lambda t: t.role.grant_principal,
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN),
    ],
    "group": [
        lambda t: t.network.model_security_group,
        lambda t: ec2.SecurityGroup.from_security_group_id(**t.place(), security_group_id="sg-1"),
        lambda t: t.link.connections.security_groups[0],
    ],
    "interface_endpoint": [lambda t: t.adopted, lambda t: t.link.interface_endpoint],
    "key": [
        lambda t: kms.Key(**t.place()),
        lambda t: kms.Key.from_key_arn(**t.place(), key_arn=KEY_ARN),
        lambda t: kms.Alias.from_alias_name(**t.place(), alias_name="alias/a"),
        lambda t: kms.Key(**t.place()).add_alias("b"),
        lambda t: s3.Bucket(**t.place(), encryption=s3.BucketEncryption.KMS).encryption_key,
    ],
    "metric": [
        lambda t: t.metric,
        lambda t: t.endpoint.metric_invocations(),
        lambda t: cloudwatch.MathExpression(expression="a", using_metrics={"a": t.metric}),
    ],
    "number": [
        lambda t: 3,
        lambda t: 3.0,
        lambda t: cdk.Token.as_number({"Ref": "Count"}),
        lambda t: cdk.CfnParameter(**t.place(), type="Number").value_as_number,
    ],
    "prefix_list": [
        lambda t: ec2.PrefixList.from_prefix_list_id(**t.place(), prefix_list_id="pl-1"),
        lambda t: ec2.PrefixList(**t.place(), max_entries=1),
    ],
    "service": [
        lambda t: ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
        lambda t: ec2.InterfaceVpcEndpointService("com.amazonaws.us-east-1.ssm", 443),
    ],
    "repository": [lambda t: t.repository, lambda t: ecr.Repository(**t.place())],
    "role": [
        lambda t: t.role,
        lambda t: t.role.without_policy_updates(),
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN),
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN, mutable=False),
        lambda t: iam.Role.from_role_name(**t.place(), role_name="hosting"),
        lambda t: t.model.role,
    ],
    "schedule": [
        lambda t: appscaling.Schedule.cron(hour="1"),
        lambda t: appscaling.Schedule.rate(Duration.hours(1)),
        lambda t: appscaling.Schedule.expression("rate(1 hour)"),
    ],
    "selection": [lambda t: ec2.SubnetSelection(), lambda t: t.network.subnet_selection],
    "secret": [
        lambda t: secretsmanager.Secret(**t.place()),
        lambda t: secretsmanager.Secret.from_secret_name_v2(**t.place(), secret_name="token"),
    ],
    "subnet": [
        lambda t: t.vpc.private_subnets[0],
        lambda t: t.network.subnets[0],
        lambda t: ec2.Subnet.from_subnet_id(**t.place(), subnet_id="subnet-1"),
        lambda t: ec2.Vpc(**t.place()).public_subnets[0],
    ],
    "text": [
        lambda t: cdk.Aws.REGION,
        lambda t: cdk.Fn.ref("A"),
        lambda t: t.network.vpc.vpc_id,
        lambda t: cdk.Lazy.string(Later()),
        lambda t: cdk.Token.as_string({"Ref": "A"}),
        lambda t: cdk.SecretValue.secrets_manager("a").unsafe_unwrap(),
    ],
    "texts": [
        lambda t: cdk.Token.as_list({"Ref": "A"}),
        lambda t: ("a",),
        lambda t: [],
        lambda t: t.network.vpc.availability_zones,
        lambda t: cdk.Fn.get_azs(),
    ],
    "vpc": [
        lambda t: t.vpc,
        lambda t: ec2.Vpc(**t.place()),
        lambda t: t.network.vpc,
        lambda t: ec2.Vpc.from_lookup(**t.place(), vpc_id="vpc-1"),
    ],
}


@jsii.implements(cdk.IStableStringProducer)
class Later:
    def produce(self) -> str:
        return "later"


def test_every_class_of_the_cdk_that_is_taken_is_tried():
    taken = {
        name
        for _, _, parameter in TRIED
        for name in re.findall(
            r"\b(?:[a-z_0-9]+\.)?(?:I[A-Z]\w+|Schedule|SubnetSelection)\b", parameter.annotation
        )
    }
    ours = {name for name in taken if name in low_latency_endpoint.__all__}
    tried = {
        str(parameter.annotation)
        for _, member in inspect.getmembers(Taker, inspect.isfunction)
        for parameter in _parameters(member).values()
    }
    assert taken - ours == {name for name in tried if "." in name}


@pytest.mark.parametrize(
    ("name", "make"), [(name, make) for name, makers in RIGHT.items() for make in makers]
)
def test_what_is_right_is_taken(things, name, make):
    getattr(Taker(), name)(make(things))


@pytest.mark.parametrize("name", sorted(set(RIGHT) - {"text", "texts", "number", "duration"}))
def test_what_another_takes_is_refused(things, name):
    for other, makers in RIGHT.items():
        if other in ("text", "texts", "number", "duration"):
            with pytest.raises(ConfigurationError):
                getattr(Taker(), name)(makers[0](things))


def test_all_annotations_can_be_read():
    """Those too that name what a module imports for type checkers alone."""
    for name, function, parameter in TRIED:
        owner = inspect.unwrap(function)
        cls = getattr(sys.modules[owner.__module__], owner.__qualname__.partition(".")[0])
        module = _module_of(cls, parameter.name)
        assert _evaluated(parameter.annotation, module) is not None, name


def test_many_entries_are_refused_in_one_pass():
    """What compares each with each, twenty thousand million times, would not come back."""
    many = [f"use1-az{number}" for number in range(150_000)]
    with pytest.raises(ConfigurationError):
        ClientZones.of_ids(*many)
    with pytest.raises(ConfigurationError):
        Container(image=ContainerImage.from_uri(IMAGE), environment=dict.fromkeys(many, "v"))
    with pytest.raises(ConfigurationError):
        DataCapture(destination="s3://b", csv_content_types=many)
    with pytest.raises(ConfigurationError) as raised:
        DataCapture(destination="s3://b", json_content_types=[*many, None])
    assert raised.value.where == "DataCapture, json_content_types[150000]"


def test_a_secret_is_not_shown(things):
    for given in ({"PIN": 4711}, {"PASSWORD": b"hunter2"}, {"PASSWORD": ["hunter2"]}):
        with pytest.raises(ConfigurationError) as raised:
            Container(image=things.image, environment=given)
        assert not re.search("4711|hunter2", str(raised.value))


def test_nothing_is_half_made(things):
    """The same name can be used once the argument is right."""
    place = things.place()
    with pytest.raises(ConfigurationError) as raised:
        Model(**place, network=things.network, containers=[things.container], role="hosting")
    assert raised.value.where == f"Serving/{place['id']}, role"
    Model(**place, network=things.network, containers=[things.container])
