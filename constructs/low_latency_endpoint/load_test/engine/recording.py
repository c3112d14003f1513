"""What one generator process records of a step, and how the records of many add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .error_kinds import MANY_MORE, MOST_KINDS, brief
from .latencies import LatencyHistogram
from .steps import GeneratorLoad, Progress, Step, StepResult
from .token_results import TokenResult


@dataclass(slots=True)
class Records:
    """Counts and histograms of one process, or of several after :meth:`add`."""

    intended: int = 0  # as in :class:`.steps.StepResult`
    sent: int = 0
    completed: int = 0
    answered_in_time: int = 0
    unanswered: int = 0
    # requests that had to wait because every caller the process may have was busy
    postponed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)  # the first one of each kind of error
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    service: LatencyHistogram = field(default_factory=LatencyHistogram)
    first_byte: LatencyHistogram = field(default_factory=LatencyHistogram)
    refused: LatencyHistogram = field(default_factory=LatencyHistogram)
    send_lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    # of streams that are read token by token
    tokens: TokenResult = field(default_factory=TokenResult)
    loop_lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    cpu_seconds: float = 0.0  # what the generator needed, as in :class:`.steps.GeneratorLoad`
    cpu_share: float = 0.0
    memory_bytes: int = 0
    processes: int = 1

    def failed(self, kind: str, message: str = "", count: int = 1) -> None:
        """Count failed requests of a kind."""
        if kind not in self.errors and len(self.errors) >= MOST_KINDS:
            kind = MANY_MORE
        self.errors[kind] = self.errors.get(kind, 0) + count
        if message and kind not in self.messages:
            self.messages[kind] = brief(message)

    def add(self, other: Records) -> None:
        """Count everything that another process recorded, without loss."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _HISTOGRAMS:
            getattr(self, name).add(getattr(other, name))
        self.tokens.add(other.tokens)
        for kind, count in other.errors.items():
            self.failed(kind, other.messages.get(kind, ""), count)
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
            "tokens": self.tokens.to_counts(),
            "errors": self.errors,
            "messages": self.messages,
            "cpu_share": self.cpu_share,
        }

    @classmethod
    def of_message(cls, content: Mapping[str, Any]) -> Records:
        """The records that :meth:`to_message` gave."""
        values = dict(content)
        for name in _HISTOGRAMS:
            values[name] = LatencyHistogram.of_counts(values[name])
        values["tokens"] = TokenResult.of_counts(values["tokens"])
        return cls(**values)


_HISTOGRAMS = tuple(one.name for one in fields(Records) if one.default_factory is LatencyHistogram)
_SUMS = tuple(
    one.name
    for one in fields(Records)
    if one.name not in (*_HISTOGRAMS, "tokens", "errors", "messages", "cpu_share")
)


def result_of(
    step: Step,
    records: Records,
    started_at: float,
    *,
    streaming: bool,
    tokens: bool = False,
    conversations: int = 0,
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
        messages=records.messages,
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
        tokens=records.tokens if tokens else None,
        conversations=conversations,
    ).judged()


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
        tokens=records.tokens,
    )
