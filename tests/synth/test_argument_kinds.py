"""Whatever kind of value somebody passes: accepted if the signature says so, else a coded error.

The calls are made from the signatures, so a new parameter is tried as soon as it exists. Whether a
value fits is read from the annotation's text, not from what the library makes of it.
"""

from __future__ import annotations

import datetime
import inspect
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
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
    AlarmOptions,
    AlarmTopic,
    CanaryOptions,
    ClientZones,
    ComponentHost,
    Container,
    ContainerImage,
    DataCapture,
    Endpoint,
    EndpointConfiguration,
    InferenceComponent,
    InstanceType,
    InvocationScaling,
    KeepWarmOptions,
    LatencyAlarms,
    LatencyTarget,
    LowLatencyEndpointStack,
    Model,
    PeakAtTime,
    ProductionVariant,
    RuntimePrivateLink,
    StepUp,
    TokenAlarmOptions,
    VariantOptions,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.hosting.scaling import ScalingStep
from low_latency_endpoint.options.annotations import LASTING, module_of
from low_latency_endpoint.options.argument_examples import examples_of, is_options
from low_latency_endpoint.options.argument_kinds import checked_arguments
from low_latency_endpoint.options.compound_kinds import kind_of_argument
from low_latency_endpoint.options.deployment import AllAtOnce
from low_latency_endpoint.options.kind import AnyKind
from low_latency_endpoint.plan.scaling_policy import CONCURRENCY_METRIC, ScalingPolicy
from low_latency_endpoint.settings import load_settings
from tests.depth import BY_NIGHT
from tests.pinned_models import QWEN, written_lock
from tests.refusals import refused

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
    "a timedelta": (lambda: timedelta(minutes=7), ("Duration", "AnyDuration")),
    "no time": (lambda: timedelta(), ("Duration", "AnyDuration")),
    "an odd time": (lambda: Duration.millis(7321), ("Duration", "AnyDuration")),
    "a long time": (lambda: Duration.days(10**6), ("Duration", "AnyDuration")),
    "a part of a millisecond": (lambda: timedelta(microseconds=7), ("Duration", "AnyDuration")),
    "a time that is not known": (
        lambda: Duration.minutes(cdk.Token.as_number({"Ref": "Wait"})),
        ("Duration", "AnyDuration"),
    ),
    "True": (lambda: True, ("bool",)),
    "None": (lambda: None, ("None",)),
    "a list": (list, ("Sequence", "list")),
    "a tuple": (lambda: (), ("Sequence", "tuple")),
    "a list of None": (lambda: [None], ()),
    "a mapping": (dict, ("Mapping", "dict")),
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
    "ConfigurationOptions": "EndpointConfiguration",
    "ModelOptions": "Model",
    "VariantOptions": "ProductionVariant",
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

    def new_id(self) -> str:
        self._count += 1
        return f"Tried{self._count}"

    def place(self) -> dict[str, Any]:
        return {"scope": self.stack, "id": self.new_id()}

    def receiver(self, kind: type) -> Any:
        """What a method is called of: the thing of that class, or a new one if there is none."""
        found = (each for each in self._made.values() if isinstance(each, kind))
        return next(found, None) or kind(**valid(self, kind.__name__))


