"""Findings: what each means, once, under a stable id; what was measured, per case.

A finding's id is contract, as an error's code is: LLD1xx model latency, LLD2xx overhead, LLD3xx
multi-model, LLD4xx errors, LLD5xx skew, LLD6xx traffic, LLD7xx deployments, LLD8xx client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ...errors import AWS_DOCS

Confidence = Literal["high", "medium", "low"]

KNOWLEDGE_CENTER = "https://repost.aws/knowledge-center/sagemaker-endpoint-latency"
LOAD_TESTING = (
    "https://aws.amazon.com/blogs/machine-learning/"
    "best-practices-for-load-testing-amazon-sagemaker-real-time-inference-endpoints/"
)
ROUTING = (
    "https://aws.amazon.com/blogs/machine-learning/minimize-real-time-inference-latency-by-"
    "using-amazon-sagemaker-routing-strategies/"
)
GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
MONITORING = GUIDE + "monitoring-cloudwatch.html"
SCALING = GUIDE + "endpoint-auto-scaling.html"
#: Where the path of a finding begins that is about a number that somebody stated.
STATED_NUMBER = "contradicted by what was measured"
#: The same of what is not as it was deployed.
BY_HAND = "changed by hand"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What a finding means, apart from any one case, and when it is given."""

    id: str
    title: str
    when: str
    source: str


_KINDS: dict[str, FindingKind] = {}


def kind(id: str, title: str, when: str, source: str) -> FindingKind:
    """Register a kind of finding; an id can be registered once."""
    if id in _KINDS:
        raise ValueError(f"finding {id} is already registered: {_KINDS[id].title}")
    _KINDS[id] = made = FindingKind(id, title, when, source)
    return made


def kinds() -> Iterator[FindingKind]:
    return iter(sorted(_KINDS.values(), key=lambda made: made.id))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was measured: in words with its numbers, and when."""

    text: str
    start: datetime | None = None
    end: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "start": self.start.isoformat() if self.start else None,
            "end": self.end.isoformat() if self.end else None,
        }


@dataclass(frozen=True, slots=True)
class Remedy:
    """One key of ``endpoint.yaml``, below the endpoint's own entry, or with ``command`` what to run.

    ``value`` is empty where only a measurement can say it; ``why`` says what it does.
    """

    key: str
    why: str = ""
    value: str = ""
    command: bool = False

    @property
    def text(self) -> str:
        return f"{self.key}: {self.value}" if self.value else self.key

    def to_dict(self) -> dict[str, Any]:
        if self.command:
            return {"command": self.key, "why": self.why}
        return {"key": self.key, "value": self.value or None, "why": self.why}


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause that the measurements point to."""

    kind: FindingKind  # its stable id, title and source
    variant: str  # the production variant; empty for the whole endpoint
    evidence: tuple[Evidence, ...]  # what was measured
    # ``high``: it was measured itself; ``medium``: the measurements fit it and speak against the
    # other causes looked at; ``low``: it is what remains
    confidence: Confidence
    path: tuple[str, ...]  # how the decision tree came to it
    changes: tuple[Remedy, ...] = ()  # what to change in ``endpoint.yaml``
    besides: str = ""  # what to do that is not in that file
    risk: bool = False  # whether latency and errors are still within their limits

    @property
    def id(self) -> str:
        return self.kind.id

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """From the first to the last time of the evidence."""
        times = [t for each in self.evidence for t in (each.start, each.end) if t is not None]
        return (min(times), max(times)) if times else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.kind.title,
            "variant": self.variant or None,
            "risk": self.risk,
            "confidence": self.confidence,
            "path": list(self.path),
            "evidence": [each.to_dict() for each in self.evidence],
            "changes": [each.to_dict() for each in self.changes],
            "besides": self.besides,
            "source": self.kind.source,
        }


def most_certain_first(findings: Sequence[Finding]) -> list[Finding]:
    """Drift, wrong numbers, faults, risks; these by confidence, then as the tree met them."""
    order = {"high": 0, "medium": 1, "low": 2}
    return sorted(
        findings,
        key=lambda each: (
            each.path[0] != BY_HAND,
            each.path[0] != STATED_NUMBER,
            each.risk,
            order[each.confidence],
        ),
    )
