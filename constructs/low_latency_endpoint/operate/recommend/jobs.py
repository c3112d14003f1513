"""Recommendation jobs in AWS, of every kind: start, follow, list, stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from botocore.exceptions import ClientError

from ...account.sessions import AwsUnavailable, ClientFactory, aws_errors_in_words
from .results import OptimizedModel, Recommendation, optimized_model, recommendation
from .threshold import LatencyThreshold

R = TypeVar("R", Recommendation, OptimizedModel)

POLL_SECONDS = 30.0
_ENDS = ("Completion", "End", "OptimizationEnd")


@dataclass(frozen=True)
class JobKind(Generic[R]):
    """One of AWS's kinds of jobs: how boto3 and the answers name it, and how to read those.

    Attributes
    ----------
    operation : str
        boto3's operations, after their verb.
    prefix : str
        How the answers' fields begin.
    jobs, results : str
        Fields of a list of jobs, and of a job's results; without that field the completed job is
        its one result.
    result : callable
        Number and answer to a result.
    started : str
        Its first status.
    word : str
        What people call it; empty where the answer says it.
    steps : str
        The operation that lists its tests, where there is one.
    """

    operation: str
    prefix: str
    jobs: str
    results: str
    result: Callable[[int, Mapping[str, Any]], R]
    started: str
    word: str = ""
    steps: str = ""

    def named(self, name: str) -> dict[str, str]:
        """A job's name as its operations take it."""
        return {f"{self.prefix}Name": name}

    def type(self, answer: Mapping[str, Any]) -> str:
        """What people call a job."""
        return self.word or str(answer["JobType"])


INFERENCE = JobKind(
    "inference_recommendations_job",
    "Job",
    "InferenceRecommendationsJobs",
    "InferenceRecommendations",
    recommendation,
    "PENDING",
    steps="list_inference_recommendations_job_steps",
)
OPTIMIZATION = JobKind(
    "optimization_job",
    "OptimizationJob",
    "OptimizationJobSummaries",
    "",
    optimized_model,
    "STARTING",
    "optimization",
)


@dataclass(frozen=True, slots=True)
class Job(Generic[R]):
    """A job as AWS describes it.

    Attributes
    ----------
    name, type, status, failure_reason : str
        The status is AWS's own word.
    created : datetime
    ended : datetime or None
    results : tuple
        In AWS's order; empty before the job is complete.
    threshold : LatencyThreshold or None
        At which an Inference Recommender's job stops a test.
    output : str
        Prefix in S3 with the optimized model.
    """

    name: str
    type: str
    status: str
    failure_reason: str
    created: datetime
    ended: datetime | None
    results: tuple[R, ...]
    threshold: LatencyThreshold | None = None
    output: str = ""

    @property
    def done(self) -> bool:
        """Whether the job has ended, one way or the other."""
        return self.status.upper() in ("COMPLETED", "FAILED", "STOPPED", "DELETED")

    @property
    def succeeded(self) -> bool:
        """Whether its results are there."""
        return self.status.upper() == "COMPLETED"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What starts a job: boto3 is called with ``content``."""

    kind: JobKind[Any]
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """What the job will be called."""
        return str(self.content[f"{self.kind.prefix}Name"])


@contextmanager
def job_errors_in_words(name: str) -> Iterator[None]:
    """Errors of the jobs' API in words, with what to do about those that are its own."""
    with aws_errors_in_words():
        try:
            yield
        except ClientError as error:
            code = error.response["Error"].get("Code", "")
            message = error.response["Error"].get("Message", "")
            fix = _FIXES.get(code.removesuffix("Exception"))
            if fix is None:
                raise
            raise AwsUnavailable(
                f"AWS refused {error.operation_name} of {name}: {code}: {message}\n  fix:    {fix}"
            ) from error


_FIXES = {
    "ResourceInUse": "Choose another --job-name: names are used once.",
    "ResourceLimitExceeded": "Wait for a job to end, try fewer instance types, or ask for a "
    "higher quota (Service Quotas, Amazon SageMaker).",
    "ResourceNotFound": "See the names with --list; jobs are of one account and region.",
}