MAKERS: dict[str, Callable[[Things], Any]] = {
    "client_zones": lambda t: ClientZones.of_ids("use1-az1", "use1-az2"),
    "container": lambda t: t.parts.container(),
    "image": lambda t: ContainerImage.from_uri(IMAGE),
    "network": lambda t: ZoneAlignedNetwork(  # with room for all the endpoints that are tried
        t.stack, "Network", client_zones=t.client_zones, max_instances=3000
    ),
    "private_link": lambda t: RuntimePrivateLink(t.stack, "Link", network=t.network),
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
            variants=[t.variant],
            shadow=replace(t.variant, name="candidate"),
        ),
    ),
    "host": lambda t: ComponentHost(t.stack, "Host", network=t.network, max_instances=90),
    "hosting": lambda t: Endpoint(
        t.stack,
        "Hosting",
        configuration=EndpointConfiguration(
            t.stack,
            "HostConfiguration",
            variants=[ProductionVariant(model=t.host, instance_type="ml.m5.xlarge")],
        ),
    ),
    "component": lambda t: InferenceComponent(**valid(t, "InferenceComponent")),
    "scaling": lambda t: InvocationScaling(**valid(t, "InvocationScaling")),
    "fleet": lambda t: t.parts.fleet(t.stack, network=t.network, private_link=t.private_link),
    "serving": lambda t: LowLatencyEndpointStack(**t.place(), settings=SETTINGS),
    "pattern": lambda t: t.parts.pattern(t.stack, "Pattern"),
    "vpc": lambda t: t.parts.vpc(t.stack),
    "interface_endpoint": lambda t: ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        t.stack, "Adopted", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    ),
    "grantee": lambda t: iam.Role(
        t.stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com")
    ),
    "bucket": lambda t: s3.Bucket.from_bucket_name(t.stack, "Bucket", "models"),
    "repository": lambda t: ecr.Repository.from_repository_name(t.stack, "Repository", "scorer"),
    "lock": lambda t: str(written_lock(Path(t.stack.node.root.outdir))),
    "metric": lambda t: cloudwatch.Metric(namespace="Shop", metric_name="Orders"),
    "payload": lambda t: WarmUpPayload(data={}),
}
TYPE, NAMES = InstanceType("ml.m5.xlarge"), ClientZones.of_names("us-east-1a", "us-east-1b")
#: Values of the parameters that have no default, by their names, where no thing has the name; and
#: of those of certain calls, which a thing's value or none at all would not fit.
VALUES: dict[str, Any] = {
    "actions": ["sagemaker:DescribeEndpoint"],
    "add": 1,
    "adds": [StepUp(requests=8, add=2)],
    "alarms": [],
    "architecture": "arm64",
    "body": b"{}",
    "caller": ec2.Peer.ipv4("10.0.0.0/16"),
    "cfn_model": lambda t: t.model.cfn_model,
    "change": 1,
    "component": lambda t: t.stack,
    "component_name": "llama",
    "concurrency_threshold": 16,
    "containers": lambda t: [t.container],
    "content_type": "application/json",
    "data": {},
    "s3": "s3://written",
    "directory": ".",
    "endpoint_arn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/sentiment",
    "endpoint_config_name": "approved",
    "endpoint_name": "sentiment",
    "id": Things.new_id,
    "image_uri": IMAGE,
    "initial_copies": 2,
    "input": 512,
    "instance_type": TYPE,
    "instances": 4,
    "key": lambda t: kms.Key.from_key_arn(t.stack, t.new_id(), KEY_ARN),
    "kind": "CANARY",
    "max_concurrency_per_copy": 4,
    "max_concurrency_per_instance": 4,
    "max_copies": 4,
    "max_instances": 4,
    "memory": cdk.Size.gibibytes(1),
    "min_copies": 1,
    "min_instances": 2,
    "model_name": "approved",
    "name": "primary",
    "name_in_stack": "sentiment",
    "no_capacity": lambda t: t.metric,
    "output": 128,
    "p50": 300,
    "p95": 1800,
    "path": __file__,
    "peak_tps": 100,
    "pinned": QWEN,
    "policy": ScalingPolicy(CONCURRENCY_METRIC, 4, 60, 300),
    "policy_name": Things.new_id,
    "prefix": "/low-latency",
    "prefix_length": 1024,
    "priority": 1,
    "s3_uri": "s3://written",
    "schedule": appscaling.Schedule.cron(hour="1"),
    "scope": lambda t: t.stack,
    "service": ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
    "settings": SETTINGS,
    "statistic": "Sum",
    "steps": [ScalingStep(lower=0, change=1)],
    "tag": "2.6.0-cpu",
    "target_invocations_per_copy": 400,
    "text": "1,2",
    "threshold": 1,
    "tps_per_instance": 10,
    "uri": IMAGE,
    "variant": lambda t: t.variant.attributes,
    "variant_name": "primary",
    "variants": lambda t: [t.variant],
    "version": "al2-ami-sagemaker-inference-gpu-2",
    "where": "",
    "zone": "use1-az1",
    "zones": ("use1-az1", "use1-az2"),
    "ClientZones.of_names zones": NAMES.zones,
    "Container.from_dlc repository": "pytorch-inference",
    "Container.from_hugging_face model": QWEN.model,
    "ContainerImage.from_dlc repository": "pytorch-inference",
    "Endpoint.metric name": "Invocations",
    "EndpointConfiguration.from_endpoint_config_name variants": lambda t: [t.variant.attributes],
    "FurtherVariant name": "challenger",
    "HuggingFaceModel model": QWEN.model,
    "InferenceComponent endpoint": lambda t: t.hosting,
    "InferenceComponent.metric name": "Invocations",
    "InstanceType name": "ml.m5.xlarge",
    "InvocationScaling.on_schedule name": Things.new_id,
    "LoadTestFleet endpoint": "sentiment",
    "LowLatencyEndpoint.metric name": "Invocations",
    "MeasuredThroughput.instances_at_peak client_zones": 2,
    "ModelData.from_asset path": "model.tar.gz",
    "ModelData.from_s3 key": "model.tar.gz",
    "ModelData.from_uri uri": "s3://models/model.tar.gz",
    "RoutingStrategy name": "RANDOM",
    "PeakAtTime start": "22:00",
    "PeakAtTime end": "06:00",
    "StepUp requests": 8,
    "peak": lambda t: PeakAtTime(tps=2000, start="22:00", end="06:00"),
    "tps": 2000,
    "ShadowAlarms endpoint": lambda t: t.shadowed,
    "SlowRequests threshold": Duration.millis(200),
    "WarmUp options": lambda t: WarmUpOptions(payload=t.payload, requests=1),
    "ZoneCanary options": lambda t: CanaryOptions(payload=t.payload),
    "WarmUp.keep_warm options": lambda t: KeepWarmOptions(),
    "TokenLatencyAlarms options": TokenAlarmOptions(kv_cache_use=0.9),
    "ZoneAlignedNetwork.in_vpc client_zones": NAMES,
}
#: What else a call needs, or says so that many of them go into one stack.
BESIDE: dict[str, Callable[[Things], dict[str, Any]]] = {
    "ClientZones": lambda t: {"ids": ["use1-az1", "use1-az2"]},
    "Container": lambda t: {"image": t.image},
    "Container.from_hugging_face": lambda t: {"lock": t.lock},
    "DeploymentPolicy": lambda t: {"all_at_once": AllAtOnce()},
    "WarmUpPayload": lambda t: {"text": "hello"},
    # For rights of so many endpoints the function that confirms updates has no room.
    "Endpoint": lambda t: {"confirm_updates": False},
    "Endpoint.from_endpoint_attributes": lambda t: {"endpoint_name": "sentiment"},
    "HuggingFaceModel": lambda t: {"lock": t.lock},
    "InvocationScaling.on_schedule": lambda t: {"min_instances": 3},
    "InvocationScaling.track_concurrency": lambda t: {"policy_name": t.new_id()},
    "InvocationScaling.track_invocations": lambda t: {
        "policy_name": t.new_id(),
        "max_tps_per_instance": 200,
    },
    "LatencyTarget": lambda t: {"p99": Duration.millis(200)},
    "LoadTestFleet": lambda t: {"image": t.image, "interface_endpoints": False},
    "LowLatencyEndpoint": lambda t: {
        "client_zones": t.client_zones,
        "latency": LatencyTarget(p99=Duration.millis(200)),
    },
    "LowLatencyEndpointStack.from_settings": lambda t: {**t.place(), "path_or_settings": SETTINGS},
    "ProductionVariant": lambda t: {"name": "primary", "instance_type": TYPE},
    "RuntimePrivateLink": lambda t: {"private_dns": False},
    "ScalingSchedule": lambda t: {"rate": "1 day", "min": 2},
}
#: Methods that can be called once of the same thing.
ONCE = ("Endpoint.scale", "InferenceComponent.scale", "WarmUp.keep_warm")
#: Not for people to call: the library's own halves of a construct.
INTERNAL = {"ContainerImage.bind", "ModelData.bind", "ZoneAlignedNetwork.let_into_s3"}


