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
    Outcome,
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
#: Random arrivals may be fewer than are due.
_MORE = 1.05


@dataclass(frozen=True)
class Looks:
    """When a step is looked at, and with which chance of error."""

    seconds: tuple[float, ...]  # that count, at each look; the last is the step's end
    misses: tuple[float, ...]  # chance of a wrong verdict at each look; 0 where there can be none
    holds: tuple[float, ...]
    # seconds from which on it is as long as it should be: it ends when the rest would not tell
    whole: float
    hopes_until: float
    latency_ends: float  # seconds in which its latency must have become clear
    # whether it confirms; another step shows the way, and may be wrong more often
    confirms: bool = False
    # whether it shows the share of errors too; where it does not, no more than that share may fail
    # in it, and none at all in one that confirms
    covers_errors: bool = False
    failures_worth: float = 1.0  # how many failed at once in the steps before


def looks_of(
    goal: LatencyGoal,
    seconds: float,
    longest: float,
    rate: float,
    *,
    hold_error: float,
    holds_from: float = 0.0,
    latency_ends: float | None = None,
    failures_worth: float = 1.0,
) -> Looks:
    """When a step of that rate is looked at; one with ``holds_from`` confirms.

    Returns
    -------
    Looks
        Without ``covers_errors`` where the whole step has too few requests to show their share.
    """
    # Half of it to the first look that has the requests for it: far below the limit it decides.
    quantiles = [quantile_of(name) for name in goal.targets if not is_mean(name)]
    needed = max((samples_for(quantile, 1 - hold_error / 2) for quantile in quantiles), default=30)
    first_hold = max(holds_from, needed / rate)
    for_errors = _MORE * errors_need(goal, failures_worth) / rate
    confirms = holds_from > 0
    covers_errors = confirms and for_errors <= longest
    if covers_errors:
        first_hold = max(first_hold, for_errors)
    moments = _moments(seconds, longest, rate, first_hold if confirms else 0.0)
    possible = [moment for moment in moments if moment >= first_hold]
    holds = [
        0.0 if moment not in possible else hold_error / 2 / len(possible) for moment in moments
    ]
    if possible:
        holds[moments.index(possible[0])] += hold_error / 2
    misses = [(1 - goal.confidence) / len(moments)] * len(moments)
    return Looks(
        tuple(moments),
        tuple(misses),
        tuple(holds),
        whole=seconds,
        hopes_until=holds_from or seconds,
        latency_ends=latency_ends or longest,
        confirms=confirms,
        covers_errors=covers_errors,
        failures_worth=failures_worth,
    )


def earliest_hold(looks: Looks, rate: float) -> float:
    """Seconds after which a step of that rate is said to hold if nothing speaks against it."""
    blocks = _FEWEST_BLOCKS * max(1.0, _BLOCK_ANSWERS / rate)
    least = min(blocks, looks.whole)
    moments = zip(looks.seconds, looks.holds, strict=True)
    return next((at for at, error in moments if error and at >= least), looks.seconds[-1])


def errors_need(goal: LatencyGoal, failures_worth: float) -> float:
    """Fewest requests of a confirming step that can show the allowed share of errors."""
    if not goal.allowed_errors:
        return 0.0
    # The first look that may hold has half of the chance of error.
    confidence = 1 - (1 - goal.confidence) / 2
    return failures_worth * samples_for(1 - goal.allowed_errors, confidence)


def _moments(seconds: float, longest: float, rate: float, first_hold: float) -> list[float]:
    """The seconds at which a step is looked at, in order."""
    moments = {longest}
    at = max(EARLIEST, _BLOCK_ANSWERS / rate)
    while at <= _LAST_LOOK * seconds:
        moments.add(at)
        at *= _LOOK_AGAIN
    at = seconds
    while at <= _LAST_LOOK * longest:
        moments.add(at)
        at *= _LOOK_AGAIN
    if 0 < first_hold < longest:
        moments.add(first_hold)
    return sorted(moments)


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


