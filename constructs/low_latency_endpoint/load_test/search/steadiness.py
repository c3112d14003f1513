"""Do the steps of a search agree? Where they do not, the endpoint itself changed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations

from ...report.numbers import readable
from .bounds import Bounds, mean_bounds, share_bounds
from .judging import FAILURES, GOODPUT, LatencyGoal, histogram_of, is_mean
from .measured_steps import MeasuredStep

NOT_ALIKE = "the endpoint did not answer alike at all times"
#: Of each of the two intervals: that they lie apart by chance has a probability of 0.1 %.
_CONFIDENCE = 0.99
#: Of a step whose seconds show how much its requests depend on each other.
_FEWEST_SECONDS = 10.0


def unsteadiness(goal: LatencyGoal, steps: Sequence[MeasuredStep]) -> str:
    """How two steps contradict each other by more than chance explains; empty if none do.

    They do where they differ at the same rate, or where the one at the lower rate is the worse one.
    Steps whose requests are few or depend on each other have wide intervals, and agree.
    """
    valid = [
        step
        for step in steps
        if step.offered is not None
        and step.judgement.outcome != "client-bound"
        and step.result.seconds >= _FEWEST_SECONDS
    ]
    for first, second in combinations(sorted(valid, key=_rate), 2):
        for name in _judged_names(goal):
            text = _contradiction(goal, first, second, name)
            if text:
                return text
    return ""


def _rate(step: MeasuredStep) -> float:
    return step.offered or 0.0


def _judged_names(goal: LatencyGoal) -> list[str]:
    """The targets, and the shares that are judged beside them."""
    shares = [FAILURES] if goal.goodput is None else [FAILURES, GOODPUT]
    return [*goal.targets, *shares]


def _contradiction(goal: LatencyGoal, low: MeasuredStep, high: MeasuredStep, name: str) -> str:
    """How the steps at a lower and at a higher rate contradict each other in one target, or none."""
    bounds = _bounds_of_both(goal, low, high, name)
    if bounds is None:
        return ""
    at_low, at_high = bounds
    if name == GOODPUT:
        worse_below = at_low.high < at_high.low
        worse_above = at_high.high < at_low.low
    else:
        worse_below = at_low.low > at_high.high
        worse_above = at_high.low > at_low.high
    same_rate = low.offered == high.offered
    if not (worse_below or (same_rate and worse_above)):
        return ""
    said = (
        f"{_said(goal, name, at_low)} at {readable(low.offered, 4)} requests a second "
        f"{minutes_text(low)}, and {_said(goal, name, at_high)}"
    )
    where = "" if same_rate else f" at {readable(high.offered, 4)}"
    return f"{said}{where} {minutes_text(high)}"


def minutes_text(step: MeasuredStep) -> str:
    """From when to when a step counted."""
    began = datetime.fromtimestamp(step.result.started_at, UTC)
    ended = datetime.fromtimestamp(step.result.ended_at, UTC)
    return f"from {began:%H:%M:%S} to {ended:%H:%M:%S} UTC"


def _bounds_of_both(
    goal: LatencyGoal, first: MeasuredStep, second: MeasuredStep, name: str
) -> tuple[Bounds, Bounds] | None:
    """Of a percentile the share of requests beyond its target; of others their own value."""
    steps = (first, second)
    samples = [_samples(step, name) for step in steps]
    if not all(samples):
        return None
    if name not in (FAILURES, GOODPUT) and is_mean(name):
        part = histogram_of(name)
        of_first = mean_bounds(first.result.histogram(part), _CONFIDENCE, samples[0])
        return of_first, mean_bounds(second.result.histogram(part), _CONFIDENCE, samples[1])
    counts = [_hits_and_requests(goal, step, name) for step in steps]
    worth = [requests / one for (_, requests), one in zip(counts, samples, strict=True)]
    if name == FAILURES:
        # A step in which none failed does not show how many would have failed at once.
        worth = [max(worth)] * 2
    return _share(*counts[0], worth[0]), _share(*counts[1], worth[1])


def _hits_and_requests(goal: LatencyGoal, step: MeasuredStep, name: str) -> tuple[int, int]:
    """How many requests failed, were good, or missed a target, and of how many."""
    result = step.result
    if name == FAILURES:
        return result.failed, result.sent
    if name == GOODPUT:
        return result.good, result.sent
    latencies = result.histogram(histogram_of(name))
    if is_mean(name):
        return 0, latencies.count
    return latencies.count_above(goal.targets[name]), latencies.count


def _samples(step: MeasuredStep, name: str) -> int:
    """How many independent requests a target was judged by."""
    judgement = step.judgement
    judged = {FAILURES: judgement.failures, GOODPUT: judgement.goodput}
    bounds = judged[name] if name in judged else judgement.bounds.get(name)
    return 0 if bounds is None else bounds.samples


def _share(hits: int, requests: int, worth: float) -> Bounds:
    """A share with its bounds, of so many requests that are worth an independent one each.

    Unlike the bounds that a limit rests on, these round: neither side is the safe one.
    """
    share = hits / requests
    bounds = share_bounds(round(hits / worth), max(1, round(requests / worth)), _CONFIDENCE)
    return Bounds(share, min(bounds.low, share), max(bounds.high, share), bounds.samples)


def _said(goal: LatencyGoal, name: str, bounds: Bounds) -> str:
    """One step's value in words."""
    if name == FAILURES:
        return f"{bounds.value:.2%} of the requests failed"
    if name == GOODPUT:
        return f"{bounds.value:.1%} of the answers were good"
    if is_mean(name):
        return f"{name} was {readable(1000 * bounds.value, 3)} ms"
    return f"{bounds.value:.2%} missed the target of {name}"