CLASSES = {
    **{name: getattr(low_latency_endpoint, name) for name in low_latency_endpoint.__all__},
    "ScalingStep": ScalingStep,
}


@cache
def public() -> dict[str, Any]:
    return dict(_public())


def _public() -> Iterator[tuple[str, Any]]:
    """Name and function of everything public that takes arguments."""
    for name, kind in CLASSES.items():
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


@cache
def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {
        name: parameter
        for name, parameter in found.items()
        if name not in ("self", "cls") and parameter.kind is not parameter.VAR_KEYWORD
    }


def plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter without what ``Annotated`` says beside its kind; a duration's three are one."""
    text = str(parameter.annotation).replace(LASTING, "AnyDuration")
    if not text.startswith("Annotated["):
        return parameter.replace(annotation=text)
    depth, end = 0, 0
    for end, letter in enumerate(text):  # noqa: B007
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 1:
            break
    return parameter.replace(annotation=text[len("Annotated[") : end])


TRIED = [
    (name, function, plain(parameter))
    for name, function in public().items()
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
    kind = CLASSES[owner]
    if not method:
        return kind
    if isinstance(inspect.getattr_static(kind, method), (classmethod, staticmethod)):
        return getattr(kind, method)
    receiver = kind(**valid(things, owner)) if name in ONCE else things.receiver(kind)
    return getattr(receiver, method)


def call(function: Any, given: dict[str, Any], parameters: Sequence[inspect.Parameter]) -> Any:
    places = [each.kind for each in parameters]
    if inspect.Parameter.VAR_POSITIONAL not in places:
        return function(**given)
    *before, rest = parameters[: places.index(inspect.Parameter.VAR_POSITIONAL) + 1]
    first = [given.pop(each.name) for each in before]
    return function(*first, *given.pop(rest.name, ()), **given)


def valid(things: Things, name: str) -> dict[str, Any]:
    """Arguments that a call takes: those that it needs, from things and values of their names."""
    given = {}
    for parameter in _parameters(public()[name]).values():
        if parameter.default is parameter.empty:
            own = VALUES.get(f"{name} {parameter.name}", VALUES.get(parameter.name))
            made = getattr(things, parameter.name) if own is None else own
            given[parameter.name] = made(things) if isinstance(made, FunctionType) else made
    return {**given, **BESIDE.get(name, lambda _: {})(things)}


def test_what_is_valid_is_taken(things):
    names = [name for name in public() if ".metric_" not in name]  # of GPUs, say, there are none
    refused = {name: error for name in names if (error := refusal(things, name, {}))}
    assert list(refused) == ["ModelData.from_asset"], refused  # there is no such file


@pytest.mark.parametrize(("options", "taker"), OPTIONS_OF.items())
def test_options_are_what_their_taker_takes(options, taker):
    taken = set(_parameters(public()[taker]))
    assert set(_parameters(public()[options])) <= taken


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name, _, parameter in TRIED],
    ids=[f"{name}-{parameter.name}" for name, _, parameter in TRIED],
)
def test_a_wrong_kind_is_a_coded_error(things, name, parameter):
    """By day each argument is given every second value, its neighbour the others."""
    begin = [each.name for each in _parameters(public()[name]).values()].index(parameter.name) % 2
    tried = list(values(parameter.annotation))
    for what, value, right in tried if BY_NIGHT else tried[begin::2]:
        if name in OPTIONS_OF and what == "a fraction":
            continue
        passed = [value] if parameter.kind is parameter.VAR_POSITIONAL else value
        error = refusal(things, name, {parameter.name: passed})
        if not right:
            assert isinstance(error, ConfigurationError), f"{what}: {error!r}"
            assert parameter.name in str(error) or error.code not in KINDS, f"{what}: {error}"
            if error.code == "LLE807":
                assert is_about(parameter, error.fix), f"{what}: {error}"
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