def worth_of_failures(blocks: Sequence[Measurement]) -> float:
    """How many requests are worth an independent one, to tell how many fail: by their clusters."""
    answered = [block.answered for block in blocks]
    failed = [block.failed for block in blocks]
    return design_effect(answered, failed)


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
        self._latency_held = False  # at one of the looks
        self.verdict: Literal["held", "broken", "unclear", ""] = ""

    @property
    def failures_worth(self) -> float:
        """How many failed at once in the steps before."""
        return self._looks.failures_worth

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
        error = self._looks.holds[at]
        latency_holds = bool(error) and self._latency_holds(error)
        self._latency_held = self._latency_held or latency_holds
        if self._misses(self._looks.misses[at]):
            self.verdict = "broken"
        elif latency_holds and self._failures_hold(error):
            self.verdict = "held"
        elif self._counted >= self._looks.hopes_until and self._hopeless(
            max(self._looks.misses[at:]), max(self._looks.holds[at:])
        ):
            self.verdict = "unclear"

    def judged(self, whole: Judgement) -> Judgement:
        """The judgement of all that was measured, with the verdict that ended the step.

        Returns
        -------
        Judgement
            ``held`` only of a step that confirms, with the goal's confidence in every target.
        """
        # The generator's own limit comes first, and what only the last answers showed counts.
        if not self.verdict:  # it came to its end, which need not be that of a second
            self._counted = max(self._counted, self._looks.seconds[-1])
            self._look(len(self._looks.seconds) - 1)
        if whole.outcome == "client-bound":
            return replace(whole, kept=whole.kept or self.verdict == "held")
        after = f"after {self._counted:.0f} s"
        if self.verdict == "broken":
            reasons = (f"certain {after}", *whole.reasons)
            return replace(whole, outcome="broken", reasons=reasons, kept=False, latency_held=False)
        latency_held = self._looks.confirms and self._latency_held and whole.kept
        unclear = replace(whole, outcome="unclear", latency_held=latency_held)
        if self.verdict == "held" and whole.kept:
            return self._held(unclear, whole.outcome, after)
        said = f"not clear {after}"
        if self.verdict == "unclear":
            said += ", nor would it be at its end"
        return replace(unclear, reasons=(said, *whole.reasons))

    def _held(self, unclear: Judgement, at_once: Outcome, after: str) -> Judgement:
        """The judgement of a step that held as well as it was to."""
        said = f"held with {1 - sum(self._looks.holds):.0%} confidence {after}"
        if self._looks.covers_errors:
            return replace(unclear, outcome="held", reasons=(f"all {said}", *unclear.reasons))
        said = f"latency {said}"
        reasons = unclear.reasons
        if not self._looks.confirms:
            said += ", enough to go on"
        if not self._looks.confirms and at_once == "unclear":
            reasons = tuple(f"with {self._goal.confidence:.0%}: {reason}" for reason in reasons)
        return replace(unclear, reasons=(said, *reasons))

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

    def _latency_holds(self, alpha: float) -> bool:
        """Whether all targets but that of errors are met, with that chance of error."""
        # A step that is as long as it should be is judged by its requests, however few seconds.
        whole = self._counted >= self._looks.whole
        blocks = self._judged_blocks()
        if not whole and len(blocks) < _FEWEST_BLOCKS:
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

    def _failures_hold(self, alpha: float) -> bool:
        """Whether no more fail than may: with that chance of error in a step that is to show it.

        Each target has the whole chance of error: see :data:`.bounds.CONFIDENCE`.
        """
        blocks = self._judged_blocks()
        answered = [block.answered for block in blocks]
        failed = [block.failed for block in blocks]
        allowed = self._goal.allowed_errors
        if self._looks.covers_errors and allowed:
            worth = max(self._looks.failures_worth, worth_of_failures(blocks))
            return few_enough(answered, failed, worth, allowed, alpha)
        if self._looks.confirms or self._counted < self._looks.whole:
            return not any(failed)
        return sum(failed) <= allowed * sum(answered)

    def _judged_blocks(self) -> list[Measurement]:
        """Every block of a step that is as long as it should be; before, those that are whole."""
        return self._blocks if self._counted >= self._looks.whole else self._whole()

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
        """Whether the rest of the step would not tell, if all goes on as it did."""
        ends = self._looks.seconds[-1]
        if self._counted >= ends or self._overloaded():
            return False
        # A step that goes on for the sake of its errors does so while its latency holds.
        longer = max(1.0, self._looks.latency_ends / self._counted)
        blocks = self._whole()
        for name, target in self._goal.targets.items():
            if is_mean(name):
                continue
            counts, late = _late(blocks, name, target)
            share = 1 - quantile_of(name)
            worth = worth_of(blocks, name, target) / longer
            if not (
                few_enough(counts, late, worth, share, hold_error)
                or too_many(counts, late, share, miss_error, worth)
            ):
                return True
        if not self._looks.covers_errors or not self._goal.allowed_errors:
            return False
        answered = [block.answered for block in blocks]
        failed = [block.failed for block in blocks]
        worth = max(self._looks.failures_worth, worth_of_failures(blocks)) * self._counted / ends
        return not few_enough(answered, failed, worth, self._goal.allowed_errors, hold_error)


def bad_of(blocks: Sequence[Measurement]) -> tuple[list[int], list[int]]:
    """Of each block the requests that were answered, and those that were no good ones."""
    return [block.answered for block in blocks], [block.answered - block.good for block in blocks]
