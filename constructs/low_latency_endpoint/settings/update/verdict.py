"""What a team chose to fail on, and whether a change of settings does it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...errors import LowLatencyEndpointError
from ...options.effects import Effect
from ...plan.hourly_cost import StackCost
from .review import FileReview

MISTAKES = "mistakes"
FAIL_ON = {
    "refused": "a change that the deployment fails with",
    "replacement": "something that is replaced: callers of the old one fail",
    "deletion": "something that is deleted, or a settings file that is",
    "new-warning": "a warning that was not there before",
    "cost-increase": "an hour that costs more, by more than =PERCENT",
}
"""What a team can choose, and what it means. Mistakes in the settings fail in any case."""

_STANDING = ("at_least", "at_first", "at_most")  # an update is over in minutes
_EFFECTS = {"refused": Effect.REFUSED, "replacement": Effect.REPLACED, "deletion": Effect.DELETED}


class Limit(NamedTuple):
    """One thing to fail on."""

    what: str  # A key of :data:`FAIL_ON`, or :data:`MISTAKES`
    percent: float = 0.0  # by how much more something may be, where it is an increase

    def __str__(self) -> str:
        return f"{self.what}={self.percent:g}" if self.percent else self.what


def limit_of(text: str) -> Limit:
    """What a text such as ``cost-increase=10`` means."""
    what, has_percent, percent = text.strip().partition("=")
    if what not in FAIL_ON:
        raise ValueError(f"{text!r} is none of {', '.join(FAIL_ON)}")
    if not has_percent:
        return Limit(what)
    if what != "cost-increase":
        raise ValueError(f"{what} takes no percentage")
    try:
        value = float(percent.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise ValueError(f"{percent!r} is no percentage from 0")
    return Limit(what, value)


def breaches(reviews: Iterable[FileReview], limits: Iterable[Limit]) -> list[tuple[Limit, str]]:
    """What the files fail because of; nothing when they pass."""
    limits = [Limit(MISTAKES), *limits]
    return [
        (limit, f"{each.path}: {text}")
        for each in reviews
        for limit in limits
        for text in _found(each, limit)
    ]


def _found(review: FileReview, limit: Limit) -> Iterator[str]:
    if limit.what == MISTAKES:
        count = len(review.problems)
        if count:
            yield f"{count} mistake{'s' * (count != 1)} in the settings"
    elif limit.what == "new-warning":
        for key, text in review.gained_warnings:
            yield f"{key}: {text}"
    elif limit.what == "cost-increase":
        yield from _dearer(review, limit.percent)
    elif review.before_is_wrong and not review.problems:
        yield "the former file has mistakes, so nobody knows what the change does"
    else:
        yield from _effects(review, _EFFECTS[limit.what])


def _effects(review: FileReview, effect: Effect) -> Iterator[str]:
    if review.is_deleted and effect is Effect.DELETED:
        yield "the settings file is deleted"
    if review.comparison is None:
        return
    found = [
        f"{difference.endpoint or 'all endpoints'}: {each.text}"
        for difference in review.comparison.differences
        for each in difference.consequences
        if each.effect is effect
    ]
    yield from dict.fromkeys(found)


def _dearer(review: FileReview, percent: float) -> Iterator[str]:
    """Where it costs more; where nobody knows, and the instances are others, that too."""
    if review.after is None:
        return
    before, after = review.costs
    yield from _more(before, after, percent, "")
    if review.comparison is not None and review.comparison.changed_measures:
        try:
            former = review.comparison.cost_as_measured_before
        except LowLatencyEndpointError as error:
            yield f"with the former load-test result the plan does not hold: {error}"
        else:
            yield from _more(before, former, percent, " with the former load-test result")


def _more(before: StackCost, after: StackCost, percent: float, how: str) -> Iterator[str]:
    for moment in _STANDING:
        was, now = before.usd(moment), after.usd(moment)
        if was is None or now is None:
            if _instances(before) != _instances(after):
                missing = dict.fromkeys([*before.without_price, *after.without_price])
                yield (
                    f"the instances change{how}, and what that costs is not known without prices "
                    f"of {', '.join(missing)}"
                )
            return
        if now > was * (1 + percent / 100) + 0.005:  # half a cent is rounding
            yield f"{moment.replace('_', ' ')} {was:,.2f} -> {now:,.2f} US dollars per hour{how}"


def _instances(cost: StackCost) -> list[tuple[object, ...]]:
    return sorted(
        (each.instance_type, *(each.instances(moment) for moment in _STANDING))
        for each in cost.endpoints.values()
    )
