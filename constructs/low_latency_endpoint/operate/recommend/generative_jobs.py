"""SageMaker's jobs for generative models in AWS: start, follow, list, stop, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...settings import EndpointSettings
from ...settings.breach import Place
from .adopting import Adoption, scales, type_change_note
from .generative_requests import Benchmark, GenerativeRecommendation, Kind, Workload
from .jobs import POLL_SECONDS, JobSummary, in_words
from .rules import GENERATIVE_FORM, NO_SUCH_RESULT, NOT_ADOPTABLE

__all__ = [
    "BENCHMARK",
    "RECOMMENDATION",
    "GenerativeJob",
    "GenerativeResult",
    "adopt_generative",
    "check_boto3",
    "chosen_generative",
    "doubtful_types",
    "list_generative",
    "read_generative",
    "start_generative",
    "stop_generative",
    "wait_generative",
]

ClientFactory = Callable[[str], Any]


RECOMMENDATION, BENCHMARK = GenerativeRecommendation.kind, Benchmark.kind


@dataclass(frozen=True, slots=True)
class GenerativeResult:
    """One recommendation; empty text and ``None`` where AWS gives no value.

    Attributes
    ----------
    number : int
        Its place in the answer, from 1.
    environment : mapping of str to str
        The container's environment variables.
    model_data : mapping of str to str
        Channel to the prefix in S3.
    optimizations : tuple of str
        What AWS did to the model.
    performance : tuple of str
        Expected metrics in words, such as ``throughput average 512.0 tokens/second``.
    """

    number: int
    description: str
    instance_type: str
    image: str
    instance_count: int | None
    copies_per_instance: int | None
    environment: Mapping[str, str]
    model_data: Mapping[str, str]
    model_package_arn: str
    optimizations: tuple[str, ...]
    performance: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            name: list(value) if isinstance(value, tuple) else None if value == "" else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class GenerativeJob:
    """A job as AWS describes it; ``status`` is AWS's own word."""

    name: str
    kind: Kind
    status: str
    failure_reason: str
    created: datetime
    ended: datetime | None
    output: str
    results: tuple[GenerativeResult, ...]

    @property
    def done(self) -> bool:
        """Whether the job has ended, one way or the other."""
        return self.status in ("Completed", "Failed", "Stopped")

    @property
    def succeeded(self) -> bool:
        """Whether its results are there."""
        return self.status == "Completed"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "job": self.name,
            "kind": self.kind.word,
            "status": self.status,
            "failure_reason": self.failure_reason or None,
            "created": self.created.isoformat(),
            "ended": self.ended.isoformat() if self.ended else None,
            "output": self.output,
            "results": [each.to_dict() for each in self.results],
        }


def check_boto3(client: ClientFactory) -> None:
    """Say so when the installed boto3 does not know these jobs yet.

    Raises
    ------
    ConfigurationError
        LLE979.
    """
    if not hasattr(client("sagemaker"), "create_ai_recommendation_job"):
        raise GENERATIVE_FORM.error(
            got="a boto3 from before these jobs",
            allowed="a boto3 of 2026-04 or newer",
            mend="Run pip install --upgrade boto3.",
        )


def doubtful_types(client: ClientFactory, instance_types: tuple[str, ...]) -> list[str]:
    """Types that the installed boto3 does not know for these jobs; AWS may by now."""
    known = client("sagemaker").meta.service_model.shape_for("AIRecommendationInstanceType").enum
    return [
        f"{name} is not among the types that boto3 knows for this job"
        for name in instance_types
        if name not in known
    ]


def start_generative(
    client: ClientFactory,
    job: GenerativeRecommendation | Benchmark,
    workload: Workload | None = None,
) -> None:
    """Start a job, with a workload made for it; it costs instance hours from now on.

    A workload costs nothing and stays until it is deleted.
    """
    request, sagemaker = job.request(), client("sagemaker")
    with in_words(job.job_name):
        if workload is not None:
            sagemaker.create_ai_workload_config(**workload.request(job.job_name))
        getattr(sagemaker, f"create_{job.kind.operation}")(**request)


def read_generative(client: ClientFactory, kind: Kind, name: str) -> GenerativeJob:
    """A job as it is now.

    Raises
    ------
    AwsUnavailable
        When there is no such job, or AWS refuses.
    """
    with in_words(name):
        answer = _call(client, "describe", kind, name)
    return GenerativeJob(
        name=answer[f"{kind.prefix}Name"],
        kind=kind,
        status=answer[f"{kind.prefix}Status"],
        failure_reason=answer.get("FailureReason", ""),
        created=answer["CreationTime"],
        ended=answer.get("EndTime"),
        output=answer["OutputConfig"].get("S3OutputLocation", ""),
        results=tuple(
            _result(number, each)
            for number, each in enumerate(answer.get("Recommendations") or (), start=1)
        ),
    )


def _call(client: ClientFactory, verb: str, kind: Kind, name: str) -> Any:
    operation = getattr(client("sagemaker"), f"{verb}_{kind.operation}")
    return operation(**{f"{kind.prefix}Name": name})


