"""Findings: a cause of ``causes.yaml`` with what was measured of it, and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal

from ruamel.yaml import YAML

from ...errors.shell_words import shell_word
from ...report.json_text import json_safe

Confidence = Literal["high", "medium", "low"]

#: Where the path of a finding begins that is about a number that somebody stated.
STATED_NUMBER = "contradicted by what was measured"
#: The same of what is not as it was deployed.
BY_HAND = "changed by hand"
#: Before it where it explains no other finding.
UNRELATED = "explains nothing else found"
#: A name in the text of a cause that a case fills in; ``{enabled: true}`` is a value.
_FILLED_IN = re.compile(r"\{\w+\}")
#: What stands for such a name if there is no case.
_PLACEHOLDERS = {"{endpoint}": "ENDPOINT", "{name}": "VARIANT", "{stack}": "STACK"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was measured: in words with its numbers, and when."""

    text: str
    start: datetime | None = None
    end: datetime | None = None


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

    @property
    def general_text(self) -> str:
        """Setting and reason, without a value or a reason that only one case has."""
        text = self.key if _FILLED_IN.search(self.value) else self.text
        reason = "" if _FILLED_IN.search(self.why) else self.why
        return f"`{text}` ({reason})" if reason else f"`{text}`"

    def to_dict(self) -> dict[str, Any]:
        if self.command:
            return {"command": self.key, "why": self.why}
        return {"key": self.key, "value": self.value or None, "why": self.why}


def container_log(endpoint: str, why: str) -> Remedy:
    """The command that shows what an endpoint's containers wrote last."""
    group = f"/aws/sagemaker/Endpoints/{endpoint}"
    return Remedy(f"aws logs tail {shell_word(group)} --since 1h", why, command=True)


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What a finding means, apart from any one case, when it is given, and what to do."""

    id: str
    title: str
    when: str
    source: str
    confidence: Confidence
    path: tuple[str, ...]
    changes: tuple[Remedy, ...] = ()
    besides: str = ""

    @property
    def advice(self) -> str:
        """What to do in every case, in sentences; empty if only the measurements tell."""
        changes = [change.general_text for change in self.changes]
        settings = f"Change {'; or '.join(changes)}." if changes else ""
        besides = self.besides
        for name, placeholder in _PLACEHOLDERS.items():
            besides = besides.replace(name, placeholder)
        if _FILLED_IN.search(besides):
            return settings
        return f"{settings} {besides}".strip()


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
            "evidence": list(map(json_safe, self.evidence)),
            "changes": [change.to_dict() for change in self.changes],
            "besides": self.besides,
            "source": self.kind.source,
        }


def most_certain_first(findings: Sequence[Finding]) -> list[Finding]:
    """Faults before risks: of each wrong numbers, then by confidence, then as the tree met them.

    Drift comes before what it explains; that which explains nothing comes last.
    """
    order = {"high": 0, "medium": 1, "low": 2}
    return sorted(
        findings,
        key=lambda finding: (
            finding.risk,
            finding.path[0] == UNRELATED,
            finding.path[0] != BY_HAND,
            finding.path[0] != STATED_NUMBER,
            order[finding.confidence],
        ),
    )


def _read() -> dict[str, FindingKind]:
    text = files(__package__).joinpath("causes.yaml").read_text("utf-8")
    told = YAML(typ="safe", pure=True).load(text)
    return {each: _kind(each, told["sources"], **row) for each, row in told["causes"].items()}


def _kind(
    id: str, sources: dict[str, str], *, source: str, path: str, changes: Any = (), **row: Any
) -> FindingKind:
    return FindingKind(
        id=id,
        source=sources[source],
        path=tuple(path.split(" > ")),
        changes=tuple(Remedy(**change) for change in changes),
        **row,
    )


#: All causes by their ids, in their order.
KINDS = _read()


def finding(
    id: str,
    *evidence: Evidence | str,
    variant: str = "",
    root: tuple[str, ...] = (),  # where the row's path begins
    confidence: Confidence | None = None,  # where it is not the row's
    first: Iterable[Remedy] = (),  # before the changes of the row
    more: Iterable[Remedy] = (),  # after them
    risk: bool = False,
    **filled: str,
) -> Finding:
    """A cause's row with what was measured; ``filled`` are the names in its changes and besides."""
    kind = KINDS[id]
    changes, besides = kind.changes, kind.besides
    if filled:
        besides = besides.format(**filled)
        changes = tuple(
            replace(change, why=change.why.format(**filled), value=change.value.format(**filled))
            for change in changes
        )
    return Finding(
        kind,
        variant,
        tuple(Evidence(each) if isinstance(each, str) else each for each in evidence),
        confidence or kind.confidence,
        (*root, *kind.path),
        (*first, *changes, *more),
        besides,
        risk,
    )