#: A word for each kind that is no class, such as the fix of a wrong value has it.
WORDS = {"str": "text", "int": "whole number", "float": "number", "bool": "True", "bytes": "bytes"}
WORDS |= {"IAlarmAction": "SnsAction(topic)", "IConnectable": "SecurityGroup", "IGrantable": "Role"}
WORDS |= {"Callable": "function", "Path": "Path", "AnyDuration": "Duration"}


def is_about(parameter: inspect.Parameter, fix: str) -> bool:
    """Whether a fix names the argument and each kind that it takes, and no other class of ours."""
    kinds = re.findall(r"\w+", re.sub(r"\w+\.", "", str(parameter.annotation)))
    named = [word for kind in kinds if (word := WORDS.get(kind, kind.removeprefix("I"))) in fix]
    listed = any(each in fix for each in ("list", "[", "mapping", "a key"))  # says of what
    literals = re.findall(r"'\w+'", str(parameter.annotation))
    others = {"InstanceType", "Container", "AlarmOptions"} - set(kinds)
    return (
        parameter.name in fix
        and bool(named or listed or any(each in fix for each in literals))
        and not any(re.search(rf"(Pass|or) \[?{each}\(", fix) for each in others)
    )


@pytest.mark.parametrize("name", public())
def test_an_unknown_keyword_is_answered_with_the_near_name(things, name):
    kinds = {each.name: each.kind.name for each in _parameters(public()[name]).values()}
    if "VAR_KEYWORD" in [
        each.kind.name for each in inspect.signature(public()[name]).parameters.values()
    ]:
        return  # a stack's, which go to CDK
    names = [each for each, kind in kinds.items() if len(each) > 4 and kind != "VAR_POSITIONAL"]
    for known in names:
        error = refusal(things, name, {known.replace("_", "").upper() + "x": 1})
        assert isinstance(error, ConfigurationError), error
        assert isinstance(error, TypeError)
        assert (error.code, error.fix) == ("LLE811", f"Did you mean {known}?")


