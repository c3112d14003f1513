"""Requests to Inference Recommender: pure functions from options to what boto3 sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from ...errors import rule
from ...plan.images import check_image_runs_on
from ...plan.instance_types import instance_facts
from ...plan.limits import API, GUIDE, INSTANCE_TYPE, Pattern, Range
from ...plan.recommendation_limits import MAX_TYPES, TRAFFIC_RULE, TYPES_TO_TRY
from ...settings import EndpointSettings
from ...settings.plans import images_of
from .container import ContainerDescription
from .jobs import INFERENCE, JobKind
from .threshold import STOPPING, LatencyThreshold
from .traffic import DEFAULT_TRAFFIC, Traffic, seconds_of_traffic, traffic_request

JOB_NAME = Pattern(
    rule(
        "LLR101",
        "the name of a recommendation job has a form that AWS refuses",
        fix="Choose another --job-name, or leave it out.",
        source=API + "CreateInferenceRecommendationsJob.html",
    ),
    "the job's name",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
    "letters, digits and inner hyphens, at most 63 characters",
)
JOB_ROLE = Pattern(
    rule(
        "LLR102",
        "a recommendation job needs a role that makes endpoints in your name",
        fix="Pass --role-arn. The deployed model's own role may only fetch its model; AWS asks "
        "for one with AmazonSageMakerFullAccess and access to the payload.",
        source=GUIDE + "inference-recommender-prerequisites.html",
    ),
    "the role's ARN",
    r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+",
    "an ARN such as arn:aws:iam::123456789012:role/recommender",
    max_length=2048,
)
MODEL_TO_TEST = rule(
    "LLR103",
    "a recommendation job tests one model that exists",
    fix="Deploy the stack first (make deploy), or pass --model-name or --model-package-arn.",
    source=API + "RecommendationJobInputConfig.html",
)
JOB_SECONDS = Range(STOPPING, "the job's duration limit", 1, 18_000, "seconds")
MAX_INVOCATIONS = Range(STOPPING, "the most requests per minute", 1, 30_000, "requests per minute")
MAX_PARALLEL = Range(STOPPING, "the tests at the same time", 1, 10)
MAX_TESTS = Range(STOPPING, "the number of tests", 1, 10)
TAGS = [{"Key": "created-by", "Value": "low-latency-endpoint"}]


@dataclass(frozen=True, slots=True)
class VpcConfig:
    """Where the endpoints under test get their network interfaces."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]

    def request(self) -> dict[str, Any]:
        """As the API names it."""
        return {"SecurityGroupIds": list(self.security_group_ids), "Subnets": list(self.subnet_ids)}


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The model under test: its name in SageMaker, or a version in the model registry.

    ``vpc`` is ``None`` for endpoints under test outside any VPC.

    Raises
    ------
    ConfigurationError
        LLR103 unless exactly one is given.
    """

    model_name: str | None = None
    model_package_arn: str | None = None
    vpc: VpcConfig | None = None

    def __post_init__(self) -> None:
        if (self.model_name is None) == (self.model_package_arn is None):
            raise MODEL_TO_TEST.error(
                got="both" if self.model_name else "neither",
                allowed="a model's name or a model package's ARN",
            )

    def request(self) -> dict[str, Any]:
        """As the API names it."""
        found: dict[str, Any] = {"ModelPackageVersionArn": self.model_package_arn}
        if self.model_name is not None:
            found = {"ModelName": self.model_name}
        return found if self.vpc is None else {**found, "VpcConfig": self.vpc.request()}


@dataclass(frozen=True, slots=True)
class LoadTest:
    """What an Advanced job does beyond a Default one.

    Parameters
    ----------
    threshold : LatencyThreshold
        A test ends when the model's latency reaches it.
    traffic : tuple of Phase, or Stairs
        By default one user and three more each minute, for ten minutes.
    max_invocations : int
        A test ends at this many requests per minute. By default 30,000, the most.
    max_seconds : int
        AWS stops the job after this time, whatever is done by then. By default two hours.
    max_parallel : int
        Tests at the same time, each on an endpoint of its own. By default 3.
    continue_when_flat : bool
        Go on when the rate no longer rises with more users. By default the test ends there.
    environment : mapping of str to sequence of str
        Environment variables of the container to try with several values: each combination is a
        test of each type.

    Raises
    ------
    ConfigurationError
        LLR105, LLR106.
    """

    threshold: LatencyThreshold
    traffic: Traffic = DEFAULT_TRAFFIC
    max_invocations: int = 30_000
    max_seconds: int = 7200
    max_parallel: int = 3
    continue_when_flat: bool = False
    environment: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        MAX_INVOCATIONS.check(self.max_invocations, "--max-invocations")
        JOB_SECONDS.check(self.max_seconds, "--max-duration")
        MAX_PARALLEL.check(self.max_parallel, "--max-parallel")
        if not self.traffic:
            raise TRAFFIC_RULE.error(got="no phase", allowed="one phase or several, or stairs")
        if seconds_of_traffic(self.traffic) > self.max_seconds:
            raise TRAFFIC_RULE.error(
                got=f"{seconds_of_traffic(self.traffic)} seconds of traffic",
                allowed=f"at most the job's duration limit, {self.max_seconds} seconds",
            )
        for name, values in self.environment.items():
            if not (1 <= len(values) <= 3 and len(self.environment) <= 5):
                raise TYPES_TO_TRY.error(
                    got=f"{name}={','.join(values)}",
                    where="--vary",
                    allowed="at most five variables with one to three values each",
                    fix="Try fewer values, in several jobs.",
                )

    def tests(self, instance_types: Sequence[str]) -> int:
        """How many tests the job makes."""
        return len(instance_types) * prod(map(len, self.environment.values()))


@dataclass(frozen=True, slots=True)
class RecommendationRequest:
    """All of a job.

    Parameters
    ----------
    job_name, role_arn : str
    model : ModelSource
    container : ContainerDescription
    sample_payload : str
        The URI of a ``.tar.gz`` in S3.
    content_type : str
        What the payload holds.
    instance_types : tuple of str
        A Default job without any lets AWS choose.
    load_test : LoadTest, optional
        Makes it an Advanced job. By default it is a Default one.
    """

    job_name: str
    role_arn: str
    model: ModelSource
    container: ContainerDescription
    sample_payload: str
    content_type: str
    instance_types: tuple[str, ...] = ()
    load_test: LoadTest | None = None
    kind: ClassVar[JobKind[Any]] = INFERENCE

    @property
    def job_type(self) -> str:
        """The API's word for the kind of job."""
        return "Advanced" if self.load_test else "Default"

    def request(self) -> dict[str, Any]:
        """What ``create_inference_recommendations_job`` is called with.

        Raises
        ------
        ConfigurationError
            LLR101 for the job's name, LLR102 for the role, LLR104 for the instance types, LLR106 for
            more tests than a job makes.
        """
        JOB_NAME.check(self.job_name, "--job-name")
        JOB_ROLE.check(self.role_arn, "--role-arn")
        self._check_count()
        container = self.container.request()
        container["PayloadConfig"] = {
            "SamplePayloadUrl": self.sample_payload,
            "SupportedContentTypes": [self.content_type],
        }
        container["SupportedEndpointType"] = "RealTime"
        if self.instance_types and self.load_test is None:
            container["SupportedInstanceTypes"] = list(self.instance_types)
        configuration: dict[str, Any] = {**self.model.request(), "ContainerConfig": container}
        request: dict[str, Any] = {
            "JobName": self.job_name,
            "JobType": self.job_type,
            "RoleArn": self.role_arn,
            "InputConfig": configuration,
            "Tags": TAGS,
        }
        if self.load_test is not None:
            configuration |= _load_test(self.load_test, self.instance_types)
            request["StoppingConditions"] = {
                "MaxInvocations": self.load_test.max_invocations,
                "ModelLatencyThresholds": [
                    {
                        "Percentile": self.load_test.threshold.percentile,
                        "ValueInMilliseconds": self.load_test.threshold.milliseconds,
                    }
                ],
                "FlatInvocations": "Continue" if self.load_test.continue_when_flat else "Stop",
            }
        return request

    def _check_count(self) -> None:
        if self.load_test is not None and not self.instance_types:
            raise TYPES_TO_TRY.error(
                got="none", allowed=f"1 to {MAX_TYPES} types", where="--instance-type"
            )
        if len(self.instance_types) > MAX_TYPES:
            raise TYPES_TO_TRY.error(
                got=f"{len(self.instance_types)} types",
                allowed=f"at most {MAX_TYPES}",
                where="--instance-type",
            )


