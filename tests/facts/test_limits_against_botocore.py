"""Every limit against botocore's models and CloudFormation's schemas.

A limit must allow exactly what all of them allow. Where the library differs on purpose, or where
neither states the fact, the reason stands in a table here; a new limit that stands in none fails.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import regex
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint.facts import limits
from low_latency_endpoint.facts.limit_kinds import Choice, Limit, Pattern, Range

CONFIG, ENDPOINT, MODEL, COMPONENT = (
    f"SageMaker::{name}" for name in ("EndpointConfig", "Endpoint", "Model", "InferenceComponent")
)
_NEEDS = "InferenceComponentComputeResourceRequirements"


@dataclass(frozen=True)
class Stated:
    """Where AWS states a limit, what is stricter here and why, and text that it allows.

    ``shape`` is ``Shape.member``, of another service than SageMaker ``service:Shape.member``; ``[]``
    is an item, ``{}`` a value, ``{k}`` a key. ``schema`` is the resource type and the path in it.
    """

    shape: str = ""
    schema: str = ""
    minimum: tuple[float, str] | None = None
    maximum: tuple[float, str] | None = None
    refused_here: Callable[[str], bool] = lambda text: False
    good: tuple[str, ...] = ()


_HOST = ("a", "a-b", "a--b9", "x" * 63)
STATED = {
    "CAPACITY_RESERVATION_ARN": Stated(
        "ProductionVariantCapacityReservationConfig.MlReservationArn",
        f"{CONFIG}/CapacityReservationConfig/MlReservationArn",
        good=("arn:aws:sagemaker:us-east-1:123456789012:training-plan/a", "arn:aws:sagemaker:r:" + "0" * 12 + ":a2/"),
    ),
    "CAPTURE_CONTENT_TYPE": Stated(
        "CaptureContentTypeHeader.JsonContentTypes.[]",
        f"{CONFIG}/CaptureContentTypeHeader/JsonContentTypes/[]",
        good=("text/csv", "a/b.c", "application/vnd.ms-x"),
    ),
    "CAPTURE_CONTENT_TYPE_COUNT": Stated(
        "CaptureContentTypeHeader.JsonContentTypes", f"{CONFIG}/CaptureContentTypeHeader/JsonContentTypes"
    ),
    "CAPTURE_COUNT": Stated("DataCaptureConfig.CaptureOptions", f"{CONFIG}/DataCaptureConfig/CaptureOptions"),
    "CLIENT_ZONE_COUNT": Stated(
        "VpcConfig.Subnets", f"{MODEL}/VpcConfig/Subnets", minimum=(2, "hosting needs subnets in two zones")
    ),
    "CONCURRENCY_THRESHOLD": Stated(
        "PrefixAwareRoutingConfig.ConcurrencyThreshold", f"{CONFIG}/PrefixAwareRoutingConfig/ConcurrencyThreshold"
    ),
    "CONTAINER_COUNT": Stated(
        "CreateModelInput.Containers", f"{MODEL}//Containers", minimum=(1, "a model without a container serves nothing")
    ),
    "CONTAINER_HOSTNAME": Stated(
        "ContainerDefinition.ContainerHostname", f"{MODEL}/ContainerDefinition/ContainerHostname", good=_HOST
    ),
    "CONTAINER_STARTUP_SECONDS": Stated(
        "ProductionVariant.ContainerStartupHealthCheckTimeoutInSeconds",
        f"{CONFIG}/ProductionVariant/ContainerStartupHealthCheckTimeoutInSeconds",
    ),
    "ENDPOINT_ARN": Stated(
        "DescribeEndpointOutput.EndpointArn",
        refused_here=lambda text: text.endswith(":endpoint/"),  # an ARN without a name names nothing
        good=("arn:aws:sagemaker:us-east-1:123456789012:endpoint/a",),
    ),
    "ENDPOINT_CONFIG_NAME": Stated(
        "CreateEndpointConfigInput.EndpointConfigName", f"{CONFIG}//EndpointConfigName", good=_HOST
    ),
    "COMPONENT_ACCELERATORS": Stated(
        f"{_NEEDS}.NumberOfAcceleratorDevicesRequired", f"{COMPONENT}/{_NEEDS}/NumberOfAcceleratorDevicesRequired"
    ),
    "COMPONENT_CPUS": Stated(f"{_NEEDS}.NumberOfCpuCoresRequired", f"{COMPONENT}/{_NEEDS}/NumberOfCpuCoresRequired"),
    "COMPONENT_MEMORY": Stated(f"{_NEEDS}.MinMemoryRequiredInMb", f"{COMPONENT}/{_NEEDS}/MinMemoryRequiredInMb"),
    "COMPONENT_NAME": Stated(
        "CreateInferenceComponentInput.InferenceComponentName", f"{COMPONENT}//InferenceComponentName", good=_HOST
    ),
    "CONSOLIDATION_COOLDOWN": Stated(
        "ProductionVariantManagedInstanceScalingScaleInPolicy.CooldownInMinutes",
        f"{CONFIG}/ScaleInPolicy/CooldownInMinutes",
    ),
    "CONSOLIDATION_STEP": Stated(
        "ProductionVariantManagedInstanceScalingScaleInPolicy.MaximumStepSize",
        f"{CONFIG}/ScaleInPolicy/MaximumStepSize",
    ),
    "COPIES": Stated(
        "InferenceComponentRuntimeConfig.CopyCount", f"{COMPONENT}/InferenceComponentRuntimeConfig/CopyCount",
        minimum=(1, "0 was refused at creation (stdapi-ai/stdapi.ai#43)"),
    ),
    "ENDPOINT_NAME": Stated("CreateEndpointInput.EndpointName", f"{ENDPOINT}//EndpointName", good=_HOST),
    "ENVIRONMENT_ENTRIES": Stated("ContainerDefinition.Environment"),
    "ENVIRONMENT_KEY": Stated("ContainerDefinition.Environment.{k}", good=("_k", "A9", "k" * 1024)),
    "ENVIRONMENT_VALUE_BYTES": Stated("ContainerDefinition.Environment.{}"),
    "EVALUATION_PERIODS": Stated(
        "cloudwatch:PutMetricAlarmInput.EvaluationPeriods",
        maximum=(1440, "evaluation periods of a minute may span a day"),
    ),
    "IMAGE_URI": Stated(
        "ContainerDefinition.Image", f"{MODEL}/ContainerDefinition/Image", good=("1.dkr.ecr.r.amazonaws.com/a:b", "x" * 255)
    ),
    "INFERENCE_AMI": Stated(
        "ProductionVariant.InferenceAmiVersion", f"{CONFIG}/ProductionVariant/InferenceAmiVersion"
    ),
    "INFERENCE_MODE": Stated("InferenceExecutionConfig.Mode", f"{MODEL}/InferenceExecutionConfig/Mode"),
    "INITIAL_INSTANCE_COUNT": Stated(
        "ProductionVariant.InitialInstanceCount", f"{CONFIG}/ProductionVariant/InitialInstanceCount",
        minimum=(1, "real-time variants hold one; components are not made here"),
    ),
    "INSTANCE_POOL_COUNT": Stated("ProductionVariant.InstancePools", f"{CONFIG}/ProductionVariant/InstancePools"),
    "INSTANCE_POOL_PRIORITY": Stated("InstancePool.Priority", f"{CONFIG}/InstancePool/Priority"),
    "LOG_RETENTION": Stated(schema="Logs::LogGroup//RetentionInDays"),
    "MAXIMUM_EXECUTION_SECONDS": Stated(
        "BlueGreenUpdatePolicy.MaximumExecutionTimeoutInSeconds",
        f"{ENDPOINT}/BlueGreenUpdatePolicy/MaximumExecutionTimeoutInSeconds",
    ),
    "METRIC_FREQUENCY": Stated(schema=f"{CONFIG}/MetricsConfig/MetricPublishFrequencyInSeconds"),
    "MODEL_DATA_URI": Stated(
        "ContainerDefinition.ModelDataUrl", f"{MODEL}/ContainerDefinition/ModelDataUrl",
        good=("s3://b", "s3://b/k/", "https://h/p"),
    ),
    "MODEL_DOWNLOAD_SECONDS": Stated(
        "ProductionVariant.ModelDataDownloadTimeoutInSeconds",
        f"{CONFIG}/ProductionVariant/ModelDataDownloadTimeoutInSeconds",
    ),
    "MANAGED_INSTANCES": Stated(
        "ProductionVariantManagedInstanceScaling.MinInstanceCount", f"{CONFIG}/ManagedInstanceScaling/MinInstanceCount"
    ),
    "MODEL_NAME": Stated("CreateModelInput.ModelName", f"{MODEL}//ModelName", good=_HOST),
    "MODEL_PACKAGE": Stated(
        "ContainerDefinition.ModelPackageName", f"{MODEL}/ContainerDefinition/ModelPackageName",
        good=("fraud", "fraud/7", "arn:aws:sagemaker:us-east-1:123456789012:model-package/fraud/7"),
    ),
    "MODEL_SECURITY_GROUPS": Stated("VpcConfig.SecurityGroupIds", f"{MODEL}/VpcConfig/SecurityGroupIds"),
    "PREFIX_LENGTH": Stated(
        "PrefixAwareRoutingConfig.PrefixLength", f"{CONFIG}/PrefixAwareRoutingConfig/PrefixLength"
    ),
    "PROVISION_SECONDS": Stated("ProductionVariant.VariantInstanceProvisionTimeoutInSeconds"),
    "ROLLBACK_ALARM_COUNT": Stated("AutoRollbackConfig.Alarms", f"{ENDPOINT}/AutoRollbackConfig/Alarms"),
    "ROUTING_STRATEGY": Stated("RoutingStrategy", f"{CONFIG}/RoutingConfig/RoutingStrategy"),
    "S3_URI": Stated(
        "DataCaptureConfig.DestinationS3Uri", f"{CONFIG}/DataCaptureConfig/DestinationS3Uri",
        refused_here=lambda text: text.startswith("https"),  # no role could be given its rights
        good=("s3://b", "s3://b/k/", "https://h/p"),
    ),
    "SAMPLING_PERCENTAGE": Stated(
        "DataCaptureConfig.InitialSamplingPercentage", f"{CONFIG}/DataCaptureConfig/InitialSamplingPercentage"
    ),
    "TAG_COUNT": Stated("CreateEndpointInput.Tags", f"{ENDPOINT}//Tags"),
    "TAG_KEY": Stated(
        "Tag.Key", f"{ENDPOINT}/Tag/Key",
        refused_here=lambda text: text.lower().startswith("aws:"),  # AWS's own prefix
        good=("team", "a b", "aws-team", "Größe_1.:/=+-@"),
    ),
    "SCHEDULE_NAME": Stated(
        "application-autoscaling:PutScheduledActionRequest.ScheduledActionName",
        good=("morning", "a b", "ü-1.!", "x" * 256),
    ),
    "TAG_VALUE": Stated("Tag.Value", f"{ENDPOINT}/Tag/Value", good=("", "a b", "Größe_1.:/=+-@")),
    "TERMINATION_WAIT_SECONDS": Stated(
        "BlueGreenUpdatePolicy.TerminationWaitInSeconds", f"{ENDPOINT}/BlueGreenUpdatePolicy/TerminationWaitInSeconds"
    ),
    "TRAFFIC_WAIT_SECONDS": Stated(
        "TrafficRoutingConfig.WaitIntervalInSeconds", f"{ENDPOINT}/TrafficRoutingConfig/WaitIntervalInSeconds"
    ),
    "VARIANT_COUNT": Stated("CreateEndpointConfigInput.ProductionVariants"),
    "VARIANT_NAME": Stated("ProductionVariant.VariantName", f"{CONFIG}/ProductionVariant/VariantName", good=_HOST),
    "VARIANT_WEIGHT": Stated(
        "ProductionVariant.InitialVariantWeight", f"{CONFIG}/ProductionVariant/InitialVariantWeight"
    ),
    "VOLUME_SIZE": Stated("ProductionVariant.VolumeSizeInGB", f"{CONFIG}/ProductionVariant/VolumeSizeInGB"),
}  # fmt: skip

_PAGE = "stated by the page that its rule names, not by a model"
_OURS = "the library's own number, no fact of AWS's"
_TEXT = "in the text of botocore's model: a test below"
_OTHERS = "the identifier of another service, which SageMaker's model takes as any text"
NOT_STATED = {
    **dict.fromkeys(
        (
            "ACCOUNT", "ALARM_PERIOD", "ALARM_WAIT_SECONDS", "CAPTURE_MODE", "COMPOSITE_RULE_LENGTH", "CONTEXT_TOKENS", "COOLDOWN_SECONDS", "ENDPOINT_POLICY_LENGTH", "METRICS_IN_ALARM", "MIN_CAPACITY", "ORGANIZATION", "OUTPUTS", "PARAMETER_PREFIX", "REGION",
            "RESOURCES", "ROLE_POLICIES_LENGTH", "SCALED_COPIES", "SCHEDULE_EXPRESSION", "S3_POLICY_BUCKETS", "SCALING_TARGET", "SUBNET_PREFIX_LENGTH", "TASK_CPU",
            "VPC_PREFIX_LENGTH", "ZONE_ID", "ZONE_NAME",
        ),
        _PAGE,
    ),
    **dict.fromkeys(
        (
            "ALARM_THRESHOLD_MILLISECONDS", "ARCHITECTURE", "BELOW_TPS", "CONCURRENCY_PER_ZONE", "CUSTOM_AMI",
            "ENDPOINT_KEY", "ERROR_RATE", "IMAGE_PLATFORM", "KEEP_WARM_EVERY", "KEEP_WARM_REQUESTS", "KEEP_WARM_WINDOW",
            "LAST", "LATENCY_RATIO", "MAX_INSTANCES", "MINIMUM_FAILURES", "MINIMUM_INVOCATIONS", "OBJECTIVE", "OVERHEAD_SHARE",
            "FROM_TPS", "PAYLOAD_COUNT", "INSTANCE_START_SECONDS", "PEAK_TPS", "RISE_TPS", "PERCENT_OF_ALL", "PRICE", "PRICED_ITEM", "REQUESTS",
            "RESERVED_CONCURRENCY", "RESULTS_RETENTION", "SAFETY_FACTOR", "CONCURRENCY_PER_INSTANCE", "SHADOW_SHARE", "SHARED_PREFIX", "TOKEN_COUNT",
            "KV_CACHE_USE", "METRICS_OF_SERVER", "QUERY_WINDOW_SECONDS", "SECONDS", "WAITING_REQUESTS", "STEP_ADDS", "STEP_CHANGE",
            "STEP_PERIODS", "STEP_THRESHOLD",
            "TIME_OF_DAY", "TIMEOUT_SECONDS", "TPS_PER_INSTANCE", "WARM_UP_REQUESTS", "ZONES_TO_COUNT", "ZONE_IMBALANCE",
        ),
        _OURS,
    ),
    **dict.fromkeys(
        (
            "CIDR", "CODE_SIGNING_ARN", "ECR_REPOSITORY", "ENCRYPTION_KEY_ARN", "FUNCTION_ARN", "IMAGE_TAG", "INTERFACE_ENDPOINT_ID",
            "KMS_KEY_ARN", "PREFIX_LIST_ID", "ROLE_ARN", "SECRET_ARN", "SECURITY_GROUP_ID", "STACK_NAME", "SUBNET_ID",
            "TOPIC_ARN", "VPC_ID",
        ),
        _OTHERS,
    ),
    **dict.fromkeys(
        (
            "CANARY_PERCENT", "ENVIRONMENT_TOTAL_BYTES", "INSTANCE_TYPE", "LINEAR_STEP_PERCENT",
            "ROLLING_BATCH_PERCENT",
        ),
        _TEXT,
    ),
    "PAYLOAD": "AWS's page says 25 MB, its model 6,291,456: a payload between the two is a warning",
    "PAYLOAD_BYTES": "as PAYLOAD",
}  # fmt: skip


@cache
def model(service: str = "sagemaker") -> Any:
    return botocore.session.get_session().get_service_model(service)


def shape(path: str) -> Any:
    service, _, rest = path.rpartition(":")
    name, *members = rest.split(".")
    found = model(service or "sagemaker").shape_for(name)
    for member in members:
        inside = {"{k}": "key", "{}": "value", "[]": "member"}.get(member)
        found = getattr(found, inside) if inside else found.members[member]
    return found


def schema(path: str) -> dict[str, Any]:
    resource, definition, name, *items = path.split("/")
    whole = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", f"AWS::{resource}").schema
    found = (whole["definitions"][definition] if definition else whole)["properties"][name]
    return found["items"] if items else found


@cache
def facts(stated: Stated) -> tuple[dict[str, Any], ...]:
    """What each source states: minimum, maximum, pattern, enum, as far as it does."""

    def both(one: Any) -> dict[str, Any]:
        return {"pattern": one.get("pattern"), "enum": one.get("enum")}

    found = []
    if stated.shape:
        one = shape(stated.shape).metadata
        found.append({"minimum": one.get("min"), "maximum": one.get("max"), **both(one)})
    if stated.schema:
        one = schema(stated.schema)
        least = one.get("minimum", one.get("minItems", one.get("minLength")))
        most = one.get("maximum", one.get("maxItems", one.get("maxLength")))
        found.append({"minimum": least, "maximum": most, **both(one)})
    assert any(value is not None for each in found for value in each.values()), "states nothing"
    return tuple(found)


def tightest(stated: Stated, side: str, choose: Callable[..., Any]) -> float | None:
    values = [each[side] for each in facts(stated) if each[side] is not None]
    return choose(values) if values else None


#: What is put at each place of a text that is allowed: one of each kind that patterns tell apart.
STRANGE = "aZ09-_./:=+@ ~#\té\u3000\u00a0\u0301\u0663"


def samples(good: tuple[str, ...]) -> Iterator[str]:
    for text in good:
        yield text
        for place in range(min(len(text), 70) + 1):
            yield text[:place] + text[place + 1 :]
            for letter in STRANGE:
                yield text[:place] + letter + text[place:]
                yield text[:place] + letter + text[place + 1 :]


def allowed(stated: Stated, text: str) -> bool:
    def one(fact: dict[str, Any]) -> bool:
        low, high, form = fact["minimum"], fact["maximum"], fact["pattern"]
        flags = 0 if form and r"\p{" in form else regex.ASCII
        anchored = form and form.startswith("^")
        return (
            (low is None or len(text) >= low)
            and (high is None or len(text) <= high)
            and (
                form is None
                or (regex.search if anchored else regex.fullmatch)(form, text, flags) is not None
            )
        )

    return not stated.refused_here(text) and all(map(one, facts(stated)))


def differences(limit: Limit, stated: Stated) -> Iterator[str]:
    """Where the limit is stricter or laxer than all that AWS states together."""
    if isinstance(limit, Range):
        for side, choose, ours in (
            ("minimum", max, limit.minimum),
            ("maximum", min, limit.maximum),
        ):
            exception = getattr(stated, side)
            expected = exception[0] if exception else tightest(stated, side, choose)
            if ours != expected:
                yield f"{side} {ours}, AWS {expected}"
    elif isinstance(limit, Choice):
        enums = [set(each["enum"]) for each in facts(stated) if each["enum"]]
        if set(limit.values) != set.intersection(*enums):
            yield f"{limit.values}, AWS {enums}"
    else:
        longest = tightest(stated, "maximum", min)
        if limit.max_length != longest:
            yield f"at most {limit.max_length} characters, AWS {longest}"
        assert any(allowed(stated, text) for text in stated.good), "no good example"
        for text in samples(stated.good):
            if len(text) <= (limit.max_length or 0) and limit.holds(text) != allowed(stated, text):
                yield f"{text!r}: {limit.holds(text)}, AWS {allowed(stated, text)}"


@cache
def all_limits() -> dict[str, Limit]:
    """The limits of every module of facts/, options/ and plan/, by name."""
    found: dict[str, Limit] = {}
    for module in (
        f"low_latency_endpoint.{room}.{each.name}"
        for room in ("facts", "options", "plan")
        for each in pkgutil.iter_modules(
            importlib.import_module(f"low_latency_endpoint.{room}").__path__
        )
    ):
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, (Range, Pattern, Choice)):
                assert found.setdefault(name, value) is value, f"two limits are called {name}"
    return found


def test_every_limit_has_a_shape_or_a_reason() -> None:
    known = {*STATED, *NOT_STATED}
    assert sorted(all_limits().keys() - known) == [], (
        "add them to STATED of this file, with botocore's shape and CloudFormation's path, or to "
        "NOT_STATED, with the reason why no model states them"
    )
    assert sorted(known - all_limits().keys()) == [], "take them from STATED or NOT_STATED here"
    assert not STATED.keys() & NOT_STATED.keys()


def test_a_limit_that_is_said_to_have_a_test_below_has_one() -> None:
    below = Path(__file__).read_text(encoding="utf-8").partition("\ndef test_")[2]
    forgotten = [
        name
        for name, reason in NOT_STATED.items()
        if reason == _TEXT and f"limits.{name}" not in below and f'"{name}"' not in below
    ]
    assert forgotten == [], "write the test of the documentation's words at the end of this file"


@pytest.mark.parametrize("name", STATED)
def test_no_limit_is_stricter_or_laxer_than_aws(name: str) -> None:
    assert list(differences(all_limits()[name], STATED[name])) == []


@pytest.mark.parametrize("name", STATED)
def test_what_is_stricter_or_laxer_is_found(name: str) -> None:
    """The comparison itself: each limit, moved by one in each direction that it has."""
    limit, moved = all_limits()[name], []
    if isinstance(limit, Range):
        for side in ("minimum", "maximum"):
            value = getattr(limit, side)
            moved += [replace(limit, **{side: (value or 0) + by}) for by in (-1, 1)]
            moved += [replace(limit, **{side: None})] if value is not None else []
    elif isinstance(limit, Choice):
        moved = [
            replace(limit, values=limit.values[1:]),
            replace(limit, values=(*limit.values, "X")),
        ]
    else:
        moved = [replace(limit, max_length=(limit.max_length or 0) + by) for by in (-1, 1)]
        moved += [
            replace(limit, regex=rf"(?!.*[a]){limit.regex}"),
            replace(limit, regex=r"(?s:.*)"),
        ]
    for other in moved:
        assert any(differences(other, STATED[name])), other


def test_the_reservations_pattern_of_before_is_found() -> None:
    """It had [a-z-] where AWS has [a-z0-9-]: refused what AWS takes."""
    limit = limits.CAPACITY_RESERVATION_ARN
    before = replace(limit, regex=limit.regex.replace(r":[a-z0-9\-]{1,14}", r":[a-z\-]{1,14}"))
    assert before.regex != limit.regex
    assert any(
        "False, AWS True" in each
        for each in differences(before, STATED["CAPACITY_RESERVATION_ARN"])
    )


def test_tags_take_the_characters_of_all_scripts_that_aws_takes() -> None:
    r"""AWS: \p{L}, \p{Z}, \p{N} and _.:/=+-@; no tab, no line end, no combining mark."""
    for code in range(0x110000):
        letter = chr(code)
        taken = unicodedata.category(letter)[0] in "LZN" or letter in "_.:/=+-@"
        assert limits.TAG_VALUE.holds(letter) == taken, hex(code)


def test_instance_types_have_the_form_of_the_limit() -> None:
    assert all(
        map(limits.INSTANCE_TYPE.holds, model().shape_for("ProductionVariantInstanceType").enum)
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("CANARY_PERCENT", "less than or equal to 50%"), ("LINEAR_STEP_PERCENT", "10-50%")],
)
def test_percentages_of_the_documentation(name: str, words: str) -> None:
    limit = getattr(limits, name)
    members = model().shape_for("TrafficRoutingConfig").members
    member = members["CanarySize" if name == "CANARY_PERCENT" else "LinearStepSize"]
    assert words in re.sub(r"<[^>]+>", "", member.documentation)
    assert str(limit.maximum) in words


def test_rolling_batch_of_the_documentation() -> None:
    member = model().shape_for("RollingUpdatePolicy").members["MaximumBatchSize"]
    assert re.search(r"\b5%.* 50%", re.sub(r"<[^>]+>", "", member.documentation))
    assert (limits.ROLLING_BATCH_PERCENT.minimum, limits.ROLLING_BATCH_PERCENT.maximum) == (5, 50)


def test_environment_of_all_containers_of_the_documentation() -> None:
    words = shape("ContainerDefinition.Environment").documentation
    assert "combined, is 32 KB" in words
    assert limits.ENVIRONMENT_TOTAL_BYTES.maximum == 32 * 1024
