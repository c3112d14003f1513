"""The limits against the shapes of AWS's own API models, wherever those state the same fact."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import botocore.session
import pytest

from low_latency_endpoint.plan import limits
from low_latency_endpoint.plan.limits import Choice, Pattern, Range

# Limit -> path into the model: shape, then members; [] is an item, {} a value, {k} a key.
RANGES = {
    "CONTAINER_COUNT": "CreateModelInput.Containers",
    "ENVIRONMENT_ENTRIES": "ContainerDefinition.Environment",
    "ENVIRONMENT_VALUE_BYTES": "ContainerDefinition.Environment.{}",
    "MODEL_SECURITY_GROUPS": "VpcConfig.SecurityGroupIds",
    "VARIANT_COUNT": "CreateEndpointConfigInput.ProductionVariants",
    "INITIAL_INSTANCE_COUNT": "ProductionVariant.InitialInstanceCount",
    "VARIANT_WEIGHT": "ProductionVariant.InitialVariantWeight",
    "CONTAINER_STARTUP_SECONDS": "ProductionVariant.ContainerStartupHealthCheckTimeoutInSeconds",
    "MODEL_DOWNLOAD_SECONDS": "ProductionVariant.ModelDataDownloadTimeoutInSeconds",
    "VOLUME_SIZE": "ProductionVariant.VolumeSizeInGB",
    "PREFIX_LENGTH": "PrefixAwareRoutingConfig.PrefixLength",
    "CONCURRENCY_THRESHOLD": "PrefixAwareRoutingConfig.ConcurrencyThreshold",
    "INSTANCE_POOL_COUNT": "ProductionVariant.InstancePools",
    "INSTANCE_POOL_PRIORITY": "InstancePool.Priority",
    "PROVISION_SECONDS": "ProductionVariant.VariantInstanceProvisionTimeoutInSeconds",
    "SAMPLING_PERCENTAGE": "DataCaptureConfig.InitialSamplingPercentage",
    "TRAFFIC_WAIT_SECONDS": "TrafficRoutingConfig.WaitIntervalInSeconds",
    "TERMINATION_WAIT_SECONDS": "BlueGreenUpdatePolicy.TerminationWaitInSeconds",
    "MAXIMUM_EXECUTION_SECONDS": "BlueGreenUpdatePolicy.MaximumExecutionTimeoutInSeconds",
    "ROLLBACK_ALARM_COUNT": "AutoRollbackConfig.Alarms",
    "TAG_COUNT": "CreateEndpointInput.Tags",
    "CAPTURE_COUNT": "DataCaptureConfig.CaptureOptions",
    "CAPTURE_CONTENT_TYPE_COUNT": "CaptureContentTypeHeader.JsonContentTypes",
}
# The library asks for more than the API where the API's own minimum makes no sense here.
STRICTER_MINIMUM = {"CONTAINER_COUNT": 1}

PATTERNS = {
    "IMAGE_URI": "ContainerDefinition.Image",
    "CONTAINER_HOSTNAME": "ContainerDefinition.ContainerHostname",
    "MODEL_DATA_URI": "ContainerDefinition.ModelDataUrl",
    "ENVIRONMENT_KEY": "ContainerDefinition.Environment.{k}",
    "VARIANT_NAME": "ProductionVariant.VariantName",
    "ENDPOINT_NAME": "CreateEndpointInput.EndpointName",
    "CAPTURE_CONTENT_TYPE": "JsonContentType",
}
CHOICES = {
    "INFERENCE_MODE": "InferenceExecutionConfig.Mode",
    "INFERENCE_AMI": "ProductionVariant.InferenceAmiVersion",
    "CAPTURE_MODE": "CaptureOption.CaptureMode",
}


@cache
def model(service: str = "sagemaker") -> Any:
    return botocore.session.get_session().get_service_model(service)


def shape(path: str) -> Any:
    name, *members = path.split(".")
    found = model().shape_for(name)
    for member in members:
        if member == "{k}":
            found = found.key
        elif member == "{}":
            found = found.value
        else:
            found = found.members[member]
    return found


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name: str) -> None:
    limit = getattr(limits, name)
    stated = shape(RANGES[name])
    assert isinstance(limit, Range)
    assert limit.maximum == stated.metadata.get("max")
    assert limit.minimum == STRICTER_MINIMUM.get(name, stated.metadata["min"])
    assert limit.whole == (stated.type_name not in ("float", "double"))


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str) -> None:
    limit = getattr(limits, name)
    stated = shape(PATTERNS[name]).metadata
    assert isinstance(limit, Pattern)
    assert limit.max_length == stated["max"]
    samples = [
        "a",
        "a-b",
        "a--b",
        "-a",
        "a-",
        "a_b",
        "a.b",
        "A9",
        "9",
        "_k",
        "",
        " ",
        "a b",
        "s3://b",
        "s3://b/k/",
        "https://h/p",
        "http://h/p",
        "s3:///k",
        "x" * 63,
        "x" * 64,
        "text/csv",
        "a/b.c",
        "a/b;c",
        "application/vnd.ms-x",
        "x" * 255,
        "x" * 256,
        "k" * 1024,
        "k" * 1025,
        "123.dkr.ecr.r.amazonaws.com/a:b",
    ]
    for sample in samples:
        allowed = len(sample) <= stated["max"] and re.fullmatch(stated["pattern"], sample)
        assert limit.holds(sample) == bool(allowed), sample


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str) -> None:
    limit = getattr(limits, name)
    assert isinstance(limit, Choice)
    assert set(limit.values) == set(shape(CHOICES[name]).enum)


def test_routing_strategies_but_the_one_that_cloudformation_lacks() -> None:
    assert {*limits.ROUTING_STRATEGY.values, "KV_AWARE"} == set(
        model().shape_for("RoutingStrategy").enum
    )


def test_instance_types_have_the_form_of_the_limit() -> None:
    assert all(
        map(limits.INSTANCE_TYPE.holds, model().shape_for("ProductionVariantInstanceType").enum)
    )


def test_client_zones_are_no_more_than_the_models_subnets() -> None:
    assert limits.CLIENT_ZONE_COUNT.maximum == shape("VpcConfig.Subnets").metadata["max"]


def test_publish_frequencies_are_those_of_the_documentation() -> None:
    words = model().shape_for("MetricsConfig").members["MetricPublishFrequencyInSeconds"]
    for seconds in limits.METRIC_FREQUENCY.values:
        assert re.search(rf"\b{seconds}\b", words.documentation), seconds


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
