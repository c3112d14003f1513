"""What a team lets a change fail for, and whether it fails.

Start with :func:`breaches`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .costs import cost_increases, increases
from .effects import Effect
from .file_review import FileReview

MISTAKES = "mistakes"
FAIL_ON = {
    "refused": "a change that the deployment fails with",
    "replacement": "something that is replaced: callers of the old one fail",
    "deletion": "something that is deleted, or a settings file that is",
    "new-warning": "a warning that was not there before",
    "cost-increase": "an hour that costs more, by more than =PERCENT",
}
"""What a team can choose, and what it means. Mistakes in the settings fail in any case."""

_EFFECTS = {"refused": Effect.REFUSED, "replacement": Effect.REPLACED, "deletion": Effect.DELETED}


class FailsOn(NamedTuple):
    """One thing to fail on."""

    what: str  # A key of :data:`FAIL_ON`, or :data:`MISTAKES`
    percent: float = 0.0  # by how much more something may be, where it is an increase

    def __str__(self) -> str:
        return f"{self.what}={self.percent:g}" if self.percent else self.what


def limit_of(text: str) -> FailsOn:
    """What a text such as ``cost-increase=10`` means."""
    what, has_percent, percent = text.strip().partition("=")
    if what not in FAIL_ON:
        raise ValueError(f"{text!r} is none of {', '.join(FAIL_ON)}")
    if not has_percent:
        return FailsOn(what)
    if what != "cost-increase":
        raise ValueError(f"{what} takes no percentage")
    try:
        value = float(percent.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise ValueError(f"{percent!r} is no percentage from 0")
    return FailsOn(what, value)


def breaches(reviews: Iterable[FileReview], limits: Iterable[FailsOn]) -> list[tuple[FailsOn, str]]:
    """What the files fail because of; nothing when they pass."""
    limits = [FailsOn(MISTAKES), *limits]
    return [
        (limit, f"{file_review.path}: {text}")
        for file_review in reviews
        for limit in limits
        for text in _found(file_review, limit)
    ]


def _found(review: FileReview, limit: FailsOn) -> Iterator[str]:
    if limit.what == MISTAKES:
        count = len(review.problems)
        if count:
            yield f"{count} mistake{'s' * (count != 1)} in the settings"
    elif limit.what == "new-warning":
        for key, text in review.gained_warnings:
            yield f"{key}: {text}"
    elif limit.what == "cost-increase":
        if review.comparison is not None:
            yield from cost_increases(review.comparison, limit.percent)
        elif review.after is not None:
            yield from increases(*review.costs, limit.percent, moved=False)
    elif review.before_is_wrong and not review.problems:
        yield "the former file has mistakes, so nobody knows what the change does"
    else:
        yield from _effects(review, _EFFECTS[limit.what])


def _effects(review: FileReview, effect: Effect) -> Iterator[str]:
    if review.is_deleted and effect is Effect.DELETED:
        yield "the settings file is deleted"
    if review.taken and effect is Effect.REFUSED:
        yield review.refusal
    if review.comparison is None:
        return
    stack = review.comparison.stack
    texts = [
        f"{row.endpoint or 'all endpoints'}: {row.text}"
        for row in stack.rows
        if row.effect is effect
    ]
    said = {row.text for row in stack.rows}
    texts += [
        f"{key}: {outcome.text}"
        for key, outcome in stack.outcomes.items()
        if outcome.effect is effect and outcome.text not in said
    ]
    yield from dict.fromkeys(texts)
