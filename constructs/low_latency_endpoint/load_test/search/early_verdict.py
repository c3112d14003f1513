"""Ends a step as soon as its verdict is certain, and reckons that it looked more than once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from ..engine.latencies import LatencyHistogram
from ..engine.measurement import Measurement
from ..engine.steps import Progress, Step
from .bounds import binomial_tail, design_effect, few_enough, half_width, samples_for, too_many
from .judging import (
    INTER_TOKEN,
    Judgement,
    LatencyGoal,
    histogram_of,
    is_mean,
    piles_up,
    quantile_of,
    rises,
    without_prefix,
)

#: Seconds before which no step ends.
EARLIEST = 3.0
_LOOK_AGAIN, _LAST_LOOK = 1.5, 0.85
#: Answers that a block of whole seconds has at least, and blocks that show how seconds differ.
_BLOCK_ANSWERS, _FEWEST_BLOCKS = 20, 6
_SLOW = 90.0


@dataclass(frozen=True)
class Looks:
    """When a step is looked at, and with which chance of error."""

    seconds: tuple[float, ...]  # that count, at each look; the last is the step's end
    misses: tuple[float, ...]  # chance of a wrong verdict at each look; 0 where there can be none
    holds: tuple[float, ...]
    # seconds from which on it is as long as it should be: it ends when even twice as long would
    # not tell
    whole: float
    hopes_until: float


def looks_of(
    goal: LatencyGoal,
    seconds: float,
    longest: float,
    rate: float,
    *,
    hold_error: float,
    holds_from: float = 0.0,
) -> Looks:
    """When a step of that rate is looked at."""
    moments = []
    at = max(EARLIEST, _BLOCK_ANSWERS / rate)
    while at <= _LAST_LOOK * seconds:
        moments.append(at)
        at *= _LOOK_AGAIN
    at = seconds
    while at <= _LAST_LOOK * longest:
        moments.append(at)
        at *= _LOOK_AGAIN
    moments.append(longest)
    moments = sorted({*moments, *([holds_from] if holds_from else [])})
    # Half of it to the first look that has the requests for it: far below the limit it decides.
    quantiles = [quantile_of(name) for name in goal.targets if not is_mean(name)]
    needed = max((samples_for(quantile, 1 - hold_error / 2) for quantile in quantiles), default=30)
    possible = [moment for moment in moments if moment >= max(holds_from, needed / rate)]
    holds = [
        0.0 if moment not in possible else hold_error / 2 / len(possible) for moment in moments
    ]
    if possible:
        holds[moments.index(possible[0])] += hold_error / 2
    misses = [(1 - goal.confidence) / len(moments)] * len(moments)
    return Looks(tuple(moments), tuple(misses), tuple(holds), seconds, holds_from or seconds)


def blocks_of(seconds: Iterable[Progress]) -> list[Measurement]:
    """Seconds that count, put together until they can be compared; the last has what is left."""
    blocks = [Measurement()]
    for progress in seconds:
        _add(blocks, progress)
    return blocks


def _add(blocks: list[Measurement], second: Progress) -> None:
    if blocks[-1].answered >= _BLOCK_ANSWERS:
        blocks.append(Measurement())
    blocks[-1].add(second)


def worth_of(blocks: Sequence[Measurement], statistic: str, target: float) -> float:
    """How many requests, or gaps, are worth one independent one: those that wait are late together.

    A queue's stays above one level are like those above another. So the many above p90 tell how the
    few late ones cluster, also where by chance none is late.
    """
    found = LatencyHistogram.sum(block.histogram(histogram_of(statistic)) for block in blocks)
    levels = (target, found.percentile(_SLOW)) if found.count else ()
    return max((design_effect(*_late(blocks, statistic, level)) for level in levels), default=1.0)


def _late(
    blocks: Sequence[Measurement], statistic: str, level: float
) -> tuple[list[int], list[int]]:
    histograms = [block.histogram(histogram_of(statistic)) for block in blocks]
    return [histogram.count for histogram in histograms], [
        histogram.count_above(level) for histogram in histograms
    ]


class EarlyVerdict:
    """Follows a step second by second, and says when its verdict is certain."""

    def __init__(self, goal: LatencyGoal, step: Step, looks: Looks) -> None:
        self._goal, self._step, self._looks = goal, step, looks
        self._blocks = [Measurement()]
        self._sent: list[int] = []
        self._p50: list[float] = []
        self._outstanding = 0
        self._under_way: list[float] = []
        self._next = 0
        self._counted = 0.0
        self.verdict: Literal["held", "broken", "unclear", ""] = ""

    def add(self, second: Progress) -> bool:
        """Take a second of the step; whether its verdict is certain."""
        self._sent.append(second.sent)
        self._outstanding += second.sent - second.completed - second.failed
        counted = second.seconds - self._step.settle_seconds
        if counted < 0.5:  # most of that second did not count
            return False
        _add(self._blocks, second)
        self._under_way.append(self._outstanding)
        self._p50.append(second.p50)
        self._counted = counted
        moments, due = self._looks.seconds, self._next
        while self._next < len(moments) and moments[self._next] <= counted:
            self._next += 1
        if due < self._next and not self.verdict:
            self._look(self._next - 1)  # of several that are due at once the last
        return bool(self.verdict)

    def _look(self, at: int) -> None:
        if self._misses(self._looks.misses[at]):
            self.verdict = "broken"
        elif self._looks.holds[at] and self._holds(self._looks.holds[at]):
            self.verdict = "held"
        elif self._counted >= self._looks.hopes_until and self._hopeless(
            max(self._looks.misses[at:]), max(self._looks.holds[at:])
        ):
            self.verdict = "unclear"

    def judged(self, whole: Judgement) -> Judgement:
        """The judgement of all that was measured, with the verdict that ended the step."""
        # The generator's own limit comes first, and what only the last answers showed counts.
        if not self.verdict:  # it came to its end, which need not be that of a second
            self._counted = max(self._counted, self._looks.seconds[-1])
            self._look(len(self._looks.seconds) - 1)
        if whole.outcome == "client-bound":
            return replace(whole, kept=whole.kept or self.verdict == "held")
        verdict = self.verdict or "unclear"
        if verdict == "held" and not whole.kept:
            return replace(whole, outcome="unclear")
        after = f"after {self._counted:.0f} s"
        said, reasons = f"certain {after}", whole.reasons
        if verdict == "unclear":
            said = f"not clear {after}"
            if self.verdict:
                said += ", nor would it be after twice the time"
        elif verdict == "held" and whole.outcome == "unclear":
            said = f"held with {1 - sum(self._looks.holds):.0%} confidence {after}, enough to go on"
            reasons = tuple(f"with {self._goal.confidence:.0%}: {reason}" for reason in reasons)
        kept = whole.kept and verdict != "broken"
        return replace(whole, outcome=verdict, reasons=(said, *reasons), kept=kept)

    def _whole(self) -> list[Measurement]:
        return self._blocks if self._blocks[-1].answered >= _BLOCK_ANSWERS else self._blocks[:-1]

    def _overloaded(self) -> bool:
        return rises(self._p50) or piles_up(self._under_way)

    def _misses(self, alpha: float) -> bool:
        # Any of them may break it.
        alpha /= len(self._goal.targets) + 1 + (self._goal.goodput is not None)
        blocks = self._whole()
        # Of all that the step will send: more late ones than it may bear are lost already.
        whole = round(fmean(self._sent) * self._looks.seconds[-1])
        allowed, failed = self._goal.allowed_errors, [block.failed for block in blocks]
        if allowed == 0 and any(failed):
            return True
        alone = 1.0 if self._counted >= self._looks.whole else None
        if too_many([block.answered for block in blocks], failed, allowed, alpha, alone):
            return True
        # Ever more late ones are no chance, however they depend on each other.
        overloaded = 1.0 if self._overloaded() else None
        for name, target in self._goal.targets.items():
            if is_mean(name):
                histograms = [block.histogram(histogram_of(name)) for block in blocks]
                means = [histogram.mean for histogram in histograms if histogram.count]
                if (
                    len(means) >= _FEWEST_BLOCKS
                    and fmean(means) - half_width(means, alpha) > target
                ):
                    return True
                continue
            counts, late = _late(blocks, name, target)
            share, gaps = 1 - quantile_of(name), name.startswith(INTER_TOKEN)
            worth = design_effect(counts, late) if gaps else overloaded
            if too_many(counts, late, share, alpha, worth):
                return True
            lost = sum(late) + self._waiting(name, target)
            worth = overloaded or design_effect(counts, late)
            n, beyond = math.ceil(whole / worth), round(lost / worth)
            if not gaps and binomial_tail(n, beyond, share) <= alpha:
                return True
        if (wanted := self._goal.goodput) is not None:
            counts, bad = bad_of(blocks)
            return too_many(counts, bad, 1 - wanted, alpha, overloaded)
        return False

    def _waiting(self, statistic: str, target: float) -> int:
        """Requests that have waited for longer than the target, and have no answer yet."""
        # Of a stream under way it is not known whether it has begun.
        if without_prefix(statistic) != statistic:
            return 0
        return max(0, self._outstanding - sum(self._sent[-math.ceil(target) :]))

    def _holds(self, alpha: float) -> bool:
        # A step that is as long as it should be is judged by its requests, however few seconds.
        whole = self._counted >= self._looks.whole
        blocks = self._blocks if whole else self._whole()
        failed, answered = (
            sum(getattr(block, n) for block in blocks) for n in ("failed", "answered")
        )
        bears = self._goal.allowed_errors if whole else 0.0
        if failed > bears * answered or not (whole or len(blocks) >= _FEWEST_BLOCKS):
            return False
        waiting = any(self._waiting(*target) for target in self._goal.targets.items())
        if waiting or self._overloaded():
            return False
        if (wanted := self._goal.goodput) is not None:
            counts, bad = bad_of(blocks)
            if not few_enough(counts, bad, design_effect(counts, bad), 1 - wanted, alpha):
                return False
        return bool(self._goal.targets) and all(
            self._keeps(name, target, blocks, alpha) for name, target in self._goal.targets.items()
        )

    def _keeps(self, name: str, target: float, blocks: Sequence[Measurement], alpha: float) -> bool:
        histograms = [block.histogram(histogram_of(name)) for block in blocks]
        if not all(histogram.count for histogram in histograms):
            return False
        if is_mean(name):
            means = [histogram.mean for histogram in histograms]
            return fmean(means) + half_width(means, alpha) <= target
        worth = worth_of(blocks, name, target)
        return few_enough(*_late(blocks, name, target), worth, 1 - quantile_of(name), alpha)

    def _hopeless(self, miss_error: float, hold_error: float) -> bool:
        """Whether even twice the time would not tell, if all goes on as it did."""
        longer = self._looks.seconds[-1] / self._counted
        if longer <= 1 or self._overloaded():
            return False
        blocks = self._whole()
        for name, target in self._goal.targets.items():
            if is_mean(name):
                continue
            counts, late = _late(blocks, name, target)
            share, worth = 1 - quantile_of(name), worth_of(blocks, name, target)
            if not (
                few_enough(counts, late, worth / longer, share, hold_error)
                or too_many(counts, late, share, miss_error, worth / longer)
            ):
                return True
        return False


def bad_of(blocks: Sequence[Measurement]) -> tuple[list[int], list[int]]:
    """Of each block the requests that were answered, and those that were no good ones."""
    return [block.answered for block in blocks], [block.answered - block.good for block in blocks]
