"""A SageMaker job of either kind, from its request to what it changes in the settings file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...account.sessions import ClientFactory, aws_errors_in_words
from ...errors import rule
from ...errors.findings import Place

NOT_ADOPTABLE = rule(
    "LLR109",
    "the result cannot be written into the settings",
    fix="Choose another result, or change the settings by hand.",
)
_POLL_SECONDS = 30.0


@dataclass(frozen=True)
class JobKind:
    """What AWS calls a kind of job, and what a job costs."""

    operation: str  # boto3's operations, after the verb
    name_field: str
    status_field: str
    name_option: str  # of the AWS CLI
    cost: str

    def call(self, client: ClientFactory, verb: str, request: Mapping[str, Any]) -> Any:
        with aws_errors_in_words():
            return getattr(client("sagemaker"), f"{verb}_{self.operation}")(**request)

    def aws_command(self, verb: str, name: str) -> str:
        """The AWS CLI's command about the job of this name."""
        return f"aws sagemaker {verb}-{self.operation.replace('_', '-')} {self.name_option} {name}"


@dataclass(frozen=True)
class JobRequest:
    """A job that is not started yet."""

    kind: JobKind
    content: Mapping[str, Any]  # what the API takes
    limit: str  # what bounds the job's cost
    notes: Sequence[str]  # what to know before it starts

    def lines(self) -> Iterator[str]:
        """The request as AWS gets it, and what the job costs."""
        yield json.dumps(self.content, indent=2)
        for note in self.notes:
            yield f"Note: {note}."
        yield f"Time limit: {self.limit}."
        yield f"This costs money: {self.kind.cost} (https://aws.amazon.com/sagemaker/ai/pricing/)."

    def start(self, client: ClientFactory) -> None:
        """Start the job: from now on it costs instance hours."""
        self.kind.call(client, "create", self.content)


@dataclass(frozen=True)
class Job:
    """A job as AWS describes it."""

    name: str
    status: str
    failure_reason: str  # empty unless it failed
    description: Mapping[str, Any]  # AWS's whole answer, with the results

    @property
    def has_ended(self) -> bool:
        return self.status in ("COMPLETED", "FAILED", "STOPPED", "DELETED")

    @property
    def has_completed(self) -> bool:
        return self.status == "COMPLETED"


@dataclass(frozen=True)
class Adoption:
    """What a result changes in the settings file."""

    values: Mapping[Place, Any]
    notes: Sequence[str]  # what to know before the next deployment


def watch_job(client: ClientFactory, kind: JobKind, name: str) -> Iterator[Job]:
    """Describe a job every thirty seconds; the last description is of the job at its end."""
    while True:
        answer = kind.call(client, "describe", {kind.name_field: name})
        job = Job(name, answer[kind.status_field], answer.get("FailureReason", ""), answer)
        yield job
        if job.has_ended:
            return
        time.sleep(_POLL_SECONDS)
