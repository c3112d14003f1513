"""SageMaker's jobs about a model, of every kind: say what one costs, start, follow, list, stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import indent
from typing import Any, TypeVar

import yaml
from botocore.exceptions import ClientError

from ...account.sessions import (
    AwsUnavailable,
    ClientFactory,
    aws_errors_in_words,
    error_code,
    in_words,
)
from ...errors import rule
from ...errors.findings import Place
from ...facts.limit_kinds import Pattern, Range
from ...facts.limits import API, GUIDE
from ...report.document import Document, Part
from ...settings import EndpointSettings
from ...settings.option_models import duration_of

JOB_NAME = Pattern(
    rule(
        "LLR101",
        "the name of a recommendation job is not valid",
        fix="Choose another --job-name, or leave it out.",
        source=API + "CreateInferenceRecommendationsJob.html",
    ),
    "the job's name",
    r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}",
    "letters, digits and inner hyphens",
    max_length=63,
)
JOB_ROLE = Pattern(
    rule(
        "LLR102",
        "a recommendation job needs a role",
        fix="Pass --role-arn with AmazonSageMakerFullAccess and access to the payload.",
        source=GUIDE + "inference-recommender-prerequisites.html",
    ),
    "the role's ARN",
    r"arn:aws[a-z\-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+",
    "an ARN such as arn:aws:iam::123456789012:role/recommender",
    max_length=2048,
)
NO_SUCH_RESULT = rule(
    "LLR108",
    "the job has no such result",
    fix="Choose a number from low-latency recommend --job NAME. Only a completed job has results.",
)
NOT_ADOPTABLE = rule(
    "LLR109",
    "the result cannot be written into the settings",
    fix="Choose another result, or change the settings by hand.",
)
POLL_SECONDS = 30.0
_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"
_FIXES = {
    "ResourceInUse": "Choose another --job-name: names are used once.",
    "ResourceLimitExceeded": "Wait for a job to end, try fewer instance types, or ask for a "
    "higher quota (Service Quotas, Amazon SageMaker).",
    "ResourceNotFound": "See the names with --list; jobs are of one account and region.",
}
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class JobKind:
    """How boto3 and AWS's answers name a kind of job."""

    type: str  # what people call a job whose answer names no type
    operation: str  # boto3's operations, after their verb
    name: str  # these four are fields of the answers
    status: str
    ended: str
    jobs: str
    first_status: str
    cost: str  # what AWS bills, in words
    steps: bool = False  # whether AWS lists the tests of a job

    def ask(self, client: ClientFactory, verb: str, request: Mapping[str, Any]) -> Any:
        return getattr(client("sagemaker"), f"{verb}_{self.operation}")(**request)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as AWS describes it or lists it; the answer has its results."""

    name: str
    type: str
    status: str
    failure_reason: str
    created: datetime
    ended: datetime | None
    answer: Mapping[str, Any]

    @classmethod
    def of(cls, kind: JobKind, answer: Mapping[str, Any]) -> Job:
        return cls(
            name=answer[kind.name],
            type=answer.get("JobType", kind.type),
            status=answer[kind.status],
            failure_reason=answer.get("FailureReason", ""),
            created=answer["CreationTime"],
            ended=answer.get(kind.ended),
            answer=answer,
        )

    @property
    def done(self) -> bool:
        """Whether the job has ended, one way or the other."""
        return self.status in ("COMPLETED", "FAILED", "STOPPED", "DELETED")

    @property
    def succeeded(self) -> bool:
        return self.status == "COMPLETED"

    def to_dict(self) -> dict[str, Any]:
        return {
            "job": self.name,
            "type": self.type,
            "status": self.status,
            "failure_reason": self.failure_reason or None,
            "created": self.created.isoformat(),
            "ended": self.ended.isoformat() if self.ended else None,
        }

    def document(self, *parts: Part) -> Document:
        """Its name and status, why it failed, and what came of it."""
        failure = [self.failure_reason] if self.failure_reason else []
        return Document(f"{self.name} ({self.type})", [*failure, *parts], self.status)

    def chosen(self, results: Sequence[R], number: int) -> R:
        """The result of that number; LLR108 where the job is not complete or has no such result."""
        if not self.succeeded:
            raise NO_SUCH_RESULT.error(
                got=f"job {self.name} is {self.status}", allowed="a job that is complete"
            )
        if not 1 <= number <= len(results):
            allowed = f"1 to {len(results)}" if results else "none: the job has no results"
            raise NO_SUCH_RESULT.error(got=str(number), allowed=allowed)
        return results[number - 1]


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(value: Mapping[str, Any]) -> str:
    """What AWS is sent, or sends, in lines for people."""
    text = yaml.dump(
        value, Dumper=_WithoutAliases, sort_keys=False, default_flow_style=None, width=92
    )
    return indent(text.rstrip(), "  ")


class JobRequest:
    """What starts a job; LLR101 for its name, LLR102 for the role."""

    def __init__(
        self,
        kind: JobKind,
        name: str,
        role_arn: str,
        content: Mapping[str, Any],
        *,
        bound: str,
        notes: Sequence[str] = (),
        before: Callable[[ClientFactory], None] = lambda client: None,
    ) -> None:
        self.kind, self.bound, self.notes, self.before = kind, bound, notes, before
        self.name: str = JOB_NAME.check(name, "--job-name")
        self.content = {
            kind.name: self.name,
            "RoleArn": JOB_ROLE.check(role_arn, "--role-arn"),
            **content,
            "Tags": [{"Key": "created-by", "Value": "low-latency-endpoint"}],
        }

    def lines(self) -> Iterator[str]:
        """The request as AWS gets it, and what bounds its cost."""
        given = {name: value for name, value in self.content.items() if name != "Tags"}
        type_ = self.content.get("JobType", self.kind.type)
        yield f"Job {self.name} ({type_}), as AWS is asked for it:"
        yield as_yaml(given)
        yield f"  duration limit   {self.bound}"
        yield from (f"  note             {note}" for note in self.notes)
        yield f"This costs money: {self.kind.cost} ({_PRICES})."

    def start(self, client: ClientFactory) -> None:
        """Start the job: it costs instance hours from now on."""
        with job_errors_in_words(self.name):
            self.before(client)
            self.kind.ask(client, "create", self.content)


@contextmanager
def job_errors_in_words(name: str) -> Iterator[None]:
    """AWS's errors in words, with what to do about those that are the jobs' own."""
    with aws_errors_in_words():
        try:
            yield
        except ClientError as error:
            fix = _FIXES.get(error_code(error).removesuffix("Exception"))
            if fix is None:
                raise
            raise AwsUnavailable(
                f"AWS refused {error.operation_name} of {name}: {in_words(error)}\n  fix:    {fix}"
            ) from error


def read(client: ClientFactory, kind: JobKind, name: str) -> Job:
    with job_errors_in_words(name):
        return Job.of(kind, kind.ask(client, "describe", {kind.name: name}))


def follow(
    client: ClientFactory, kind: JobKind, name: str, sleep: Callable[[float], None]
) -> Iterator[tuple[Job, str]]:
    """A job at each look until it has ended, and how far its tests are."""
    while True:
        job = read(client, kind, name)
        yield job, "" if job.done or not kind.steps else _progress(client, kind, name)
        if job.done:
            return
        sleep(POLL_SECONDS)


def _progress(client: ClientFactory, kind: JobKind, name: str) -> str:
    pages = client("sagemaker").get_paginator(f"list_{kind.operation}_steps")
    with job_errors_in_words(name):
        steps = [
            step for page in pages.paginate(**{kind.name: name}) for step in page.get("Steps", ())
        ]
    counted = Counter(str(step["Status"]).lower().replace("_", " ") for step in steps)
    return ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))


def stop(client: ClientFactory, kind: JobKind, name: str) -> None:
    with job_errors_in_words(name):
        kind.ask(client, "stop", {kind.name: name})


def newest_jobs(client: ClientFactory, kind: JobKind) -> list[Job]:
    """The newest fifty jobs of one kind in the account and region."""
    request = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 50}
    with job_errors_in_words("the list"):
        answer = getattr(client("sagemaker"), f"list_{kind.operation}s")(**request)
    return [Job.of(kind, each) for each in answer[kind.jobs]]


@dataclass(frozen=True, slots=True)
class Adoption:
    """Values for places of the settings file, and what to know before they are written."""

    values: Mapping[Place, Any]
    notes: Sequence[str]


def parse_limit(text: str, limit: Range) -> timedelta:
    """How long a job may take, such as ``2h``; the limit's error for anything else."""
    duration = duration_of(text)
    if duration is None or not limit.holds(duration.total_seconds()):
        raise limit.rule.error(
            got=text,
            allowed=f"whole seconds with a unit, such as 90m: {limit.allowed}",
            where="--max-duration",
        )
    return duration


def type_change(endpoint: EndpointSettings, after: str) -> list[str]:
    """Why a new instance type takes two deploys, where the variant is a scalable target."""
    before = endpoint.instance_type
    if after == before or not endpoint.scaling.enabled or endpoint.throughput is None:
        return []
    return [
        f"{before} to {after} under scaling takes two deploys: SageMaker refuses to change the "
        "instance type of a scalable target. Deploy with scaling: {enabled: false, "
        "keep_counts: true} first, then the new type with scaling on again "
        "(docs/explanation/updates.md)."
    ]
