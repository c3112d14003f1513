"""Requests to Inference Recommender: pure functions from options to what boto3 sends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...plan.images import check_image_runs_on
from ...plan.instance_types import instance_facts
from ...plan.limits import INSTANCE_TYPE
from ...settings import EndpointSettings
from ...settings.plans import images_of
from .container import ContainerDescription
from .rules import (
    JOB_NAME,
    JOB_ROLE,
    JOB_SECONDS,
    MAX_INVOCATIONS,
    MAX_PARALLEL,
    MAX_TESTS,
    MAX_TYPES,
    MODEL_TO_TEST,
    TRAFFIC_FORM,
    TYPES_TO_TRY,
)
from .threshold import LatencyThreshold
from .traffic import DEFAULT_TRAFFIC, Traffic, seconds_of_traffic, traffic_request

__all__ = [
    "LoadTest",
    "ModelSource",
    "RecommendationRequest",
    "VpcConfig",
    "check_types_to_try",
    "job_request",
]

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

    Raises
    ------
    ConfigurationError
        LLE972 unless exactly one is given.
    """

    model_name: str | None = None
    model_package_arn: str | None = None

    def __post_init__(self) -> None:
        if (self.model_name is None) == (self.model_package_arn is None):
            raise MODEL_TO_TEST.error(
                got="both" if self.model_name else "neither",
                allowed="a model's name or a model package's ARN",
            )

    def request(self) -> dict[str, Any]:
        """As the API names it."""
        if self.model_name is not None:
            return {"ModelName": self.model_name}
        return {"ModelPackageVersionArn": self.model_package_arn}


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
        LLE974, LLE975.
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
            raise TRAFFIC_FORM.error(got="no phase", allowed="one phase or several, or stairs")
        if seconds_of_traffic(self.traffic) > self.max_seconds:
            raise TRAFFIC_FORM.error(
                got=f"{seconds_of_traffic(self.traffic)} seconds of traffic",
                allowed=f"at most the job's duration limit, {self.max_seconds} seconds",
            )
        for name, values in self.environment.items():
            if not (1 <= len(values) <= 3 and len(self.environment) <= 5):
                raise TYPES_TO_TRY.error(
                    got=f"{name}={','.join(values)}",
                    where="--vary",
                    allowed="at most five variables with one to three values each",
                    mend="Try fewer values, in several jobs.",
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
    vpc : VpcConfig, optional
        By default the endpoints under test are outside any VPC.
    """

    job_name: str
    role_arn: str
    model: ModelSource
    container: ContainerDescription
    sample_payload: str
    content_type: str
    instance_types: tuple[str, ...] = ()
    load_test: LoadTest | None = None
    vpc: VpcConfig | None = None

    @property
    def job_type(self) -> str:
        """The API's word for the kind of job."""
        return "Advanced" if self.load_test else "Default"


def job_request(job: RecommendationRequest) -> dict[str, Any]:
    """What ``create_inference_recommendations_job`` is called with.

    Raises
    ------
    ConfigurationError
        LLE970 for the job's name, LLE971 for the role, LLE973 for the instance types, LLE975 for
        more tests than a job makes.
    """
    JOB_NAME.check(job.job_name, "--job-name")
    JOB_ROLE.check(job.role_arn, "--role-arn")
    _check_count(job)
    container = job.container.request()
    container["PayloadConfig"] = {
        "SamplePayloadUrl": job.sample_payload,
        "SupportedContentTypes": [job.content_type],
    }
    container["SupportedEndpointType"] = "RealTime"
    if job.instance_types and job.load_test is None:
        container["SupportedInstanceTypes"] = list(job.instance_types)
    configuration: dict[str, Any] = {**job.model.request(), "ContainerConfig": container}
    if job.vpc is not None:
        configuration["VpcConfig"] = job.vpc.request()
    request: dict[str, Any] = {
        "JobName": job.job_name,
        "JobType": job.job_type,
        "RoleArn": job.role_arn,
        "InputConfig": configuration,
        "Tags": TAGS,
    }
    if job.load_test is not None:
        configuration |= _load_test(job.load_test, job.instance_types)
        request["StoppingConditions"] = {
            "MaxInvocations": job.load_test.max_invocations,
            "ModelLatencyThresholds": [
                {
                    "Percentile": job.load_test.threshold.percentile,
                    "ValueInMilliseconds": job.load_test.threshold.milliseconds,
                }
            ],
            "FlatInvocations": "Continue" if job.load_test.continue_when_flat else "Stop",
        }
    return request


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


def _check_count(job: RecommendationRequest) -> None:
    if job.load_test is not None and not job.instance_types:
        raise TYPES_TO_TRY.error(
            got="none", allowed=f"1 to {MAX_TYPES} types", where="--instance-type"
        )
    if len(job.instance_types) > MAX_TYPES:
        raise TYPES_TO_TRY.error(
            got=f"{len(job.instance_types)} types",
            allowed=f"at most {MAX_TYPES}",
            where="--instance-type",
        )


def check_types_to_try(instance_types: Sequence[str], endpoint: EndpointSettings) -> list[str]:
    """Check the types against the endpoint's images before money is spent; doubts are returned.

    Raises
    ------
    ConfigurationError
        LLE405 for a malformed name, LLE973 for a type that is named twice or is burstable, and
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
