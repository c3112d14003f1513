"""What a load test's verdicts say: each in words, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

#: ``invalid``: the figures say nothing about the endpoint; ``limit``: this is what limits.
Severity = Literal["invalid", "limit", "risk", "fine"]


@dataclass(frozen=True)
class Verdict:
    """One thing that the run says."""

    kind: str  # one of ``VERDICTS``
    severity: Severity
    title: str
    evidence: tuple[str, ...] = ()
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {**asdict(self), "evidence": list(self.evidence)}


FIXED = "Test a fleet of a fixed size: instances.min equal to instances.max, or scaling suspended."
NO_SCHEDULE = "Scheduled actions are suspended by ScheduledScalingSuspended, or deleted, not by the other two."
WHICH_TYPE = "Which type: low-latency recommend."
WHOLE_MINUTES = "CloudWatch has minutes: steps of two minutes or more, such as --duration 2m, tell."
MORE = f"More instances, or larger ones. {WHICH_TYPE}"

#: Each verdict once: what it says, and what to do. Names in braces are measured.
VERDICTS: dict[str, tuple[str, str]] = {
    "client-bound": (
        "Client-bound: result invalid. The machine that sent was too busy, not the endpoint",
        "Run the load test where it has more processors: --processes, another machine, or a fleet.",
    ),
    "fleet-changed": ("The number of instances changed during the run", FIXED),
    "fleet-updated": (
        "The endpoint was updated during the run: two fleets may have answered",
        "Test again when nothing is updated.",
    ),
    "fleet-scales": ("Scaling may change the number of instances during the run", FIXED),
    "fleet-not-planned": (
        "The fleet has {has}, the plan says {planned} at the peak",
        "Deploy the plan first; this confirms nothing of it.",
    ),
    "throttled": (
        "AWS throttles the callers before the instances are full",
        "This limit is reported to depend on the number and type of the endpoint's instances: more or "
        "faster ones may raise it. See Service Quotas, ask AWS Support, and let clients repeat later.",
    ),
    "loading": (
        "The model was still loading: a multi-model or serverless endpoint says so with 429",
        "Test again when it is loaded; see that all models that are called fit the memory.",
    ),
    "refused": (
        "SageMaker refuses the requests before they reach a model",
        "Look at the payload, the rights, the credentials, and whether the endpoint is still there.",
    ),
    "sagemaker": (
        "SageMaker itself fails, and not the model",
        "See the AWS Health Dashboard, test again, and ask AWS Support.",
    ),
    "connections": (
        "Connections to SageMaker fail, so that requests reach no instance",
        "Look at the network between this machine and SageMaker.",
    ),
    "sender": (
        "The machine that sent failed, not the endpoint",
        "See the messages of the failed requests.",
    ),
    "errors": ("Requests fail at {step}", "Look into the container's log."),
    "cpu": ("The CPU is {how}", MORE),
    "gpu": ("The GPU is {how}", MORE),
    "queueing": ("Requests wait inside the instances", MORE),
    "before-the-model": (
        "Requests wait before they reach the model",
        "Look at the network between the callers and SageMaker, at connections that are not kept, and "
        "at the load generator.",
    ),
    "overhead": (
        "SageMaker's own overhead rose with the load",
        "Compare routing strategies with low-latency compare-routing, and ask AWS Support.",
    ),
    "unsteady": (
        "The endpoint did not answer alike at all times",
        "Search again at another time of the day, or with longer steps such as --duration 10m.",
    ),
    "not-saturated": ("Nothing is saturated at {step}", ""),
    "not-read": (
        "CPU and GPU use at {step} was not read: what is near its limit is not known",
        "CloudWatch tells after a minute or two: steps of two minutes, without --metrics-wait 0s.",
    ),
    "unexplained": (
        "The target was missed at {step}; the metrics do not show the cause",
        "low-latency diagnose reads more.",
    ),
}
#: The same of the ways in which a container fails: the end of the title of ``errors``, and what to do.
CONTAINERS = {
    "gave-up": (
        "the container gave no answer",
        "SageMaker's time limit for an answer was over, or the container hung up: shorten the work of "
        "a request, or look into the log for a process that ended.",
    ),
    "model": (
        "the container answers with an error of its own",
        "Look into the container's log; with a status of 4xx at the payload, too.",
    ),
    "busy": (
        "the container says that it is busy",
        "Give it more workers or a longer queue, or use more instances.",
    ),
}


def verdict_of(
    kind: str,
    severity: Severity,
    *evidence: str,
    title: str = "",  # where it is not the row's
    advice: str = "",
    **measured: object,
) -> Verdict:
    """A verdict of its kind, in the words of :data:`VERDICTS` where no others are given."""
    said, advised = VERDICTS[kind]
    return Verdict(
        kind,
        severity,
        title or said.format(**measured),
        evidence,
        advice or advised.format(**measured),
    )