@pytest.mark.parametrize("name", public())
def test_a_missing_argument_is_a_coded_error(things, name):
    parameters = [*_parameters(public()[name]).values()]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return  # none is needed
    for left_out in [each.name for each in parameters if each.default is each.empty]:
        given = {key: value for key, value in valid(things, name).items() if key != left_out}
        with refused("LLE812", left_out) as caught:
            function_of(things, name)(**given)
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("name", public())
def test_an_argument_without_its_name_is_a_coded_error(things, name):
    parameters = _parameters(public()[name]).values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    places = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    given = valid(things, name)
    first = [given.get(each.name, each.default) for each in places]
    with refused("LLE813") as caught:
        function_of(things, name)(*first, object())
    assert isinstance(caught.value, TypeError)


def calls_in(annotation: str, module: str) -> Iterator[str]:
    """Each call that a fix of an argument of this annotation may propose."""
    argument = kind_of_argument(annotation, module)
    for kind in [each for each in argument.alternatives if not isinstance(each, AnyKind)]:
        for given in (None, "text", [], object()):
            code = [each for each in examples_of(kind, given) if not each.startswith("a ")]
            yield from re.findall(r"[\w.]+\([^()]*\)", " ".join(code))


def test_every_call_of_a_fix_can_be_written():
    """What is named exists, and takes what is written; an ellipsis stands for any value."""
    wrong = set()
    for _, function, parameter in TRIED:
        owner = inspect.unwrap(function)
        cls = getattr(sys.modules[owner.__module__], owner.__qualname__.partition(".")[0])
        wrong |= {
            (parameter.name, written)
            for written in calls_in(parameter.annotation, module_of(cls, parameter.name))
            if not can_be_written(written)
        }
    assert not wrong, "\n".join(map(str, sorted(wrong)))


#: What people give instead of options, beside what fits nowhere.
INSTEAD: dict[str, Callable[[], Any]] = {
    "milliseconds": lambda: 200,
    "a share": lambda: 0.2,
    "a duration in words": lambda: "200ms",
    "a Duration": lambda: Duration.millis(200),
    "an image": lambda: IMAGE,
    **{what: make for what, (make, _) in BATTERY.items()},
}


def taken_groups() -> list[type]:
    """Our dataclasses that some argument takes."""
    found: dict[type, None] = {}
    for _, function, parameter in TRIED:
        owner = inspect.unwrap(function)
        cls = getattr(sys.modules[owner.__module__], owner.__qualname__.partition(".")[0])
        kind = kind_of_argument(parameter.annotation, module_of(cls, parameter.name))
        found |= dict.fromkeys(part.of for part in kind.alternatives if is_options(part))
    return [kind for kind in found if kind.__name__ in low_latency_endpoint.__all__]


def as_written(things: Things, written: str, given: Any) -> Any:
    """What a fix writes; an ellipsis is the given value, or what a required argument takes."""
    called = written.partition("(")[0]
    needed = valid(things, called) if "=..." in written and called in public() else {}
    names = {**vars(low_latency_endpoint), "timedelta": timedelta, "aws_cdk": cdk}
    names |= {"model": things.model, "value": lambda name: needed.get(name, given)}
    filled = re.sub(r"(\w+)=\.\.\.", r"\1=value('\1')", written)
    return eval(filled.replace('"..."', repr(IMAGE)), names)


