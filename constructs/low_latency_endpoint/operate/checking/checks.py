"""Checks: small functions over a frozen context, each giving outcomes; and the report of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from ...account.calls import Account
from ...account.network import zones
from ...account.sessions import Unreadable
from ...errors import AWS_DOCS

OnCheck = Callable[[str, int, int], None]

_GIVEN_UP = "something else that it builds on could not be read"


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


Found = Outcome | Iterable[Outcome] | None


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
        return {
            str(status): sum(result.status is status for result in self.results)
            for status in Status
        }

    def exit_status(self, *, strict: bool = False) -> int:
        """1 when something fails, else 0; when strict also for a warning or an unknown."""
        bad = {Status.FAIL, Status.WARN, Status.UNKNOWN} if strict else {Status.FAIL}
        return int(any(result.status in bad for result in self.results))

    def to_dict(self) -> dict[str, Any]:
        return {
            "checked": self.what,
            "account": self.account,
            "region": self.region,
            "zones": dict(self.zones),
            "counts": self.counts,
            "results": [result.to_dict() for result in self.results],
        }


#: A part of a check's subject, often empty, and what the check's function takes after the context.
Part = tuple[Any, ...]


def _whole(context: Any) -> Iterable[Part]:
    return [("",)]


@dataclass(frozen=True, slots=True)
class Check:
    id: str  # stable, such as ``LLP101``
    title: str  # what must hold, in a few words
    how: str  # how it is found out; empty where the title says it
    source: str  # page on which AWS states it; empty when the check is the library's own
    # context to outcomes. Nothing is given where the check does not apply; what cannot be read
    # is left to raise :class:`~low_latency_endpoint.account.calls.Unreadable`.
    find: Callable[..., Found]
    of_endpoint: bool  # runs once for each endpoint, on its context; else once for all
    each: Callable[[Any], Iterable[Part]]  # context to the parts that it looks at one by one

    def outcomes(self, context: Any) -> Iterator[Outcome]:
        for about, *more in self.each(context):
            yield from guarded(self.find, context, *more, about=about)

    def results(self, context: Any, subject: str = "") -> Iterator[Result]:
        """Run it; what cannot be read becomes ``unknown``."""
        for outcome in guarded(self.outcomes, context):
            yield Result(
                id=self.id,
                title=self.title,
                status=outcome.status,
                subject=" ".join(filter(None, (subject, outcome.about))),
                evidence=outcome.evidence,
                fix=outcome.fix,
                source=self.source,
            )


_CHECKS: dict[str, Check] = {}


def check(
    id: str,
    title: str,
    *,
    how: str = "",
    source: str = "",
    of_endpoint: bool = False,
    each: Callable[[Any], Iterable[Part]] = _whole,
) -> Callable[[Callable[..., Found]], Check]:
    """Make and register a check; a source that starts with ``/`` is a page of AWS's."""

    def checking(find: Callable[..., Found]) -> Check:
        if id in _CHECKS:
            raise ValueError(f"check {id} is already registered: {_CHECKS[id].title}")
        page = AWS_DOCS + source if source.startswith("/") else source
        _CHECKS[id] = made = Check(id, title, how, page, find, of_endpoint, each)
        return made

    return checking


endpoint_check = partial(check, of_endpoint=True)


def checks(area: str = "") -> list[Check]:
    """The checks registered whose ids begin so, by id."""
    return [_CHECKS[name] for name in sorted(_CHECKS) if name.startswith(area)]


def guarded(find: Callable[..., Found], *arguments: Any, about: str = "") -> Iterator[Outcome]:
    """The outcomes of a function, ``about`` a part of the subject; a refusal is ``unknown``."""
    try:
        found = find(*arguments)
        for each in (found,) if isinstance(found, Outcome) else found or ():
            yield replace(each, about=" ".join(filter(None, (about, each.about))))
    except Unreadable as refusal:
        yield unknown(refusal.evidence or _GIVEN_UP, refusal.fix, about=about)


class Endpoints(Protocol):
    """What is checked: an account, and the endpoints there, each with its key."""

    @property
    def account(self) -> Account: ...

    @property
    def endpoints(self) -> tuple[Any, ...]: ...


def run_checks(area: str, what: str, context: Endpoints, on_check: OnCheck | None) -> Report:
    steps: list[tuple[Check, Any, str]] = []
    for check in checks(area):
        if not check.of_endpoint:
            steps.append((check, context, ""))
            continue
        try:
            steps += [(check, endpoint, endpoint.key) for endpoint in context.endpoints]
        except Unreadable:  # which endpoints there are is not known: each of their checks says so
            steps.append((replace(check, each=lambda context: context.endpoints), context, ""))
    account, number, named = context.account, "", {}
    with suppress(Unreadable):
        number = account.account_id()
    results: list[Result] = []
    for done, (each, one, subject) in enumerate(steps):
        if on_check:
            on_check(each.title, done, len(steps))
        results += each.results(one, subject)
    with suppress(Unreadable):
        named = zones(account)
    return Report(what, number, account.region, tuple(results), named)
