"""A step as it went: what the generator measured, second by second, and how it is judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from ...report.numbers import readable
from ..engine.latencies import LatencyHistogram, milliseconds
from ..engine.measurement import Measurement
from ..engine.steps import FLAGGED_LAG_SHARE, Progress, StepResult, finite, only_late
from .bounds import design_effect
from .early_verdict import EarlyVerdict, bad_of, blocks_of, worth_of
from .judging import GOODPUT, Judgement, LatencyGoal, histogram_of, judge, piles_up


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
    def late(self) -> bool:
        """Whether requests started so late that it shows in their latency."""
        lag, latency = self.result.send_lag, self.result.latency
        return bool(lag.count and latency.count) and (
            lag.percentile(99) > FLAGGED_LAG_SHARE * latency.percentile(50)
        )

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


def judged(
    goal: LatencyGoal,
    result: StepResult,
    timeline: Sequence[Progress] = (),
    early: EarlyVerdict | None = None,
) -> Judgement:
    """Judge a step, with what was certain of it before its end."""
    settled = [progress for progress in timeline if progress.seconds > result.step.settle_seconds]
    open_loop = result.step.arrivals is not None
    judge_it = partial(
        judge,
        goal,
        result,
        # Callers that wait for their answers cannot pile up.
        p50_by_second=[progress.p50 for progress in settled] if open_loop else (),
        worth=_worth(goal, blocks_of(settled)),
        piling_up=open_loop and piles_up(under_way(timeline, result.step.settle_seconds)),
    )
    judgement = judge_it(client_bound=result.client_bound)
    if judgement.outcome == "client-bound" and only_late(result) and not goal.of_tokens:
        in_spite = judge_it()
        judgement = in_spite if in_spite.outcome == "held" else judgement
    return judgement if early is None else early.judged(judgement)


def _worth(goal: LatencyGoal, blocks: Sequence[Measurement]) -> dict[str, float]:
    found = {
        name: worth_of(blocks, name, target)
        for name, target in goal.targets.items()
        if any(block.histogram(histogram_of(name)).count for block in blocks)
    }
    return {**found, GOODPUT: design_effect(*bad_of(blocks))}


def under_way(timeline: Sequence[Progress], settled: float) -> list[float]:
    """Requests without an answer at the end of each second that counts."""
    sums = accumulate(progress.sent - progress.completed - progress.failed for progress in timeline)
    return [
        float(count) for count, each in zip(sums, timeline, strict=True) if each.seconds > settled
    ]


def summary_lines(result: StepResult) -> list[str]:
    """Percentiles with what they rest on, send lag, the generator's own load, and its verdict."""
    lines = [
        f"{result.sent:,} of {result.intended:,} requests that were due were sent, "
        f"{result.completed:,} answered well, {result.failed:,} failed"
    ]
    lines += [f"  {count:,} times {kind}" for kind, count in result.failures.items()]
    lines += _histogram(f"latency from the intended start, of {_counted(result)}", result.latency)
    if result.first_byte is not None:
        lines += _histogram("first byte from the intended start", result.first_byte)
    lines += _token_lines(result)
    if result.refused.count:
        p50, worst = (1000 * seconds for seconds in result.refused.quantiles((0.5, 1)))
        lines.append(
            f"in none of these percentiles: {result.refused.count:,} requests that were "
            f"refused or broke off, after, ms: p50 {p50:.2f}, max {worst:.2f}"
        )
    if result.send_lag.count:
        p50, p99, worst = (1000 * seconds for seconds in result.send_lag.quantiles((0.5, 0.99, 1)))
        lines.append(f"requests started late by, ms: p50 {p50:.3f}, p99 {p99:.3f}, max {worst:.3f}")
    lines.append(
        f"generator: {result.processes} process{'es' * (result.processes != 1)}, busiest "
        f"{result.cpu_share:.0%} of a core, "
        f"{1e6 * result.cpu_seconds_per_request:.0f} us of processor time a request"
    )
    lines += [f"warning: {warning}" for warning in result.warnings]
    lines += [f"client-bound: result invalid: {one}" for one in result.client_bound]
    return lines


def _token_lines(result: StepResult) -> list[str]:
    """Lines about a language model's answers; none for other models."""
    tokens = result.tokens
    if tokens is None:
        return []
    streams = f"of {tokens.per_token.count:,} streams"
    return [
        *_histogram("time to first token from the intended start", tokens.first_token),
        *_histogram(f"between tokens, all gaps {streams}", tokens.inter_token),
        *_histogram(f"per output token, {streams}", tokens.per_token),
        f"{readable(result.token_rate, 4)} output tokens a second; {tokens.output_tokens:,} output and "
        f"{tokens.prompt_tokens:,} prompt tokens, {tokens.cached_tokens:,} of these cached; "
        f"goodput {result.goodput:.1%}",
        *([turns_line(result)] if result.conversations else []),
    ]


def turns_line(result: StepResult) -> str:
    """How far apart the turns of a conversation were."""
    return (
        f"{result.conversations:,} conversations at once, {milliseconds(result.between_turns)} "
        "from one turn to the next on average"
    )


def _counted(result: StepResult) -> str:
    """What the percentiles are of."""
    waited = result.unanswered
    answers = f"{result.latency.count - waited:,} answers"
    return f"{answers} and {waited:,} requests that waited in vain" if waited else answers


def _histogram(name: str, latencies: LatencyHistogram) -> list[str]:
    if not latencies.count or math.isnan(latencies.mean):
        return []
    lines = [f"{name}, ms: mean {1000 * latencies.mean:.2f}, max {1000 * latencies.max:.2f}"]
    for percentile in latencies.percentiles():
        doubt = "" if percentile.reliable else ", too few to rely on"
        lines.append(
            f"  {percentile.name} {1000 * percentile.seconds:.2f} ({percentile.samples_beyond:,} samples beyond{doubt})"
        )
    return lines
