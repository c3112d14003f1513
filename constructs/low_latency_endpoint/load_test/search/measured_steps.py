"""A step as it went: what the generator measured, second by second, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from ..engine.failure_causes import CONTAINERS, causes
from ..engine.latencies import milliseconds
from ..engine.measurement import Measurement
from ..engine.steps import FLAGGED_LAG_SHARE, Progress, StepResult, finite, only_late
from .bounds import design_effect
from .early_verdict import EarlyVerdict, bad_of, blocks_of, worth_of, worth_of_failures
from .judging import FAILURES, GOODPUT, Judgement, LatencyGoal, histogram_of, judge, piles_up


@dataclass(frozen=True)
class MeasuredStep:
    """One step that was run."""

    result: StepResult  # what the generator measured
    timeline: tuple[Progress, ...]  # second by second, its settling time included
    judgement: Judgement  # whether it held the goal; of a repeated step, all its runs together
    # why it was run: ``alone``, ``load``, ``rise``, ``bisect``, ``repeat``, ``confirm``
    purpose: str = "load"

    @property
    def offered(self) -> float | None:
        """Requests per second that were due on average; ``None`` for callers that wait."""
        step = self.result.step
        if step.arrivals is None:
            return None
        return step.arrivals.expected_count(step.seconds) / step.seconds

    @property
    def invocations(self) -> int:
        """Requests that an instance answered, as CloudWatch counts them: at least so many.

        Those of the settling too, and those that the container failed.
        """
        whole = sum(_invocations(second) for second in self.timeline)
        return max(whole, _invocations(self.result))

    @property
    def late(self) -> bool:
        """Whether requests started so late that it shows in their latency."""
        lag, latency = self.result.send_lag, self.result.latency
        return bool(lag.count and latency.count) and (
            lag.percentile(99) > FLAGGED_LAG_SHARE * latency.percentile(50)
        )

    @property
    def failures_worth(self) -> float:
        """How many failed requests are worth an independent one: as many as failed at once."""
        return worth_of_failures(blocks_of(self.settled))

    @property
    def settled(self) -> list[Progress]:
        """The seconds that count."""
        return settled_seconds(self.result, self.timeline)

    @property
    def shown(self) -> str:
        """The outcome for people; one caller alone is measured, not judged, unless it broke."""
        outcome = self.judgement.outcome
        if self.purpose == "alone" and outcome != "broken":
            return ""
        return "kept" if outcome == "unclear" and self.judgement.kept else outcome

    def to_dict(self) -> dict[str, Any]:
        """JSON: the step's result with its timeline and judgement."""
        return {
            **self.result.to_dict(),
            "purpose": self.purpose,
            "judgement": self.judgement.to_dict(),
            "timeline": [_second(progress) for progress in self.timeline],
        }


_SECONDS = ("p50", "p99", "send_lag_p99", "first_byte_p99", "first_token_p95", "inter_token_p95")


def _second(progress: Progress) -> dict[str, Any]:
    """One second in JSON; times in milliseconds, ``null`` without a sample."""
    content = {
        name: getattr(progress, name)
        for name in (
            "seconds",
            "sent",
            "completed",
            "failed",
            "rate",
            "cpu_share",
            "output_tokens",
            "good",
        )
    }
    for name in _SECONDS:
        content[f"{name}_ms"] = finite(1000 * getattr(progress, name))
    return content


def settled_seconds(result: StepResult, timeline: Sequence[Progress]) -> list[Progress]:
    """The seconds of a step that count."""
    return [second for second in timeline if second.seconds > result.step.settle_seconds]


def judged(
    goal: LatencyGoal,
    result: StepResult,
    timeline: Sequence[Progress] = (),
    early: EarlyVerdict | None = None,
) -> Judgement:
    """Judge a step, with what was certain of it before its end."""
    settled = settled_seconds(result, timeline)
    open_loop = result.step.arrivals is not None
    worth = _worth(goal, blocks_of(settled))
    if early is not None:
        worth[FAILURES] = max(worth[FAILURES], early.failures_worth)
    judge_it = partial(
        judge,
        goal,
        result,
        # Callers that wait for their answers cannot pile up.
        p50_by_second=[progress.p50 for progress in settled] if open_loop else (),
        worth=worth,
        piling_up=open_loop and piles_up(under_way(timeline, result.step.settle_seconds)),
    )
    judgement = judge_it(client_bound=result.client_bound)
    if judgement.outcome == "client-bound" and only_late(result) and not goal.of_tokens:
        in_spite = judge_it()
        judgement = in_spite if in_spite.latency_held and in_spite.kept else judgement
    return judgement if early is None else early.judged(judgement)


def _worth(goal: LatencyGoal, blocks: Sequence[Measurement]) -> dict[str, float]:
    found = {
        name: worth_of(blocks, name, target)
        for name, target in goal.targets.items()
        if any(block.histogram(histogram_of(name)).count for block in blocks)
    }
    return {**found, GOODPUT: design_effect(*bad_of(blocks)), FAILURES: worth_of_failures(blocks)}


def under_way(timeline: Sequence[Progress], settled: float) -> list[float]:
    """Requests without an answer at the end of each second that counts."""
    sums = accumulate(progress.sent - progress.completed - progress.failed for progress in timeline)
    return [
        float(count) for count, each in zip(sums, timeline, strict=True) if each.seconds > settled
    ]


def _invocations(measured: Measurement) -> int:
    found = causes(measured.errors)
    return measured.completed + sum(found[cause] for cause in CONTAINERS)


def turns_line(result: StepResult) -> str:
    """How far apart the turns of a conversation were."""
    return (
        f"{result.conversations:,} conversations at once, {milliseconds(result.between_turns)} "
        "from one turn to the next on average"
    )
