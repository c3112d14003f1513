"""What a load generator is asked for and what it answers, and when that tells of the generator itself.

In seconds; JSON has milliseconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...errors import rule
from ...errors.impossible import falling, out_of_range, refuse
from ...facts.limit_kinds import USE_AN_ALLOWED_VALUE, Range
from ...report.numbers import readable
from .arrivals import STEP_SECONDS, Arrivals, arrivals_of_dict
from .latencies import IMPOSSIBLE, LatencyHistogram, milliseconds, summary_ms
from .measurement import Measurement, TokenResult

STEP_USERS = Range(
    rule("LLT129", "the number of users of a load test is out of range", fix=USE_AN_ALLOWED_VALUE),
    "the number of users",
    1,
    1_000_000,
)
STEP_FORM = rule(
    "LLT131",
    "a step of a load test is incomplete",
    fix="Give arrivals (open loop) or users (closed loop), and a settling time shorter than "
    "the step.",
)
#: Callers of one process, unless it may open fewer files.
MOST_CALLERS = 10_000
#: A process of one thread that is on the processor for longer than this has no reserve left.
CPU_SHARE = 0.90
#: A median request that starts this late, as a share of the median latency: the generator as a
#: whole does not keep up, it does not just stumble.
_MEDIAN_LAG_SHARE = 0.10
#: What the 99th percentile may owe to the generator before it is no figure of the endpoint.
_TAIL_LAG_SHARE = 0.25
#: What an event loop may be late before tokens of one stream wait together, and only the last one's
#: moment is known. Where the kernel tells none, a token comes when it is read.
_TOKEN_LAG_SHARE = 1.0 if sys.platform == "linux" else _TAIL_LAG_SHARE
#: Requests that were due and never sent.
_UNSENT_SHARE = 0.001
#: From here on results are flagged: a lag of this share of the median latency.
FLAGGED_LAG_SHARE = 0.01


@dataclass(frozen=True)
class Step:
    """One stretch of load: either arrivals (open loop) or users (closed loop).

    Parameters
    ----------
    name : str
        What results call it.
    seconds : float
        How long requests are sent, settling included.
    arrivals : Arrivals or None
        Open loop: requests start when they are due, whether or not earlier ones were answered.
    users : int or None
        Closed loop: that many callers, each waiting for its answer, no pause.
    seed : int
        Of random arrivals: same seed, same times.
    settle_seconds : float
        Start of the step that is sent but not counted. By default everything counts.
    first_number : int
        Of its requests: which payload or prompt it begins with. By default 0, so every step sends
        the same ones; a language model's prefix cache would know whole prompts again.

    Raises
    ------
    ConfigurationError
        ``LLT131`` with both or neither of arrivals and users, or with nothing left to count;
        ``LLT129`` and ``LLT130`` for values out of range.
    """

    name: str
    seconds: float
    arrivals: Arrivals | None = None
    users: int | None = None
    seed: int = 1
    settle_seconds: float = 0.0
    first_number: int = 0

    def __post_init__(self) -> None:
        where = f"step {self.name}"
        STEP_SECONDS.check(self.seconds, where)
        STEP_SECONDS.check(self.settle_seconds, f"{where}: settle_seconds")
        if (self.arrivals is None) == (self.users is None):
            got = "neither" if self.users is None else "both"
            raise STEP_FORM.error(got=got, allowed="either arrivals or users", where=where)
        if self.arrivals is not None and not isinstance(self.arrivals, Arrivals):
            raise STEP_FORM.error(
                got=repr(self.arrivals)[:60],
                where=where,
                allowed="arrivals such as PoissonArrivals(100)",
            )
        if self.users is not None:
            STEP_USERS.check(self.users, where)
        if self.settle_seconds >= self.seconds:
            raise STEP_FORM.error(
                got=f"{readable(self.seconds)} s, of which {readable(self.settle_seconds)} s to settle",
                allowed="a settling time shorter than the step",
                where=where,
            )

    @property
    def counted_seconds(self) -> float:
        """How long requests count."""
        return self.seconds - self.settle_seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        arrivals = None if self.arrivals is None else self.arrivals.to_dict()
        content = {**vars(self), "arrivals": arrivals}
        if not self.first_number:
            del content["first_number"]
        return content

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> Step:
        """The step that :meth:`to_dict` gave."""
        arrivals = content.get("arrivals")
        return cls(
            **{**content, "arrivals": None if arrivals is None else arrivals_of_dict(arrivals)}
        )


_HISTOGRAMS = ("latency", "service", "first_byte", "refused", "send_lag")
_PLAIN = ("started_at", "ended_at", "intended", "sent", "completed", "answered_in_time")
_GENERATOR = ("processes", "cpu_share", "cpu_seconds_per_request", "memory_bytes", "postponed")


@dataclass(kw_only=True)
class StepResult(Measurement):
    """What was measured in a step, as :class:`.measurement.Measurement` has it.

    Attributes
    ----------
    started_at, ended_at : float
        Epoch seconds of the part that counts: of the intended starts.
    client_bound : tuple of str
        Why the generator, not the endpoint, was the limit; empty for a valid result.
    warnings : tuple of str
        What makes the figures less exact without making them invalid.
    conversations : int
        That took turns; 0 where no request follows on another.
    """

    step: Step  # what was sent
    started_at: float
    ended_at: float
    client_bound: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conversations: int = 0

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, f"step {self.step.name}", self._problems())

    def _problems(self) -> Iterator[str]:
        numbers: dict[str, float | None] = {
            name: value for name, value in vars(self).items() if isinstance(value, (int, float))
        }
        yield from out_of_range({**numbers, **self.errors})
        yield from falling({"start": self.started_at, "end": self.ended_at})
        yield from falling({"failed": self.failed, "sent": self.sent})

    @classmethod
    def of(
        cls, step: Step, measured: Measurement, began: float, *, conversations: int = 0
    ) -> StepResult:
        """The result of a step that began at that epoch second, judged."""
        return cls(
            **{**vars(measured), "errors": dict(sorted(measured.errors.items()))},
            step=step,
            started_at=began + step.settle_seconds,
            ended_at=began + step.seconds,
            conversations=conversations,
        ).judged()

    def judged(self) -> StepResult:
        """The same with :attr:`client_bound` and :attr:`warnings` from its own figures."""
        return replace(self, client_bound=client_bound(self), warnings=warnings(self))

    @property
    def valid(self) -> bool:
        """Whether the figures say something about the endpoint."""
        return not self.client_bound

    @property
    def seconds(self) -> float:
        """How long requests counted."""
        return self.ended_at - self.started_at

    @property
    def rate(self) -> float:
        """Completed answers per second, those that came in time."""
        return self.answered_in_time / self.seconds if self.seconds > 0 else math.nan

    @property
    def token_rate(self) -> float:
        """Output tokens per second, of the answers that came in time."""
        if self.tokens is None or self.seconds <= 0:
            return math.nan
        return self.tokens.tokens_in_time / self.seconds

    @property
    def goodput(self) -> float:
        """Share of the requests sent whose answer kept both token limits."""
        return self.tokens.good / self.sent if self.tokens is not None and self.sent else math.nan

    @property
    def concurrency(self) -> float:
        """Requests under way on average, by Little's law: rate by mean time in the endpoint."""
        return self.rate * self.service.mean

    @property
    def between_turns(self) -> float:
        """Seconds from one turn of a conversation to its next, on average; NaN without turns."""
        if not self.conversations or not self.sent:
            return math.nan
        return self.conversations * self.seconds / self.sent

    @property
    def error_share(self) -> float:
        """Share of the requests sent that failed; 0 when none was sent."""
        return self.failed / self.sent if self.sent else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: the histograms whole, and what a reader wants to see beside them."""
        histograms = {name: getattr(self, name) for name in _HISTOGRAMS}
        conversations = {
            "conversations": self.conversations,
            "between_turns_ms": finite(1000 * self.between_turns),
        }
        return {
            "step": self.step.to_dict(),
            **{name: getattr(self, name) for name in _PLAIN},
            "rate": finite(self.rate),
            "error_share": self.error_share,
            "errors": dict(self.errors),
            "error_messages": dict(self.messages),
            "unanswered": self.unanswered,
            **{
                f"{name}_ms": None if histogram is None else summary_ms(histogram)
                for name, histogram in histograms.items()
            },
            "histograms": {
                name: None if histogram is None else histogram.encode()
                for name, histogram in histograms.items()
            },
            "tokens": None if self.tokens is None else self.tokens.to_dict(),
            **(conversations if self.conversations else {}),
            "generator": {
                **{name: getattr(self, name) for name in _GENERATOR},
                "loop_lag_p99_ms": finite(1000 * self.loop_lag_p99),
            },
            "client_bound": list(self.client_bound),
            "warnings": list(self.warnings),
        }

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> StepResult:
        """The result that :meth:`to_dict` gave."""
        found: dict[str, Any] = {
            name: None if text is None else LatencyHistogram.decode(text)
            for name, text in content["histograms"].items()
        }
        load = content["generator"]
        return cls(
            step=Step.of_dict(content["step"]),
            errors=dict(content["errors"]),
            messages=dict(content.get("error_messages", {})),
            loop_lag=_lag_of(load["loop_lag_p99_ms"]),
            cpu_seconds=load["cpu_seconds_per_request"] * content["sent"],
            unanswered=content["unanswered"],
            tokens=TokenResult.of_dict(content["tokens"]) if content["tokens"] else None,
            conversations=content.get("conversations", 0),
            client_bound=tuple(content["client_bound"]),
            warnings=tuple(content["warnings"]),
            **{
                name: load[name] for name in ("processes", "cpu_share", "memory_bytes", "postponed")
            },
            **{name: content[name] for name in _PLAIN},
            **found,
        )


def _lag_of(p99_ms: float | None) -> LatencyHistogram:
    """The event loop's lag, of which a file has the p99 alone."""
    return LatencyHistogram() if p99_ms is None else LatencyHistogram.of([p99_ms / 1000])


