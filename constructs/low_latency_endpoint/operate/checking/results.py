"""What a check finds, and the report of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ends; ``unknown`` is what could not be read, and never a pass."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finding of a check: what is so, and what to do when it should not be."""

    status: Status
    evidence: str  # what was read, with numbers and names
    fix: str = ""  # what to do; empty for a pass
    about: str = ""  # what it is about within the check's subject, such as a zone; often empty


def passed(evidence: str, *, about: str = "") -> Outcome:
    """It is as it should be."""
    return Outcome(Status.PASS, evidence, "", about)


def warned(evidence: str, fix: str, *, about: str = "") -> Outcome:
    """It works, or may work, and is not as it should be."""
    return Outcome(Status.WARN, evidence, fix, about)


def failed(evidence: str, fix: str, *, about: str = "") -> Outcome:
    """It does not work."""
    return Outcome(Status.FAIL, evidence, fix, about)


def unknown(evidence: str, fix: str = "", *, about: str = "") -> Outcome:
    """It could not be read, or cannot be told from here."""
    return Outcome(Status.UNKNOWN, evidence, fix, about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row of a report: a check, what it is about, and its outcome."""

    id: str
    title: str
    status: Status
    subject: str
    evidence: str
    fix: str
    source: str

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON-safe data, keys always in the same order."""
        return asdict(self) | {"status": str(self.status)}


@dataclass(frozen=True)
class Report:
    """All results of one run.

    Examples
    --------
    >>> row = Result(id="LLP101", title="Credentials", status=Status.UNKNOWN, subject="",
    ...              evidence="", fix="", source="")
    >>> report = Report("endpoint.yaml", "123456789012", "us-east-1", (row,))
    >>> report.exit_status(), report.exit_status(strict=True)
    (0, 1)
    """

    what: str  # what was checked: a settings file or a stack
    account: str  # where; the account is empty when the credentials may not ask
    region: str
    results: tuple[Result, ...]  # in the order of the checks
    # this account's zone names to zone IDs; empty when they could not be read
    zones: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many results have each status."""
        return {
            str(status): sum(each.status is status for each in self.results) for status in Status
        }

    def exit_status(self, *, strict: bool = False) -> int:
        """1 when something fails, else 0; when strict also for a warning or an unknown."""
        bad = {Status.FAIL, Status.WARN, Status.UNKNOWN} if strict else {Status.FAIL}
        return int(any(each.status in bad for each in self.results))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-safe data."""
        return {
            "checked": self.what,
            "account": self.account,
            "region": self.region,
            "zones": dict(self.zones),
            "counts": self.counts,
            "results": [each.to_dict() for each in self.results],
        }
