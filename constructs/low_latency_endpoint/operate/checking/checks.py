"""Runs checks: small functions over a frozen context, each yielding outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ...account.calls import Account
from ...account.network import zones
from ...account.sessions import Unreadable
from ...errors import AWS_DOCS
from .results import Outcome, Report, Result, unknown

C = TypeVar("C")

_GIVEN_UP = "something else that it builds on could not be read"


@dataclass(frozen=True, slots=True)
class Check(Generic[C]):
    """One check."""

    id: str  # stable, such as ``LLP101``
    title: str  # what must hold, in a few words
    how: str  # how it is found out; empty where the title says it
    source: str  # page on which AWS states it; empty when the check is the library's own
    # context to outcomes. Nothing is yielded where the check does not apply; what cannot be read
    # is left to raise :class:`~low_latency_endpoint.account.calls.Unreadable`.
    find: Callable[[C], Iterable[Outcome]]

    def results(self, context: C, subject: str = "") -> Iterator[Result]:
        """Run it; what cannot be read becomes ``unknown``."""
        for outcome in guarded(self.find, context):
            yield Result(
                id=self.id,
                title=self.title,
                status=outcome.status,
                subject=" ".join(filter(None, (subject, outcome.about))),
                evidence=outcome.evidence,
                fix=outcome.fix,
                source=self.source,
            )


_CHECKS: dict[str, Check[Any]] = {}


def of_part(part: str, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Outcomes that say of which part of the check's subject they are."""
    for each in outcomes:
        yield replace(each, about=" ".join(filter(None, (part, each.about))))


def check(
    id: str, title: str, *, how: str = "", source: str = ""
) -> Callable[[Callable[[C], Iterable[Outcome]]], Check[C]]:
    """Make and register a check; a source that starts with ``/`` is a page of AWS's."""

    def checking(find: Callable[[C], Iterable[Outcome]]) -> Check[C]:
        page = AWS_DOCS + source if source.startswith("/") else source
        _CHECKS[id] = made = Check(id, title, how, page, find)
        return made

    return checking


def checks() -> Iterator[Check[Any]]:
    """All checks registered, by id."""
    return iter(sorted(_CHECKS.values(), key=lambda each: each.id))


def guarded(
    find: Callable[..., Iterable[Outcome]], *arguments: Any, about: str = ""
) -> Iterator[Outcome]:
    """The outcomes of a function; when AWS refuses midway, the last one is ``unknown``."""
    try:
        yield from find(*arguments)
    except Unreadable as refusal:
        yield unknown(refusal.evidence or _GIVEN_UP, refusal.fix, about=about)


def run_checks(
    what: str,
    account: Account,
    steps: Sequence[tuple[Check[Any], Any, str]],
    on_check: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Run checks by their ids, then in the order given."""
    number, named = "", {}
    with suppress(Unreadable):
        number = account.account_id()
    found: list[Result] = []
    for done, (each, context, subject) in enumerate(sorted(steps, key=lambda step: step[0].id)):
        if on_check:
            on_check(each.title, done, len(steps))
        found += each.results(context, subject)
    with suppress(Unreadable):
        named = zones(account)
    return Report(what, number, account.region, tuple(found), named)