def _load_test(test: LoadTest, instance_types: Sequence[str]) -> dict[str, Any]:
    ranges = [{"Name": name, "Value": list(values)} for name, values in test.environment.items()]
    vary = {"EnvironmentParameterRanges": {"CategoricalParameterRanges": ranges}} if ranges else {}
    tests = MAX_TESTS.check(test.tests(instance_types), "the number of tests")
    return {
        "JobDurationInSeconds": test.max_seconds,
        "TrafficPattern": traffic_request(test.traffic),
        "ResourceLimit": {
            "MaxNumberOfTests": tests,
            "MaxParallelOfTests": min(test.max_parallel, tests),
        },
        "EndpointConfigurations": [{"InstanceType": each, **vary} for each in instance_types],
    }


def check_types_to_try(instance_types: Sequence[str], endpoint: EndpointSettings) -> list[str]:
    """Check the types against the endpoint's images before money is spent; doubts are returned.

    Raises
    ------
    ConfigurationError
        LLE405 for a malformed name, LLR104 for a type that is named twice or is burstable, and
        the code of the image rule when the image cannot run on a type.
    """
    doubts: list[str] = []
    twice = [name for name, count in Counter(instance_types).items() if count > 1]
    if twice:
        raise TYPES_TO_TRY.error(
            got=f"{twice[0]} twice", allowed="each type once", where="--instance-type"
        )
    for name in instance_types:
        INSTANCE_TYPE.check(name, "--instance-type")
        facts = instance_facts(name)
        if facts is None:
            doubts.append(f"{name} is not in this library's list of instance types")
        elif facts.burstable:
            raise TYPES_TO_TRY.error(
                got=f"{name}, whose CPU runs on credits",
                allowed="types outside ml.t2",
                where="--instance-type",
            )
        for image in images_of(endpoint).values():
            doubts += [
                f"{name}: {doubt}"
                for doubt in check_image_runs_on(image, name, where="--instance-type")
            ]
    return doubts
