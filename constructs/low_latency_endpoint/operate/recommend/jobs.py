"""Recommendation jobs in AWS: start, follow, list, stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from ...account.sessions import AwsUnavailable, aws_errors_in_words
from .job_requests import RecommendationRequest, job_request
from .results import Job, read_job

__all__ = ["JobSummary", "newest_jobs", "progress_of", "read", "start", "stop", "wait"]

ClientFactory = Callable[[str], Any]

POLL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One line of the list of jobs."""

    name: str
    job_type: str
    status: str
    created: datetime

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "name": self.name,
            "type": self.job_type,
            "status": self.status,
            "created": self.created.isoformat(),
        }


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Errors of the jobs' API in words, with what to do about those that are its own."""
    with aws_errors_in_words():
        try:
            yield
        except ClientError as error:
            code = error.response["Error"].get("Code", "")
            message = error.response["Error"].get("Message", "")
            mend = _MEND.get(code.removesuffix("Exception"))
            if mend is None:
                raise
            raise AwsUnavailable(
                f"AWS refused {error.operation_name} of {name}: {code}: "
                f"{message}\n  mend:    {mend}"
            ) from error


_MEND = {
    "ResourceInUse": "Choose another --job-name: names are used once.",
    "ResourceLimitExceeded": "Wait for a job to end, try fewer instance types, or ask for a "
    "higher quota (Service Quotas, Amazon SageMaker).",
    "ResourceNotFound": "See the names with --list; jobs are of one account and region.",
}


def start(client: ClientFactory, job: RecommendationRequest) -> str:
    """Start a job; it costs instance hours from now on.

    Returns
    -------
    str
        Its ARN.

    Raises
    ------
    AwsUnavailable
        When AWS refuses.
    ConfigurationError
        As :func:`~low_latency_endpoint.operate.recommend.job_requests.job_request`.
    """
    request = job_request(job)
    with in_words(job.job_name):
        return str(client("sagemaker").create_inference_recommendations_job(**request)["JobArn"])


def read(client: ClientFactory, name: str) -> Job:
    """A job as it is now.

    Raises
    ------
    AwsUnavailable
        When there is no such job, or AWS refuses.
    """
    with in_words(name):
        return read_job(client("sagemaker").describe_inference_recommendations_job(JobName=name))


def progress_of(client: ClientFactory, name: str) -> str:
    """How far the tests are, in words; empty before the first is listed."""
    with in_words(name):
        pages = client("sagemaker").get_paginator("list_inference_recommendations_job_steps")
        steps = [step for page in pages.paginate(JobName=name) for step in page.get("Steps", ())]
    counted = Counter(str(step["Status"]).lower().replace("_", " ") for step in steps)
    return ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))


def wait(
    client: ClientFactory,
    name: str,
    *,
    sleep: Callable[[float], None],
    on_poll: Callable[[Job, str], None] = lambda job, progress: None,
) -> Job:
    """Follow a job to its end; interrupting the wait leaves the job running.

    Parameters
    ----------
    client : callable
    name : str
    sleep : callable
        Waits so many seconds: ``time.sleep``.
    on_poll : callable
        Told the job and the progress of its tests at each look.
    """
    while True:
        job = read(client, name)
        on_poll(job, "" if job.done else progress_of(client, name))
        if job.done:
            return job
        sleep(POLL_SECONDS)


def stop(client: ClientFactory, name: str) -> None:
    """Stop a job: AWS ends its tests and deletes their endpoints."""
    with in_words(name):
        client("sagemaker").stop_inference_recommendations_job(JobName=name)


def newest_jobs(client: ClientFactory, most: int = 50) -> list[JobSummary]:
    """The newest jobs of the account and region."""
    with in_words("the list"):
        answer = client("sagemaker").list_inference_recommendations_jobs(
            SortBy="CreationTime", SortOrder="Descending", MaxResults=most
        )
    return [
        JobSummary(each["JobName"], each["JobType"], each["Status"], each["CreationTime"])
        for each in answer["InferenceRecommendationsJobs"]
    ]