def _percentile(histogram: str, percent: float) -> property:
    return property(lambda progress: progress.histogram(histogram).percentile(percent))


@dataclass(kw_only=True)
class Progress(Measurement):
    """What was measured in the last second of a step, over all processes."""

    seconds: float  # since the step began
    interval: float = 1.0  # the length of that second

    @property
    def rate(self) -> float:
        """Completed answers per second."""
        return self.completed / self.interval

    # Seconds; NaN without a sample.
    p50 = _percentile("latency", 50)
    p99 = _percentile("latency", 99)
    send_lag_p99 = _percentile("send_lag", 99)
    first_byte_p99 = _percentile("first_byte", 99)
    first_token_p95 = _percentile("first_token", 95)
    inter_token_p95 = _percentile("inter_token", 95)


#: Is told of each second of a step; a true answer ends the step, as it has shown enough.
OnSecond = Callable[[Progress], object]


def ignore_progress(progress: Progress) -> None:
    """Show nothing."""


class Generator(Protocol):
    """Whatever can run steps: processes of this machine, a fleet, a formula in a test."""

    def run(self, step: Step, progress: OnSecond = ignore_progress) -> StepResult:
        """Run one step, calling ``progress`` each second or so; a true answer ends it early."""

    def close(self) -> None:
        """End every process."""


