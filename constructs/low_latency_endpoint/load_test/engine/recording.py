"""What one generator process records of a step, and how the records of many add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from .latencies import LatencyHistogram
from .steps import TOKEN_FIELDS, GeneratorLoad, Progress, Step, StepResult, TokenResult
from .target import TokenLimits

if TYPE_CHECKING:
    from .invoking import Invocation


@dataclass(slots=True)
class Records:
    """Counts and histograms of one process, or of several after :meth:`add`.

    Attributes
    ----------
    intended, sent, completed, answered_in_time, errors, unanswered
        As in :class:`.steps.StepResult`.
    latency, service, first_byte, refused, send_lag
        As there too.
    first_token, inter_token, per_token, output_tokens, tokens_in_time, prompt_tokens, \
    cached_tokens, good, uncounted, unstreamed
        As in :class:`.steps.TokenResult`.
    postponed : int
        Requests that had to wait because every caller the process may have was busy.
    cpu_seconds, cpu_share, loop_lag, memory_bytes, processes
        What the generator needed, as in :class:`.steps.GeneratorLoad`.
    """

    intended: int = 0
    sent: int = 0
    completed: int = 0
    answered_in_time: int = 0
    unanswered: int = 0
    postponed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    service: LatencyHistogram = field(default_factory=LatencyHistogram)
    first_byte: LatencyHistogram = field(default_factory=LatencyHistogram)
    refused: LatencyHistogram = field(default_factory=LatencyHistogram)
    send_lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    first_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    inter_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    per_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    output_tokens: int = 0
    tokens_in_time: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    good: int = 0
    uncounted: int = 0
    unstreamed: int = 0
    loop_lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    cpu_seconds: float = 0.0
    cpu_share: float = 0.0
    memory_bytes: int = 0
    processes: int = 1

    def failed(self, kind: str) -> None:
        """Count one failed request."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def add(self, other: Records) -> None:
        """Count everything that another process recorded, without loss."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _HISTOGRAMS:
            getattr(self, name).add(getattr(other, name))
        for kind, count in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + count
        self.cpu_share = max(self.cpu_share, other.cpu_share)

    @classmethod
    def sum(cls, records: list[Records]) -> Records:
        """One record of what all of them hold."""
        made = cls(processes=0)
        for one in records:
            made.add(one)
        return made

    def to_message(self) -> dict[str, Any]:
        """Plain numbers for Locust's messages between workers and master."""
        return {
            **{name: getattr(self, name) for name in _SUMS},
            **{name: getattr(self, name).to_counts() for name in _HISTOGRAMS},
            "errors": self.errors,
            "cpu_share": self.cpu_share,
        }

    @classmethod
    def of_message(cls, content: Mapping[str, Any]) -> Records:
        """The records that :meth:`to_message` gave."""
        values = dict(content)
        for name in _HISTOGRAMS:
            values[name] = LatencyHistogram.of_counts(values[name])
        return cls(**values)


_HISTOGRAMS = tuple(one.name for one in fields(Records) if one.default_factory is LatencyHistogram)
_SUMS = tuple(
    one.name for one in fields(Records) if one.name not in (*_HISTOGRAMS, "errors", "cpu_share")
)


def result_of(
    step: Step, records: Records, started_at: float, *, streaming: bool, tokens: bool = False
) -> StepResult:
    """The result of a step, judged, from what all its processes recorded."""
    return StepResult(
        step=step,
        started_at=started_at + step.settle_seconds,
        ended_at=started_at + step.seconds,
        intended=records.intended,
        sent=records.sent,
        completed=records.completed,
        answered_in_time=records.answered_in_time,
        errors=dict(sorted(records.errors.items())),
        latency=records.latency,
        service=records.service,
        first_byte=records.first_byte if streaming else None,
        send_lag=records.send_lag,
        unanswered=records.unanswered,
        refused=records.refused,
        generator=GeneratorLoad(
            processes=records.processes,
            cpu_share=records.cpu_share,
            cpu_seconds_per_request=records.cpu_seconds / records.sent if records.sent else 0.0,
            loop_lag_p99=records.loop_lag.percentile(99) if records.loop_lag.count else 0.0,
            memory_bytes=records.memory_bytes,
            postponed=records.postponed,
        ),
        tokens=TokenResult(**{name: getattr(records, name) for name in TOKEN_FIELDS})
        if tokens
        else None,
    ).judged()


def record_tokens(
    records: Records, answer: Invocation, latency: float, limits: TokenLimits
) -> None:
    """Count the tokens of one answer, or of a request that was given up before its last."""
    times = answer.tokens
    ended, intended = answer.ended, answer.ended - latency
    if times is None or times.first is None:
        if answer.unanswered:
            records.first_token.record(latency)  # it took at least that
        return
    first_token, gap = times.first - intended, records.inter_token.record
    records.first_token.record(first_token)
    for seconds in times.gaps:
        gap(seconds)
    records.output_tokens += times.output_tokens
    records.prompt_tokens += times.prompt_tokens
    records.cached_tokens += times.cached_tokens
    if answer.unanswered and times.last is not None:
        gap(ended - times.last)
    if answer.error is not None:
        return
    per_token = times.per_token
    if per_token is not None:
        records.per_token.record(per_token)
        records.unstreamed += not times.gaps
    records.uncounted += not times.counted
    records.good += (limits.first_token is None or first_token <= limits.first_token) and (
        limits.per_token is None or per_token is None or per_token <= limits.per_token
    )


def progress_of(records: Records, since_start: float, interval: float) -> Progress:
    """What a terminal shows of one interval of all processes."""
    p50, p99 = records.latency.quantiles((0.5, 0.99))
    return Progress(
        seconds=since_start,
        sent=records.sent,
        completed=records.completed,
        failed=sum(records.errors.values()),
        rate=records.completed / interval,
        p50=p50,
        p99=p99,
        send_lag_p99=records.send_lag.percentile(99),
        cpu_share=records.cpu_share,
        first_byte_p99=records.first_byte.percentile(99),
        latency=records.latency,
        first_byte=records.first_byte,
        first_token=records.first_token,
        inter_token=records.inter_token,
        per_token=records.per_token,
        good=records.good,
        output_tokens=records.output_tokens,
    )