def start(client: ClientFactory, job: JobRequest) -> None:
    """Start a job; it costs instance hours from now on.

    Raises
    ------
    AwsUnavailable
        When AWS refuses.
    """
    with job_errors_in_words(job.name):
        _call(client, "create", job.kind, job.content)


def read(client: ClientFactory, kind: JobKind[R], name: str) -> Job[R]:
    """A job as it is now.

    Raises
    ------
    AwsUnavailable
        When there is no such job, or AWS refuses.
    """
    with job_errors_in_words(name):
        return read_job(kind, _call(client, "describe", kind, kind.named(name)))


def read_job(kind: JobKind[R], answer: Mapping[str, Any]) -> Job[R]:
    """A job from the answer that describes it."""
    thresholds = answer.get("StoppingConditions", {}).get("ModelLatencyThresholds") or [{}]
    milliseconds = thresholds[0].get("ValueInMilliseconds")
    status = answer.get(f"{kind.prefix}Status") or answer["Status"]
    results = answer.get(kind.results) or ()
    if not kind.results and status == "COMPLETED" and "OutputConfig" in answer:  # no summary
        results = (answer,)
    return Job(
        name=answer[f"{kind.prefix}Name"],
        type=kind.type(answer),
        status=status,
        failure_reason=answer.get("FailureReason", ""),
        created=answer["CreationTime"],
        ended=next((answer[f"{name}Time"] for name in _ENDS if answer.get(f"{name}Time")), None),
        results=tuple(kind.result(number, each) for number, each in enumerate(results, start=1)),
        threshold=LatencyThreshold(thresholds[0].get("Percentile", "P95"), milliseconds)
        if milliseconds
        else None,
        output=answer.get("OutputConfig", {}).get("S3OutputLocation", ""),
    )


def progress_of(client: ClientFactory, kind: JobKind[R], name: str) -> str:
    """How far the tests are, in words; empty before the first is listed."""
    if not kind.steps:
        return ""
    with job_errors_in_words(name):
        pages = client("sagemaker").get_paginator(kind.steps).paginate(**kind.named(name))
        steps = [step for page in pages for step in page.get("Steps", ())]
    counted = Counter(str(step["Status"]).lower().replace("_", " ") for step in steps)
    return ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))


def wait(
    client: ClientFactory,
    kind: JobKind[R],
    name: str,
    *,
    sleep: Callable[[float], None],
    on_poll: Callable[[Job[R], str], None] = lambda job, progress: None,
) -> Job[R]:
    """Follow a job to its end; interrupting the wait leaves the job running.

    Parameters
    ----------
    client : callable
    kind : JobKind
    name : str
    sleep : callable
        Waits so many seconds: ``time.sleep``.
    on_poll : callable
        Told the job and the progress of its tests at each look.
    """
    while True:
        job = read(client, kind, name)
        on_poll(job, "" if job.done else progress_of(client, kind, name))
        if job.done:
            return job
        sleep(POLL_SECONDS)


def stop(client: ClientFactory, kind: JobKind[R], name: str) -> None:
    """Stop a job: AWS ends its tests and deletes the endpoints that it made for them."""
    with job_errors_in_words(name):
        _call(client, "stop", kind, kind.named(name))


def newest_jobs(client: ClientFactory, kind: JobKind[R], most: int = 50) -> list[Job[R]]:
    """The newest jobs of one kind in the account and region, without their results."""
    request = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": most}
    with job_errors_in_words("the list"):
        answer = getattr(client("sagemaker"), f"list_{kind.operation}s")(**request)
    return [read_job(kind, each) for each in answer[kind.jobs]]


def _call(client: ClientFactory, verb: str, kind: JobKind[R], request: Mapping[str, Any]) -> Any:
    return getattr(client("sagemaker"), f"{verb}_{kind.operation}")(**request)