def most_frequent(errors: Mapping[str, int], most: int | None = 3) -> str:
    """The most frequent kinds of errors, in words."""
    kinds = sorted(errors.items(), key=lambda error: -error[1])[:most]
    return ", ".join(f"{count:,} times {kind}" for kind, count in kinds)


def finite(value: float) -> float | None:
    """The value as JSON and charts have it: nothing where there is no number."""
    return value if math.isfinite(value) else None


def client_bound(result: StepResult) -> tuple[str, ...]:
    """Why the generator was the limit; empty when it was not."""
    reasons = []
    if result.cpu_share >= CPU_SHARE:
        reasons.append(
            f"the busiest generator process used {result.cpu_share:.0%} of a core "
            f"({CPU_SHARE:.0%} is its limit): use more processes or more machines"
        )
    unsent = result.intended - result.sent
    if unsent > _UNSENT_SHARE * result.intended:
        reasons.append(f"{unsent} of {result.intended} requests that were due were never sent")
    if was_without_connections(result):
        reasons.append(
            f"{result.postponed} of {result.intended} requests waited for a connection: as many as a "
            "process may have were waiting for answers"
        )
    latency, lag = result.latency, result.send_lag
    if latency.count and lag.count:
        lag_p50, lag_p99 = lag.quantiles((0.5, 0.99))
        p50, p99 = latency.quantiles((0.5, 0.99))
        if lag_p50 > _MEDIAN_LAG_SHARE * p50:
            reasons.append(
                f"half of the requests started {milliseconds(lag_p50)} late or "
                f"more, {lag_p50 / p50:.0%} of the median latency of "
                f"{milliseconds(p50)}"
            )
        elif lag_p99 > _TAIL_LAG_SHARE * p99:
            reasons.append(
                f"one request in a hundred started {milliseconds(lag_p99)} late or "
                f"more, {lag_p99 / p99:.0%} of the p99 of {milliseconds(p99)}"
            )
    if latency.count and not lag.count:
        p99 = latency.percentile(99)
        if result.loop_lag_p99 > _TAIL_LAG_SHARE * p99:
            reasons.append(
                f"the load generator's event loop woke {milliseconds(result.loop_lag_p99)} late (p99), "
                f"{result.loop_lag_p99 / p99:.0%} of the p99 of {milliseconds(p99)}"
            )
    if latency.count and not (lag.count or result.loop_lag.count):
        reasons.append("how late the load generator's event loop woke was not measured")
    gaps = result.tokens.inter_token if result.tokens is not None else None
    mean = gaps.mean if gaps is not None else 0.0
    if mean > 0 and result.loop_lag_p99 > _TOKEN_LAG_SHARE * mean:
        reasons.append(
            f"the load generator's event loop woke {milliseconds(result.loop_lag_p99)} late (p99), "
            f"{result.loop_lag_p99 / mean:.0%} of the {milliseconds(mean)} between tokens (mean)"
        )
    return tuple(reasons)


