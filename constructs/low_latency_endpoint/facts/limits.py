"""Limits that AWS sets on the properties this library takes, each once, with its source.

The numbers come from botocore's service model (``sagemaker`` 2017-07-24,
``application-autoscaling`` 2016-02-06) and AWS's developer guides; the ``source`` of each limit is
the API page that states it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import rule
from .instance_types import mistyped
from .limit_kinds import (
    USE_AN_ALLOWED_VALUE,
    Choice,
    Limit,
    Pattern,
    Range,
    number_range,
    one_of,
    text_form,
)

API = "/sagemaker/latest/APIReference/API_"
GUIDE = "/sagemaker/latest/dg/"
_CONTAINER = API + "ContainerDefinition.html"
_VARIANT = API + "ProductionVariant.html"
_ROUTING = API + "ProductionVariantRoutingConfig.html"
_CAPTURE = API + "DataCaptureConfig.html"
_TRAFFIC = API + "TrafficRoutingConfig.html"
_BLUE_GREEN = API + "BlueGreenUpdatePolicy.html"
_TARGET_TRACKING = (
    "/autoscaling/application/APIReference/API_TargetTrackingScalingPolicyConfiguration.html"
)
_ALARM = "/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"

LARGEST_BODY_BYTES = 25 * 1024 * 1024  # the guide's "25 MB", read generously
MODEL_BODY_BYTES = 6_291_456  # the API model's maximum
HIGHEST_RATE = 1_000_000_000  # our own: far above every endpoint, and a plan can calculate with it
SAGEMAKER_NAME = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
_BUCKET_PATH = r"[a-z0-9][a-z0-9.\-]{2,62}/.+"
NAME_FORM = "letters, digits and inner hyphens"

REGION = text_form(
    "LLE913",
    "the region",
    r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}",
    "a region's code such as us-east-1",
    source="/general/latest/gr/rande.html",
)
ACCOUNT = text_form(
    "LLE914",
    "the account",
    r"\d{12}",
    "twelve digits",
    fix='Write all twelve, in quotes: "012345678901".',
    source="/accounts/latest/reference/manage-acct-identifiers.html",
)

# --- 1 network ---------------------------------------------------------------------------------
ZONE_ID = text_form(
    "LLE101",
    "an Availability Zone ID",
    r"[a-z]{2,5}\d-(?:[a-z]{3}\d-)?az\d{1,2}",
    "an ID such as use1-az4",
    fix="Write IDs such as use1-az4, or state all zones by name, such as us-east-1a, under names.",
    source="/ram/latest/userguide/working-with-az-ids.html",
)
ZONE_NAME = text_form(
    "LLE102",
    "an Availability Zone name",
    r"[a-z]{2,4}(?:-[a-z]+)+-\d(?:-[a-z]{3}-\d)?[a-z]",
    "a name such as us-east-1a",
    fix="Write names such as us-east-1a, or state all zones by ID, such as use1-az4, under ids.",
    source="/AWSEC2/latest/UserGuide/using-regions-availability-zones.html",
)
CLIENT_ZONE_COUNT = number_range(
    "LLE103",
    "the number of client zones",
    2,
    16,
    source=GUIDE + "host-vpc.html",
    fix="Name at least two zones, even for one instance.",
)
VPC_PREFIX_LENGTH = number_range(
    "LLE104", "the VPC's prefix length", 16, 28, source="/vpc/latest/userguide/vpc-cidr-blocks.html"
)
SUBNET_PREFIX_LENGTH = number_range(
    "LLE105",
    "the subnets' prefix length",
    16,
    28,
    source="/vpc/latest/userguide/subnet-sizing.html",
)
MAX_INSTANCES = number_range("LLE106", "the largest number of instances", 1, None, source=_VARIANT)

# --- 2 PrivateLink -----------------------------------------------------------------------------
# A policy takes 20,480 characters: so many buckets fit, read and written, with names of 63.
S3_POLICY_BUCKETS = number_range(
    "LLE340",
    "the number of buckets that the S3 gateway endpoint's policy names",
    0,
    50,
    source="/vpc/latest/privatelink/vpc-limits-endpoints.html",
    fix="Use fewer buckets, or an existing VPC with your own endpoints.",
)

ORGANIZATION = text_form(
    "LLE224",
    "the organization's ID",
    r"o-[a-z0-9]{10,32}",
    "o- and 10 to 32 lower-case letters and digits",
    source="/organizations/latest/APIReference/API_Organization.html",
)

# --- 3 model -----------------------------------------------------------------------------------
MODEL_NAME = text_form(
    "LLE373",
    "the model name",
    r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?",
    NAME_FORM,
    max_length=63,
    source=API + "CreateModel.html",
)
MODEL_PACKAGE = text_form(
    "LLE374",
    "the model package",
    r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*\/)?"
    r"([a-zA-Z0-9]([a-zA-Z0-9-]){0,62})(?<!-)(\/[0-9]{1,9})?",
    "arn:aws:sagemaker:<region>:<account>:model-package/<group>/<version>, or the package's name",
    max_length=176,
    source=API + "ContainerDefinition.html",
    has_home=True,
)
CONTAINER_COUNT = number_range(
    "LLE301", "the number of containers", 1, 15, source=API + "CreateModel.html"
)
IMAGE_URI = text_form(
    "LLE302",
    "the image URI",
    r"\S+",
    "text without white space, registry/repository[:tag] or @digest",
    max_length=255,
    source=_CONTAINER,
    has_home=True,
)
CONTAINER_HOSTNAME = text_form(
    "LLE303", "the container hostname", SAGEMAKER_NAME, NAME_FORM, max_length=63, source=_CONTAINER
)
MODEL_DATA_URI = text_form(
    "LLE304",
    "the model data URI",
    r"(https|s3)://[^/]+/?.*",
    "an s3:// or https:// URI",
    max_length=1024,
    fix="Upload the file to S3 and write s3://<bucket>/<key>. In Python, use "
    "ModelData.from_asset(path).",
    prefix="s3://",
    bare=_BUCKET_PATH,
    source=_CONTAINER,
)
ENVIRONMENT_ENTRIES = number_range(
    "LLE305", "the number of environment entries", 0, 100, source=_CONTAINER
)
ENVIRONMENT_KEY = text_form(
    "LLE306",
    "an environment key",
    r"[a-zA-Z_][a-zA-Z0-9_]*",
    "letters, digits and underscores, not starting with a digit",
    max_length=1024,
    source=_CONTAINER,
)
ENVIRONMENT_VALUE_BYTES = number_range(
    "LLE307", "the size of an environment value", 0, 1024, unit="bytes", source=_CONTAINER
)
ENVIRONMENT_TOTAL_BYTES = number_range(
    "LLE308",
    "the size of all containers' environments",
    0,
    32 * 1024,
    unit="bytes",
    source=_CONTAINER,
)
INFERENCE_MODE = one_of(
    "LLE309",
    "the inference execution mode",
    ("Serial", "Direct"),
    source=API + "InferenceExecutionConfig.html",
)
MODEL_SECURITY_GROUPS = number_range(
    "LLE310", "the number of security groups of the model", 1, 5, source=API + "VpcConfig.html"
)
ARCHITECTURE = one_of("LLE311", "the instances' architecture", ("x86_64", "arm64"))
IMAGE_PLATFORM = one_of(
    "LLE312", "the platform that an image is built for", ("linux/amd64", "linux/arm64"), source=""
)

# --- 4 variants and endpoint configuration -----------------------------------------------------
VARIANT_COUNT = number_range(
    "LLE401", "the number of production variants", 1, 10, source=API + "CreateEndpointConfig.html"
)
VARIANT_NAME = text_form(
    "LLE402", "the variant name", SAGEMAKER_NAME, NAME_FORM, max_length=63, source=_VARIANT
)
INITIAL_INSTANCE_COUNT = number_range(
    "LLE403",
    "the initial instance count",
    1,
    None,
    source=_VARIANT,
    fix="Only inference components scale to zero.",
)
VARIANT_WEIGHT = number_range("LLE404", "the variant weight", 0, None, whole=False, source=_VARIANT)


class _InstanceType(Pattern):
    """Also of a type that is not known, but not a known one with a letter too many or too few."""

    __slots__ = ()

    def holds(self, value: Any) -> bool:
        """Whether the value is of the form, and no slip of the keyboard."""
        return Pattern.holds(self, value) and mistyped(value) is None

    def _meant(self, value: Any) -> Iterator[str]:
        """The known type that is a letter away."""
        if Pattern.holds(self, value):
            yield mistyped(value) or ""
        yield from Pattern._meant(self, value)


INSTANCE_TYPE = _InstanceType(
    rule("LLE405", "the instance type is not valid", fix=USE_AN_ALLOWED_VALUE, source=_VARIANT),
    "the instance type",
    r"ml\.[a-z0-9-]+\.[a-z0-9-]+",
    "ml.<family>.<size>, such as ml.g5.xlarge",
    prefix="ml.",
)
CONTAINER_STARTUP_SECONDS = number_range(
    "LLE406",
    "the container startup health check timeout",
    60,
    3600,
    unit="seconds",
    source=_VARIANT,
)
MODEL_DOWNLOAD_SECONDS = number_range(
    "LLE407", "the model data download timeout", 60, 3600, unit="seconds", source=_VARIANT
)
VOLUME_SIZE = number_range("LLE408", "the volume size", 1, 512, unit="GiB", source=_VARIANT)
INFERENCE_AMI = one_of(
    "LLE409",
    "the inference AMI version",
    (
        "al2-ami-sagemaker-inference-gpu-2",
        "al2-ami-sagemaker-inference-gpu-2-1",
        "al2-ami-sagemaker-inference-gpu-3-1",
        "al2023-ami-sagemaker-inference-gpu-4-1",
        "al2-ami-sagemaker-inference-neuron-2",
    ),
    source=_VARIANT,
    fix="State a newer version as custom.",
)
ROUTING_STRATEGY = one_of(
    "LLE410",
    "the routing strategy",
    ("LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"),
    source="/AWSCloudFormation/latest/TemplateReference/"
    "aws-properties-sagemaker-endpointconfig-productionvariant-routingconfig.html",
    fix="Use an allowed strategy, or RoutingStrategy.custom(...) for one that CloudFormation takes since. "
    "It does not take KV_AWARE, which exists in the API only.",
)
PREFIX_LENGTH = number_range(
    "LLE411", "the prefix length", 1024, 65536, unit="bytes", source=_ROUTING
)
CONCURRENCY_THRESHOLD = number_range(
    "LLE412", "the concurrency threshold", 1, 1024, unit="requests", source=_ROUTING
)
INSTANCE_POOL_COUNT = number_range("LLE413", "the number of instance pools", 1, 5, source=_VARIANT)
INSTANCE_POOL_PRIORITY = number_range(
    "LLE414", "the priority of an instance pool", 1, 5, source=_VARIANT
)
PROVISION_SECONDS = number_range(
    "LLE415", "the instance provision timeout", 300, 3600, unit="seconds", source=_VARIANT
)
SAMPLING_PERCENTAGE = number_range(
    "LLE416", "the data capture sampling", 0, 100, unit="percent", source=_CAPTURE
)
METRIC_FREQUENCY = one_of(
    "LLE417",
    "the metric publish frequency in seconds",
    (10, 30, 60, 120, 180, 240, 300),
    source=API + "MetricsConfig.html",
)
# The API's own pattern lets https:// through, for which no role could be given its rights.
S3_URI = text_form(
    "LLE418",
    "the S3 destination",
    r"s3://[^/]+/?.*",
    "an s3:// URI",
    max_length=512,
    prefix="s3://",
    bare=_BUCKET_PATH,
    source=_CAPTURE,
)
CAPTURE_MODE = one_of(
    "LLE427", "the mode of data capture", ("input", "output"), source=API + "CaptureOption.html"
)
CAPTURE_COUNT = number_range(
    "LLE428",
    "the number of capture options",
    1,
    32,
    source=_CAPTURE,
    fix="Give input, output or both, or leave data capture out.",
)
CAPTURE_CONTENT_TYPE = text_form(
    "LLE429",
    "a content type of data capture",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9])*\/"
    r"[a-zA-Z0-9](-*[a-zA-Z0-9.])*",
    "type/subtype, such as application/json",
    max_length=256,
    source=API + "CaptureContentTypeHeader.html",
)
CAPTURE_CONTENT_TYPE_COUNT = number_range(
    "LLE430",
    "the number of content types of data capture",
    1,
    10,
    source=API + "CaptureContentTypeHeader.html",
)
CAPACITY_RESERVATION_ARN = text_form(
    "LLE419",
    "the capacity reservation's ARN",
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z0-9\-]{1,14}/.*",
    "the ARN of an ML reservation, arn:aws:sagemaker:<region>:<account>:training-plan/<name>",
    max_length=258,
    source=API + "ProductionVariantCapacityReservationConfig.html",
    has_home=True,
)

PAYLOAD = Range(
    rule(
        "LLE820",
        "the payload is larger than SageMaker accepts",
        fix="Send a reference to data in S3, compress it, or use an asynchronous endpoint.",
        source=GUIDE + "deploy-model-options.html",
    ),
    "the payload",
    0,
    LARGEST_BODY_BYTES,
    "bytes",
)

# --- 5 endpoint and deployments ----------------------------------------------------------------
ENDPOINT_NAME = text_form(
    "LLE501",
    "the endpoint name",
    SAGEMAKER_NAME,
    NAME_FORM,
    max_length=63,
    source=API + "CreateEndpoint.html",
)
ENDPOINT_CONFIG_NAME = text_form(
    "LLE375",
    "the endpoint configuration's name",
    SAGEMAKER_NAME,
    NAME_FORM,
    max_length=63,
    source=API + "CreateEndpointConfig.html",
)
ENDPOINT_ARN = text_form(
    "LLE513",
    "the endpoint's ARN",
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:endpoint/.+",
    "arn:aws:sagemaker:<region>:<account>:endpoint/<name>",
    max_length=2048,
    source=API + "DescribeEndpoint.html",
)
PARAMETER_PREFIX = text_form(
    "LLE570",
    "the prefix of the SSM parameters",
    # Below it come up to three levels of the fifteen.
    r"(?!/(?:[aA][wW][sS]|[sS][sS][mM]))(?:/[a-zA-Z0-9_.\-]+){1,12}",
    "up to twelve names of letters, digits, _ . and -, each after a /, the first not beginning "
    "with aws or ssm, such as /low-latency/sentiment",
    max_length=800,
    source="/systems-manager/latest/APIReference/API_PutParameter.html",
)
TRAFFIC_WAIT_SECONDS = number_range(
    "LLE502", "the wait between traffic shifts", 0, 3600, unit="seconds", source=_TRAFFIC
)
CANARY_PERCENT = number_range(
    "LLE503", "the canary size", 1, 50, unit="percent of capacity", source=_TRAFFIC
)
LINEAR_STEP_PERCENT = number_range(
    "LLE504", "the linear step size", 10, 50, unit="percent of capacity", source=_TRAFFIC
)
ROLLING_BATCH_PERCENT = number_range(
    "LLE505",
    "the rolling batch size",
    5,
    50,
    unit="percent of capacity",
    source=API + "RollingUpdatePolicy.html",
)
TERMINATION_WAIT_SECONDS = number_range(
    "LLE506", "the wait before the old fleet ends", 0, 3600, unit="seconds", source=_BLUE_GREEN
)
MAXIMUM_EXECUTION_SECONDS = number_range(
    "LLE507", "the longest deployment time", 600, 28800, unit="seconds", source=_BLUE_GREEN
)
ROLLBACK_ALARM_COUNT = number_range(
    "LLE508",
    "the number of rollback alarms",
    1,
    10,
    source=API + "AutoRollbackConfig.html",
    fix="State fewer statistics in model_latency of the alarms, or fewer variants: each has an alarm "
    "for each statistic, and one for errors. Without rollback_on_alarms, all of them still notify.",
)
TAG_COUNT = number_range("LLE509", "the number of tags", 0, 50, source=API + "Tag.html")
# AWS's [\p{L}\p{Z}\p{N}_.:/=+\-@]: letters, separators and numbers of all scripts, and of white
# space no tabs and line ends.
_TAG_TEXT = r"(?:(?![\t-\r\x1c-\x1f\x85])[\w\s.:/=+\-@])"
TAG_KEY = text_form(
    "LLE510",
    "a tag's key",
    rf"(?![aA][wW][sS]:){_TAG_TEXT}+",
    "letters, digits, spaces and _ . : / = + - @, not starting with aws:",
    max_length=128,
    source=API + "Tag.html",
    unicode=True,
)
TAG_VALUE = text_form(
    "LLE511",
    "a tag's value",
    f"{_TAG_TEXT}*",
    "letters, digits, spaces and _ . : / = + - @",
    max_length=256,
    source=API + "Tag.html",
    unicode=True,
)

# --- 6 scaling ---------------------------------------------------------------------------------
MIN_CAPACITY = number_range(
    "LLE601",
    "the minimum number of instances",
    1,
    None,
    source=GUIDE + "endpoint-auto-scaling-prerequisites.html",
)
SCALING_TARGET = number_range(
    "LLE602",
    "the scaling target value",
    8.515920e-109,
    1.174271e108,
    whole=False,
    source=_TARGET_TRACKING,
)
TPS_PER_INSTANCE = number_range(
    "LLE603",
    "the measured requests per second of one instance",
    1e-6,
    HIGHEST_RATE,
    whole=False,
    fix="Give one instance's throughput within the latency target.",
)
CONCURRENCY_PER_INSTANCE = number_range(
    "LLE896",
    "the measured requests in flight on one instance",
    1e-6,
    HIGHEST_RATE,
    unit="requests in flight",
    whole=False,
    fix="Give the average requests in flight on one instance at its tps_per_instance, "
    "from a load test.",
)
SAFETY_FACTOR = number_range(
    "LLE604",
    "the safety factor",
    0.01,
    1,
    whole=False,
    source=GUIDE + "endpoint-scaling-loadtest.html",
    fix="Give the share of measured throughput to aim at. AWS starts at 0.5.",
)
COOLDOWN_SECONDS = number_range(
    "LLE605", "the cooldown", 0, None, unit="seconds", source=_TARGET_TRACKING
)
PEAK_TPS = number_range("LLE606", "the peak requests per second", 1e-6, HIGHEST_RATE, whole=False)
FROM_TPS = number_range(
    "LLE607",
    "the rate from which traffic jumps to the peak",
    0,
    None,
    unit="requests per second",
    whole=False,
    fix="Give the lowest rate before a jump: 0 is a cold start.",
)
RISE_TPS = number_range(
    "LLE608",
    "the rise of traffic in a minute",
    0,
    HIGHEST_RATE,
    unit="requests per second each minute",
    whole=False,
)
INSTANCE_START_SECONDS = number_range(
    "LLE610",
    "the start time of an instance",
    1,
    4 * 3600,
    unit="seconds",
    fix="Give the time from scaling decision to service. See low-latency diagnose and "
    "InvocationsPerInstance.",
)

# --- 7 metrics and alarms ----------------------------------------------------------------------
ALARM_THRESHOLD_MILLISECONDS = number_range(
    "LLE701", "the latency threshold", 1e-3, None, unit="milliseconds", whole=False, source=_ALARM
)
EVALUATION_PERIODS = number_range(
    "LLE702", "the number of evaluation periods", 1, 1440, source=_ALARM
)
ALARM_PERIOD = number_range(
    "LLE738", "the period of the alarms", 60, 604_800, unit="seconds", source=_ALARM
)
ERROR_RATE = number_range(
    "LLE703", "the error rate", 1e-6, 1, whole=False, fix="Give a share of requests: 0.01 is 1%."
)
MINIMUM_INVOCATIONS = number_range("LLE704", "the least number of invocations", 0, None)
MINIMUM_FAILURES = number_range("LLE571", "the least number of failures", 1, None)


def limits() -> dict[str, Limit]:
    """All limits by their constant's name."""
    return {
        name: value
        for name, value in globals().items()
        if name.isupper() and isinstance(value, (Range, Pattern, Choice))
    }