@pytest.mark.parametrize("kind", taken_groups(), ids=lambda kind: kind.__name__)
def test_the_fix_as_it_is_written_ends_the_error(things, kind):
    """What it names is made and taken, though the option may have a limit on what was given."""
    given = [make() for make in INSTEAD.values()]
    for value in given:
        error = caught(take, kind, value)
        if error is None or error.code != "LLE807":
            continue
        [written] = re.findall(r"^Pass (.+) as value\.$", error.fix)
        if "(...)" not in written:
            again = caught(lambda *given: take(kind, as_written(*given)), things, written, value)
            assert again is None or again.where in options_in(written), f"{error}\n\n{again}"


def options_in(written: str) -> list[str]:
    """Where each option that a fix leaves open is refused."""
    called, _, options = written.partition("(")
    return [f"{called}, {option}" for option in re.findall(r"(\w+)=\.\.\.", options)]


def caught(call: Callable[..., Any], *given: Any) -> ConfigurationError | None:
    try:
        call(*given)
    except ConfigurationError as error:
        return error
    return None


PLACES = (low_latency_endpoint, cdk, datetime, pathlib)


def can_be_written(written: str) -> bool:
    """Whether the class, or its factory, exists and can be called so."""
    called, _, arguments = written.partition("(")
    first, *path = called.split(".")
    made_of: Any = next(filter(None, (getattr(place, first, None) for place in PLACES)), None)
    if made_of is None:  # what the library makes for itself
        made_of = next((kind for kind in ours_inside() if kind.__name__ == first), None)
    if first == "aws_cdk":
        made_of = cdk
    elif first.startswith("aws_"):
        made_of = import_module(f"aws_cdk.{first}")
    elif first == "Construct":
        made_of = Construct
    for part in path:
        made_of = getattr(made_of, part, None)
    if made_of is None or inspect.isabstract(made_of):
        return False
    if isinstance(made_of, type) and not has_constructor(made_of):
        return False
    names = re.findall(r"(\w+)=", arguments)
    if not names or not made_of.__module__.startswith("low_latency_endpoint"):
        return True
    return set(names) <= set(inspect.signature(made_of).parameters)


def ours_inside() -> Iterator[type]:
    for name, module in list(sys.modules.items()):
        if name.startswith("low_latency_endpoint."):
            yield from (each for each in vars(module).values() if isinstance(each, type))


def has_constructor(made_of: type) -> bool:
    return not hasattr(made_of, "__jsii_type__") or made_of.__init__ is not object.__init__


def refusal(things: Things, name: str, changed: dict[str, Any]) -> Exception | None:
    function, given = function_of(things, name), valid(things, name)
    try:
        call(function, {**given, **changed}, [*_parameters(public()[name]).values()])
    except Exception as error:
        return error
    return None


# --- what is right is taken ----------------------------------------------------------------------


@jsii.implements(cloudwatch.IAlarmAction)
class Pager:
    """An action that somebody wrote in Python."""

    def bind(self, scope: Construct, alarm: cloudwatch.IAlarm) -> cloudwatch.AlarmActionConfig:
        return cloudwatch.AlarmActionConfig(alarm_action_arn="arn:aws:sns:us-east-1:1:pager")


def take(annotation: Any, value: Any) -> None:
    """Call a method of a parameter with an annotation, which is checked as the library's are."""

    def given(self: Any, value: Any) -> None: ...

    given.__annotations__["value"] = annotation
    checked_arguments(type("Taker", (), {"given": given}))().given(value)


KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000"
ROLE_ARN = "arn:aws:iam::123456789012:role/hosting"
#: What fits an annotation, of each kind that CDK has it in.
RIGHT: dict[Any, list[Callable[[Things], Any]]] = {
    "cloudwatch.IAlarmAction": [
        lambda t: cloudwatch_actions.SnsAction(
            sns.Topic.from_topic_arn(t.stack, "Topic", "arn:aws:sns:us-east-1:123456789012:pages")
        ),
        lambda t: AlarmTopic(**t.place()).action,
        lambda t: Pager(),
    ],
    "cloudwatch.IAlarm": [
        lambda t: cloudwatch.Alarm.from_alarm_arn(
            t.stack, "Alarm", "arn:aws:cloudwatch:us-east-1:123456789012:alarm:a"
        ),
        lambda t: next(
            iter(
                LatencyAlarms(
                    **t.place(),
                    endpoint=t.endpoint,
                    options=replace(AlarmOptions.none(), error_rate=0.1),
                ).composites.values()
            )
        ),
    ],
    "s3.IBucket": [
        lambda t: t.bucket,
        lambda t: s3.Bucket(**t.place()),
        lambda t: t.fleet.results_bucket,
    ],
    "ec2.IConnectable": [
        lambda t: ec2.Peer.any_ipv4(),
        lambda t: ec2.Peer.prefix_list("pl-1"),
        lambda t: ec2.SecurityGroup(**t.place(), vpc=t.vpc),
        lambda t: ec2.Connections(),
        lambda t: t.fleet,
        lambda t: t.model,
        lambda t: t.interface_endpoint,
        lambda t: t.network.model_security_group,
    ],
    Construct: [
        lambda t: t.stack,
        lambda t: cdk.Stage(cdk.App(), "Stage"),
        lambda t: t.stack.node.root,
        lambda t: t.network.vpc,
        lambda t: t.stack.node.find_all()[-1],
    ],
    Duration: [
        lambda t: Duration.millis(3),
        lambda t: timedelta(1),
        lambda t: Duration.seconds(1).plus(Duration.seconds(2)),
    ],
    "lambda_.IFunction": [
        lambda t: lambda_.Function.from_function_arn(
            **t.place(), function_arn="arn:aws:lambda:us-east-1:123456789012:function:login"
        ),
        lambda t: lambda_.Function.from_function_name(**t.place(), function_name="login"),
    ],
    "iam.IGrantable": [
        lambda t: t.grantee,
        lambda t: t.model,
        lambda t: iam.User(**t.place()),
        lambda t: iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
        lambda t: t.grantee.grant_principal,
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN),
    ],
    "ec2.ISecurityGroup": [
        lambda t: t.network.model_security_group,
        lambda t: ec2.SecurityGroup.from_security_group_id(**t.place(), security_group_id="sg-1"),
        lambda t: t.private_link.connections.security_groups[0],
    ],
    "ec2.IInterfaceVpcEndpoint": [
        lambda t: t.interface_endpoint,
        lambda t: t.private_link.interface_endpoint,
    ],
    "kms.IKey": [
        lambda t: kms.Key(**t.place()),
        lambda t: kms.Key.from_key_arn(**t.place(), key_arn=KEY_ARN),
        lambda t: kms.Alias.from_alias_name(**t.place(), alias_name="alias/a"),
        lambda t: kms.Key(**t.place()).add_alias("b"),
        lambda t: s3.Bucket(**t.place(), encryption=s3.BucketEncryption.KMS).encryption_key,
    ],
    "cloudwatch.IMetric": [
        lambda t: t.metric,
        lambda t: t.endpoint.metric_invocations(),
        lambda t: cloudwatch.MathExpression(expression="a", using_metrics={"a": t.metric}),
    ],
    int: [
        lambda t: 3,
        lambda t: 3.0,
        lambda t: cdk.Token.as_number({"Ref": "Count"}),
        lambda t: cdk.CfnParameter(**t.place(), type="Number").value_as_number,
    ],
    "ec2.IPrefixList": [
        lambda t: ec2.PrefixList.from_prefix_list_id(**t.place(), prefix_list_id="pl-1"),
        lambda t: ec2.PrefixList(**t.place(), max_entries=1),
    ],
    "ec2.IInterfaceVpcEndpointService": [
        lambda t: ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
        lambda t: ec2.InterfaceVpcEndpointService("com.amazonaws.us-east-1.ssm", 443),
    ],
    "ecr.IRepository": [lambda t: t.repository, lambda t: ecr.Repository(**t.place())],
    "iam.IRole": [
        lambda t: t.grantee,
        lambda t: t.grantee.without_policy_updates(),
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN),
        lambda t: iam.Role.from_role_arn(**t.place(), role_arn=ROLE_ARN, mutable=False),
        lambda t: iam.Role.from_role_name(**t.place(), role_name="hosting"),
        lambda t: t.model.role,
    ],
    "appscaling.Schedule": [
        lambda t: appscaling.Schedule.cron(hour="1"),
        lambda t: appscaling.Schedule.rate(Duration.hours(1)),
        lambda t: appscaling.Schedule.expression("rate(1 hour)"),
    ],
    "ec2.SubnetSelection": [lambda t: ec2.SubnetSelection(), lambda t: t.network.subnet_selection],
    "secretsmanager.ISecret": [
        lambda t: secretsmanager.Secret(**t.place()),
        lambda t: secretsmanager.Secret.from_secret_name_v2(**t.place(), secret_name="token"),
    ],
    "ec2.ISubnet": [
        lambda t: t.vpc.private_subnets[0],
        lambda t: t.network.subnets[0],
        lambda t: ec2.Subnet.from_subnet_id(**t.place(), subnet_id="subnet-1"),
        lambda t: ec2.Vpc(**t.place()).public_subnets[0],
    ],
    str: [
        lambda t: cdk.Aws.REGION,
        lambda t: cdk.Fn.ref("A"),
        lambda t: t.network.vpc.vpc_id,
        lambda t: cdk.Lazy.string(Later()),
        lambda t: cdk.Token.as_string({"Ref": "A"}),
        lambda t: cdk.SecretValue.secrets_manager("a").unsafe_unwrap(),
    ],
    Sequence[str]: [
        lambda t: cdk.Token.as_list({"Ref": "A"}),
        lambda t: ("a",),
        lambda t: [],
        lambda t: t.network.vpc.availability_zones,
        lambda t: cdk.Fn.get_azs(),
    ],
    "ec2.IVpc": [
        lambda t: t.vpc,
        lambda t: ec2.Vpc(**t.place()),
        lambda t: t.network.vpc,
        lambda t: ec2.Vpc.from_lookup(**t.place(), vpc_id="vpc-1"),
    ],
}