def only_late(result: StepResult) -> bool:
    """Whether the generator did all it was to do, if late: latency, from when it was due, has that in it."""
    return (
        result.step.arrivals is not None
        and result.sent == result.intended
        and result.cpu_share < CPU_SHARE
        and not result.postponed
    )


def was_without_connections(result: StepResult) -> bool:
    """Whether requests that were due waited because all connections were waiting for answers."""
    return result.postponed > _UNSENT_SHARE * result.intended


def was_punctual(result: StepResult) -> bool:
    """Whether the generator had processor time left, and woke too little late to hold answers up."""
    service, lag = result.service, result.loop_lag
    if result.cpu_share >= CPU_SHARE or not (service.count and lag.count):
        return False
    return result.loop_lag_p99 <= _MEDIAN_LAG_SHARE * service.percentile(50)


def warnings(result: StepResult) -> tuple[str, ...]:
    """What makes the figures less exact, in words."""
    warnings = []
    if doubt := getattr(result.step.arrivals, "doubt", ""):
        warnings.append(doubt)
    latency, lag = result.latency, result.send_lag
    if latency.count and lag.count:
        p50, lag_p99 = latency.percentile(50), lag.percentile(99)
        if lag_p99 > FLAGGED_LAG_SHARE * p50:
            warnings.append(
                f"send lag p99 is {milliseconds(lag_p99)}, {lag_p99 / p50:.1%} of the "
                f"median latency (flagged above {FLAGGED_LAG_SHARE:.0%}); "
                "latencies include it"
            )
    if result.unanswered:
        warnings.append(
            f"{result.unanswered} of {latency.count} requests were not answered in time "
            "and count with the time they waited: high percentiles are lower bounds"
        )
    if latency.count and result.refused.count:
        worst, p99 = result.refused.max, latency.percentile(99)
        if worst > p99:
            warnings.append(
                "requests that were refused or broke off took up to "
                f"{milliseconds(worst)}, more than the p99 of {milliseconds(p99)}, "
                "and are in no percentile"
            )
    if (tokens := result.tokens) is not None:
        if tokens.unstreamed:
            warnings.append(
                f"{tokens.unstreamed} answers of several tokens came in one chunk: their time to "
                "first token is that of the whole answer, and there is none between tokens"
            )
        if tokens.uncounted:
            warnings.append(
                f"{tokens.uncounted} answers did not say how many tokens they have: chunks were "
                "counted (ask for it with stream_options.include_usage)"
            )
    if result.conversations and latency.count:
        warnings += _overlapping(result)
    weak = [percentile.name for percentile in latency.percentiles() if not percentile.reliable]
    if weak:
        warnings.append(
            f"{', '.join(weak)} {'rest' if len(weak) > 1 else 'rests'} on fewer than ten "
            f"samples beyond: {latency.count} samples in all"
        )
    return tuple(warnings)


def _overlapping(result: StepResult) -> Iterator[str]:
    """Turns of one conversation that no person would have sent so."""
    users, p95 = result.step.users, result.latency.percentile(95)
    if users is None and result.between_turns < p95:
        yield (
            f"turns of a conversation came {milliseconds(result.between_turns)} apart on average, "
            f"sooner than the p95 of a whole answer, {milliseconds(p95)}: they overlap, as no "
            "person's do (more conversations are further apart)"
        )
    elif users is not None and result.conversations % users:
        yield (
            f"{result.conversations:,} conversations are not shared out evenly to {users:,} users: "
            "turns of one may overlap or change places (give a multiple of the users)"
        )
