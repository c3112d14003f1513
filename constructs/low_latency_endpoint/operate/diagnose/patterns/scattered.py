"""Single slow periods that come again and again without a rhythm: no alarm sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from ....account.metrics import median
from ....report.numbers import readable
from ..events import after_starts
from ..findings import KNOWLEDGE_CENTER, Evidence, Remedy, kind
from ..view import ENOUGH_REQUESTS, PERIODS, VariantView, runs
from .yardstick import (
    Pattern,
    all_slow,
    hit_words,
    judged,
    kept,
    ratio,
    requests,
    share,
    then_and_otherwise,
)

SCATTERED = kind(
    "LLD136",
    "Single periods are slow, again and again",
    "slow periods have no rhythm, are never three of five, and hold a tenth of all requests",
    KNOWLEDGE_CENTER,
)

#: Share of all requests that came in slow periods: a few are anyone's.
_SHARE = 0.1
_SLOWER, _MORE_LOAD = 2.0, 1.25


def scattered(view: VariantView) -> Iterator[Pattern]:
    """Slow periods that are never three of five, and hit a good part of all requests."""
    slow = all_slow(view)
    apart = runs(slow, view.period)
    typical = median(requests(view).points.get(time, 0) for time in slow) or 0
    if (
        view.slow_times
        or len(apart) < PERIODS
        or typical < ENOUGH_REQUESTS
        or share(view, slow) < _SHARE
        or after_starts(view, slow)
        or (ratio(judged(view)[0].series, slow) or 0) < _SLOWER
    ):
        return
    gaps = [(later[0] - one[0]) / timedelta(minutes=1) for one, later in pairwise(apart)]
    load = ratio(view.load or requests(view), slow) or 1.0
    work = (
        f"{load:.1f} times the load then"
        if load >= _MORE_LOAD
        else "the load is the same then and otherwise"
    )
    yield Pattern(
        view.finding(
            SCATTERED,
            "medium",
            ("patterns over time", "single slow periods"),
            f"slow {len(apart)} times, for {readable(len(slow) / len(apart), 2)} periods in the mean, "
            f"{min(gaps):.0f} to {max(gaps):.0f} min apart, in no rhythm; never in "
            "three of five periods, which is what alarms see",
            Evidence(f"{then_and_otherwise(view, slow)}; {hit_words(view, slow)}"),
            Evidence(f"{work}; {view.utilization_words(slow)} then"),
            times=slow,
            remedies=[
                Remedy(
                    "containers[].environment",
                    "what stops the server for a while: garbage collection, long requests that "
                    "hold a worker, a cache that is filled anew",
                )
            ],
            besides="Compare the container's log, and the callers' longest requests, at these times.",
            risk=kept(view, slow),
        ),
        frozenset(slow),
    )