PLAIN = (str, Sequence[str], int, Duration)


@jsii.implements(cdk.IStableStringProducer)
class Later:
    def produce(self) -> str:
        return "later"


def test_every_class_of_the_cdk_that_is_taken_is_tried():
    taken = {
        name
        for _, _, parameter in TRIED
        for name in re.findall(
            r"\b(?:[a-z_0-9]+\.)?(?:I[A-Z][a-z]\w*|Schedule|SubnetSelection)\b",
            parameter.annotation,
        )
    }
    assert taken - CLASSES.keys() == {name for name in RIGHT if isinstance(name, str)}


@pytest.mark.parametrize(
    ("annotation", "make"),
    [(annotation, make) for annotation, makers in RIGHT.items() for make in makers],
)
def test_what_is_right_is_taken(things, annotation, make):
    take(annotation, make(things))


@pytest.mark.parametrize("annotation", [each for each in RIGHT if each not in PLAIN])
def test_what_another_takes_is_refused(things, annotation):
    for other in PLAIN:
        with pytest.raises(ConfigurationError):
            take(annotation, RIGHT[other][0](things))


def test_all_annotations_can_be_read():
    """Those too that name what a module imports for type checkers alone."""
    for name, function, parameter in TRIED:
        owner = inspect.unwrap(function)
        cls = getattr(sys.modules[owner.__module__], owner.__qualname__.partition(".")[0])
        module = module_of(cls, parameter.name)
        kind = kind_of_argument(parameter.annotation, module)
        assert kind.words or isinstance(kind, AnyKind), name


def test_many_entries_are_refused_in_one_pass():
    """What compares each with each, twenty thousand million times, would not come back."""
    many = [f"use1-az{number}" for number in range(150_000)]
    with pytest.raises(ConfigurationError):
        ClientZones.of_ids(*many)
    with pytest.raises(ConfigurationError):
        Container(image=ContainerImage.from_uri(IMAGE), environment=dict.fromkeys(many, "v"))
    with pytest.raises(ConfigurationError):
        DataCapture(s3="s3://b", csv_content_types=many)
    with pytest.raises(ConfigurationError) as raised:
        DataCapture(s3="s3://b", json_content_types=[*many, None])
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


def test_a_capture_is_no_core_dump():
    with refused("LLE807"):
        VariantOptions(core_dump=DataCapture(s3="s3://captured"))