def _result(number: int, answer: Mapping[str, Any]) -> GenerativeResult:
    deployment = answer.get("DeploymentConfiguration") or {}
    return GenerativeResult(
        number=number,
        description=answer.get("RecommendationDescription", ""),
        instance_type=deployment.get("InstanceType", ""),
        image=deployment.get("ImageUri", ""),
        instance_count=deployment.get("InstanceCount"),
        copies_per_instance=deployment.get("CopyCountPerInstance"),
        environment=dict(deployment.get("EnvironmentVariables") or {}),
        model_data={
            each.get("ChannelName", "model"): each["Uri"]
            for each in deployment.get("S3") or ()
            if each.get("Uri")
        },
        model_package_arn=(answer.get("ModelDetails") or {}).get("ModelPackageArn", ""),
        optimizations=tuple(
            each["OptimizationType"] for each in answer.get("OptimizationDetails") or ()
        ),
        performance=tuple(
            " ".join(
                filter(None, (each["Metric"], each.get("Stat"), each["Value"], each.get("Unit")))
            )
            for each in answer.get("ExpectedPerformance") or ()
        ),
    )


def wait_generative(
    client: ClientFactory,
    kind: Kind,
    name: str,
    *,
    sleep: Callable[[float], None],
    on_poll: Callable[[GenerativeJob], None] = lambda job: None,
) -> GenerativeJob:
    """Follow a job to its end; interrupting the wait leaves the job running."""
    while True:
        job = read_generative(client, kind, name)
        on_poll(job)
        if job.done:
            return job
        sleep(POLL_SECONDS)


def stop_generative(client: ClientFactory, kind: Kind, name: str) -> None:
    """Stop a job."""
    with in_words(name):
        _call(client, "stop", kind, name)


def list_generative(client: ClientFactory, kind: Kind, most: int = 50) -> list[JobSummary]:
    """The newest jobs of one kind in the account and region."""
    with in_words("the list"):
        operation = getattr(client("sagemaker"), f"list_{kind.operation}s")
        answer = operation(SortBy="CreationTime", SortOrder="Descending", MaxResults=most)
    return [
        JobSummary(
            each[f"{kind.prefix}Name"],
            kind.word,
            each[f"{kind.prefix}Status"],
            each["CreationTime"],
        )
        for each in answer[f"{kind.prefix}s"]
    ]


def chosen_generative(job: GenerativeJob, number: int) -> GenerativeResult:
    """The result of that number.

    Raises
    ------
    ConfigurationError
        LLE977 when the job is not complete or has no such result.
    """
    if not job.succeeded:
        raise NO_SUCH_RESULT.error(got=f"job {job.name} is {job.status}", allowed="Completed")
    if not 1 <= number <= len(job.results):
        raise NO_SUCH_RESULT.error(
            got=str(number),
            allowed=f"1 to {len(job.results)}" if job.results else "none: the job has no results",
        )
    return job.results[number - 1]


def adopt_generative(result: GenerativeResult, key: str, endpoint: EndpointSettings) -> Adoption:
    """What a result changes in the settings: instance type, environment, and an image by URI.

    What cannot be written in place (an image that the settings name in another way, optimized
    model data) is told in the notes.

    Raises
    ------
    ConfigurationError
        LLE978 for a result without an instance type, with several copies of the model per
        instance (inference components, which these settings do not have), or with settings of
        several containers.
    """
    name = f"result {result.number}"
    if not result.instance_type:
        raise NOT_ADOPTABLE.error(got=f"{name} without an instance type", allowed="one with it")
    if (result.copies_per_instance or 1) > 1:
        raise NOT_ADOPTABLE.error(
            got=f"{name} with {result.copies_per_instance} copies of the model per instance",
            allowed="one copy",
            mend="Copies are inference components, which the settings file "
            "does not describe: deploy the result's model package, or choose another result.",
        )
    if len(endpoint.containers) > 1:
        raise NOT_ADOPTABLE.error(
            got=f"{name}, and {len(endpoint.containers)} containers", allowed="one container"
        )
    here: Place = ("endpoints", key)
    container: Place = (*here, "containers", 0)
    values: dict[Place, Any] = {(*here, "instance_type"): result.instance_type}
    notes = []
    if result.image and endpoint.containers[0].image.uri is not None:
        values[(*container, "image", "uri")] = result.image
    elif result.image:
        notes.append(f"Left to you: the image. The result is for image: {{uri: {result.image}}}.")
    for variable, value in result.environment.items():
        values[(*container, "environment", variable)] = value
    notes += [
        f"Left to you: the model data. The result's {channel} is {uri}."
        for channel, uri in result.model_data.items()
        if not _has(endpoint, uri)
    ]
    if endpoint.throughput is not None:
        notes.append(
            "throughput.tps_per_instance is still the old configuration's: measure it "
            "with low-latency load-test --find-limit."
        )
    if result.instance_type != endpoint.instance_type and scales(endpoint):
        notes.append(type_change_note(endpoint.instance_type, result.instance_type))
    return Adoption(values, tuple(notes))


def _has(endpoint: EndpointSettings, uri: str) -> bool:
    data = endpoint.containers[0].data
    return data is not None and uri.rstrip("/") in {
        (each or "").rstrip("/") for each in (data.s3, data.s3_prefix)
    }
