"""What a team chose to fail on, and whether a pull request does it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..settings.update.effects import Effect
from .changes import FileReview, Latency

FAIL_ON = {
    "error": "a settings file with mistakes",
    "refused": "a change that the deployment fails with",
    "replacement": "something that is replaced: callers of the old one fail",
    "deletion": "something that is deleted, or a settings file that is",
    "new-warning": "a warning that was not there before",
    "cost-increase": "an hour that costs more, by more than =PERCENT",
    "p99-increase": "a simulated p99 that is longer, by more than =PERCENT",
    "nothing": "nothing at all: the check only tells",
}
"""What a team can choose, and what it means."""

BY_DEFAULT = ("refused", "error")
_WITH_PERCENT = ("cost-increase", "p99-increase")
_STANDING = ("at_least", "at_first", "at_most")  # an update is over in minutes
_EFFECTS = {"refused": Effect.REFUSED, "replacement": Effect.REPLACED, "deletion": Effect.DELETED}


class Limit(NamedTuple):
    """One thing to fail on.

    Attributes
    ----------
    what : str
        A key of :data:`FAIL_ON`.
    percent : float
        By how much more something may be, where it is an increase.
    """

    what: str
    percent: float = 0.0

    def __str__(self) -> str:
        return f"{self.what}={self.percent:g}" if self.percent else self.what


def limit_of(text: str) -> Limit:
    """What a text such as ``cost-increase=10`` means.

    Raises
    ------
    ValueError
        For any other text.

    Examples
    --------
    >>> limit_of("cost-increase=10%"), limit_of("refused")
    (Limit(what='cost-increase', percent=10.0), Limit(what='refused', percent=0.0))
    """
    what, has_percent, percent = text.strip().partition("=")
    if what not in FAIL_ON:
        raise ValueError(f"{text!r} is none of {', '.join(FAIL_ON)}")
    if not has_percent:
        return Limit(what)
    if what not in _WITH_PERCENT:
        raise ValueError(f"{what} takes no percentage")
    try:
        value = float(percent.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6:
        raise ValueError(f"{percent!r} is no percentage from 0")
    return Limit(what, value)


def breaches(reviews: Iterable[FileReview], limits: Iterable[Limit]) -> list[tuple[Limit, str]]:
    """What the pull request fails because of; nothing when it passes."""
    limits = list(limits)
    return [
        (limit, f"{each.path}: {text}")
        for each in reviews
        for limit in limits
        for text in _found(each, limit)
    ]


def _found(review: FileReview, limit: Limit) -> Iterator[str]:
    if limit.what == "error":
        count = len(review.problems)
        if count:
            yield f"{count} mistake{'s' * (count != 1)} in the settings"
    elif limit.what == "new-warning":
        for key, text in review.gained_warnings:
            yield f"{key}: {text}"
    elif limit.what == "cost-increase":
        yield from _dearer(review, limit.percent)
    elif limit.what == "p99-increase":
        for key, latency in review.latencies.items():
            if text := _slower(latency, limit.percent):
                yield f"{key}: {text}"
    elif limit.what in _EFFECTS:
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
    for moment in _STANDING:
        was, now = before.usd(moment), after.usd(moment)
        if was is None or now is None:
            if _instances(review, 0) != _instances(review, 1):
                missing = dict.fromkeys([*before.without_price, *after.without_price])
                yield (
                    "the instances change, and what that costs is not known without prices of "
                    f"{', '.join(missing)}"
                )
            return
        if now > was * (1 + percent / 100) + 0.005:  # half a cent is rounding
            yield f"{moment.replace('_', ' ')} {was:,.2f} -> {now:,.2f} US dollars per hour"


def _instances(review: FileReview, side: int) -> list[tuple[object, ...]]:
    return sorted(
        (each.instance_type, *(each.instances(moment) for moment in _STANDING))
        for each in review.costs[side].endpoints.values()
    )


def _slower(latency: Latency, percent: float) -> str:
    """What to say when p99 is longer beyond the simulation's uncertainty; else empty."""
    before, after = latency.before, latency.after
    if isinstance(before, str):
        return ""
    if isinstance(after, str):
        return f"p99 was {1000 * before.mean:.4g} ms and is {after}" if after else ""
    if after.low > before.high and after.mean > before.mean * (1 + percent / 100):
        return f"p99 {1000 * before.mean:.4g} -> {1000 * after.mean:.4g} ms, simulated"
    return ""
