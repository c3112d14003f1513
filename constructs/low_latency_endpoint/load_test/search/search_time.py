"""How long a search takes: by the requests that its percentiles need, at the rates that it runs."""

from __future__ import annotations

import math

from ...report.numbers import readable
from .early_verdict import earliest_hold
from .run_plans import ENOUGH, RISE, SearchPlan, settle_seconds

# Limits of which the time is told, as multiples of the first rate; one number for all of them where
# they differ by less than that.
_LIMITS = {1.0: "is near the first rate", 10.0: "is ten times that", 0.5: "is half of it"}
_ALIKE = 1.5
# A step with so many times the requests that it needs is often clear before half of its time, and the
# first rates that confirm often hold with a confidence. Found by simulated searches, of which
# tests/load_test/test_search_time.py has some.
_MANY = 100
_CONFIRMATIONS, _CONFIRMATIONS_OF_MANY = 2.5, 2.0
_HALF_A_MINUTE = 30.0  # for which a step that confirms waits for a full minute, on average


def announcement(search: SearchPlan, first: float, *, whole_minutes: bool) -> str:
    """How long the search takes from its first rate on; empty where that rate cannot be judged."""
    times = {
        share: seconds_of_search(
            search, first, min(share * first, search.highest_rate), whole_minutes=whole_minutes
        )
        for share in _LIMITS
    }
    finite = {share: seconds for share, seconds in times.items() if math.isfinite(seconds)}
    if 1.0 not in finite:
        return ""
    more = "; more where the limit is not confirmed at once."
    if max(finite.values()) <= _ALIKE * min(finite.values()):
        return f"The search takes {about(max(finite.values()))}{more}"
    named = [f"{about(seconds)} if the limit {_LIMITS[share]}" for share, seconds in finite.items()]
    named[0] += f" ({readable(first, 3)} requests a second)"
    return f"The search takes {', '.join(named)}{more}"


def about(seconds: float) -> str:
    """A time for people.

    Examples
    --------
    >>> about(95), about(20)
    ('about 2 min', 'about 1 min')
    """
    return f"about {max(1, round(seconds / 60)):,} min"


def seconds_of_search(
    search: SearchPlan, first: float, limit: float, *, whole_minutes: bool
) -> float:
    """How long a search takes from its first rate on, if that is the limit; infinite if for too long."""
    reaches_end = limit >= search.highest_rate
    left = seconds_left(search, limit, 1.0 if reaches_end else RISE, whole_minutes=whole_minutes)
    if first > limit:
        return _seconds_down(search, first, limit) + left
    rate, seconds = first, left
    while RISE * rate <= limit:
        seconds += _clear(search, rate)
        rate *= RISE
    above = 0.0 if reaches_end else _missed(search, RISE * rate)
    return seconds + _guide(search, rate) + above


def _seconds_down(search: SearchPlan, first: float, limit: float) -> float:
    """The steps from a first rate above the limit to the rate that holds."""
    rate, seconds = first, 0.0
    while rate > limit:
        seconds += _missed(search, rate) if rate > RISE * limit else _guide(search, rate)
        rate /= RISE
    return seconds + _guide(search, rate)


def seconds_left(
    search: SearchPlan, rate: float, bracket: float, *, confirming: int = 0, whole_minutes: bool
) -> float:
    """How long a search goes on that has the limit between this rate and ``bracket`` times that.

    ``confirming``: steps that were to confirm a rate already, one after the other.
    """
    halvings = math.log2(math.log(bracket) / math.log1p(search.precision)) if bracket > 1 else 0.0
    guides = max(0, math.ceil(halvings - 1e-9))
    usual = _CONFIRMATIONS_OF_MANY if _has_many(search, rate) else _CONFIRMATIONS
    confirmations = max(1.0, usual - confirming)
    return guides * _guide(search, rate) + confirmations * _confirming(
        search, rate, whole_minutes=whole_minutes
    )


def _has_many(search: SearchPlan, rate: float) -> bool:
    return rate * search.seconds_at(rate) >= _MANY * search.needed


def _guide(search: SearchPlan, rate: float) -> float:
    """A step near the limit that shows the way."""
    seconds = search.seconds_at(rate)
    whole = settle_seconds(seconds, kept=False) + ENOUGH * seconds
    return (whole + _clear(search, rate)) / 2 if _has_many(search, rate) else whole


def _clear(search: SearchPlan, rate: float) -> float:
    """A step far below the limit."""
    seconds = search.seconds_at(rate)
    if math.isinf(seconds):
        return seconds
    return settle_seconds(seconds, kept=False) + earliest_hold(search.guide_looks(rate), rate)


def _missed(search: SearchPlan, rate: float) -> float:
    """A step far above the limit: its first look."""
    seconds = search.seconds_at(rate)
    if math.isinf(seconds):
        return seconds
    return settle_seconds(seconds, kept=False) + search.guide_looks(rate).seconds[0]


def _confirming(search: SearchPlan, rate: float, *, whole_minutes: bool) -> float:
    """A step that is to confirm a rate."""
    seconds = search.seconds_at(rate)
    waits = _HALF_A_MINUTE if whole_minutes and seconds >= 60 else 0.0
    return settle_seconds(search.confirms_for(rate)) + seconds + waits
