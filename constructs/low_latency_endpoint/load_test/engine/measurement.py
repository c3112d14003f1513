"""What is measured of requests: recorded, added up, sent and written in one form.

A :class:`Measurement` is of one process or of many, of a second or of a step. A worker fills it, the
master adds it up, a result file keeps it, and tables and charts read it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

from .latencies import LatencyHistogram, summary_ms
from .target import TokenLimits
from .token_streams import TokenTimes

CHECK_FAILED = "check failed"
NO_ANSWER = "no answer"
_NO_ANSWERS = frozenset({"timeout", "connection timeout", NO_ANSWER})
_GAVE_UP = frozenset({408, 504})

#: More kinds than these of one step are counted together: codes and statuses are the server's.
MOST_KINDS, MANY_MORE = 50, "other errors"
_LONGEST = 200
_IDENTIFIER = re.compile(r"\b(?=[\w-]*\d)[\w-]{16,}\b")


def brief(message: str) -> str:
    """A server's message in one short line that no terminal obeys, without a request's number."""
    shown = "".join(one if one.isprintable() else " " for one in message[:5000])
    text = _IDENTIFIER.sub("…", " ".join(shown.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class Invocation(NamedTuple):
    """One request and what became of it; times are ``time.perf_counter()``'s seconds."""

    status: int  # HTTP status; 0 when no answer came
    length: int  # bytes of the answer's body; of a stream, of its parts
    # what went wrong, by kind: ``400 ThrottlingException``, ``424 ModelError 503`` with the
    # container's own status, ``timeout``, ``connection refused``, ``check failed``, ``stream
    # ModelStreamError``. ``None`` for a good answer.
    error: str | None
    started: float  # when the request was begun, and when the last byte of its answer was read
    ended: float
    first_byte: float | None  # streams only: when the first part came
    body: bytes
    message: str  # the service's own words on an error; may differ from request to request
    url: str  # base URL the request was sent to
    tokens: TokenTimes | None = None  # streams that are read token by token only

    @property
    def unanswered(self) -> bool:
        """Whether the caller waited and then gave up, or the service gave up in its place."""
        return self.error is not None and (
            self.error in _NO_ANSWERS
            or self.status in _GAVE_UP
            # SageMaker's 424 for a model that took longer than it waits says so in words only.
            or (self.status >= 400 and "timed out" in self.message)
        )

    @classmethod
    def given_up(
        cls,
        kind: str,
        started: float,
        first_byte: float | None = None,
        tokens: TokenTimes | None = None,
    ) -> Invocation:
        """A request of which nothing more is expected, as of now."""
        return cls(0, 0, kind, started, time.perf_counter(), first_byte, b"", "", "", tokens)


class Counts:
    """Numbers and histograms in the fields of a dataclass, which add up without loss."""

    def add(self, other: Self) -> None:
        """Count everything that another holds; a part that is ``None`` was not measured."""
        for each in fields(self):  # type: ignore[arg-type]
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(theirs, (LatencyHistogram, Counts)):
                if mine is None:
                    setattr(self, each.name, mine := type(theirs)())
                mine.add(theirs)
            elif isinstance(theirs, (int, float)):
                setattr(self, each.name, mine + theirs)

    @classmethod
    def sum(cls, counted: Iterable[Self]) -> Self:
        """One of what all of them hold."""
        made = cls()
        for each in counted:
            made.add(each)
        return made

    def to_message(self) -> dict[str, Any]:
        """Plain numbers for a message between processes; cheap, unlike the JSON of a file."""
        return {name: _plain(value) for name, value in vars(self).items()}

    @classmethod
    def of_message(cls, content: Mapping[str, Any]) -> Self:
        """What :meth:`to_message` gave."""
        values = dict(content)
        for each in fields(cls):  # type: ignore[arg-type]
            kind = _MADE_OF_NUMBERS.get(str(each.type).partition(" ")[0])
            if kind is not None and values[each.name] is not None:
                values[each.name] = kind(values[each.name])
        return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, LatencyHistogram):
        return value.to_counts()
    return value.to_message() if isinstance(value, Counts) else value


@dataclass
class TokenResult(Counts):
    """What a step showed of a language model's answers, or a second of it, or one process of it."""

    # from the intended start to the first chunk with content, or to giving up where none came
    first_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    # between successive chunks with content, of all streams together; of a stream that somebody
    # gave up, its last wait too
    inter_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    # of each stream of two tokens or more: from first to last, by the tokens after the first
    per_token: LatencyHistogram = field(default_factory=LatencyHistogram)
    output_tokens: int = 0  # all three as the model counts them
    tokens_in_time: int = 0  # output tokens of the answers of ``answered_in_time``
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompts', those from a prefix cache
    good: int = 0  # answers that kept both limits of ``TokenLimits``; failed requests are none
    uncounted: int = 0  # answers without the model's own count: their chunks were counted
    unstreamed: int = 0  # answers of several tokens that came in one chunk: nothing streamed

    def count(self, answer: Invocation, latency: float, limits: TokenLimits) -> None:
        """Count an answer, or a request given up; ``latency``: seconds from its intended start."""
        times = answer.tokens
        ended, intended = answer.ended, answer.ended - latency
        if times is None or times.first is None:
            if answer.unanswered:
                self.first_token.record(latency)  # it took at least that
            return
        first_token, gap = times.first - intended, self.inter_token.record
        self.first_token.record(first_token)
        for seconds in times.gaps:
            gap(seconds)
        self.output_tokens += times.output_tokens
        self.prompt_tokens += times.prompt_tokens
        self.cached_tokens += times.cached_tokens
        if answer.unanswered and times.last is not None:
            gap(ended - times.last)
        if answer.error is not None:
            return
        per_token = times.per_token
        if per_token is not None:
            self.per_token.record(per_token)
            self.unstreamed += not times.gaps
        self.uncounted += not times.counted
        self.good += (limits.first_token is None or first_token <= limits.first_token) and (
            limits.per_token is None or per_token is None or per_token <= limits.per_token
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON for a file: the histograms whole, and what a reader wants to see beside them."""
        histograms = {name: getattr(self, name) for name in TOKEN_HISTOGRAMS}
        return {
            **{name: getattr(self, name) for name in _TOKEN_COUNTS},
            **{f"{name}_ms": summary_ms(histogram) for name, histogram in histograms.items()},
            "histograms": {name: histogram.encode() for name, histogram in histograms.items()},
        }

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> TokenResult:
        """What :meth:`to_dict` gave."""
        texts = content["histograms"]
        found: dict[str, Any] = {
            name: LatencyHistogram.decode(texts[name]) for name in TOKEN_HISTOGRAMS
        }
        return cls(**found, **{name: content[name] for name in _TOKEN_COUNTS})


TOKEN_HISTOGRAMS = ("first_token", "inter_token", "per_token")
_TOKEN_COUNTS = tuple(
    each.name for each in fields(TokenResult) if each.name not in TOKEN_HISTOGRAMS
)


@dataclass
class Measurement(Counts):
    """What was measured of some requests."""

    intended: int = 0  # that were due
    sent: int = 0  # in a closed loop the same
    completed: int = 0  # answered with 2xx and, where there is one, passed the check
    # completed answers that came while requests counted, whenever their request began: what the
    # endpoint's throughput is
    answered_in_time: int = 0
    unanswered: int = 0  # of ``latency``'s, those that nobody answered in time: errors, too
    postponed: int = 0  # had to wait, as every connection that a process may have was busy
    # that failed, by kind: ``400 ThrottlingException``, ``424 ModelError 503`` with the container's
    # own status, ``timeout``, ``check failed``
    errors: dict[str, int] = field(default_factory=dict)
    # of a kind of error the first message, shortened; a container's own where it has one
    messages: dict[str, str] = field(default_factory=dict)
    # from the intended start to the whole answer, of every request answered with 2xx; and of every
    # request that nobody answered in time, to the moment at which its caller gave up: it took at
    # least that. Left out are requests that failed in any other way.
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    service: LatencyHistogram = field(default_factory=LatencyHistogram)  # from the real start
    # to the failure, of the requests that are not in ``latency``: answers of 4xx and 5xx,
    # connections refused or broken, streams that ended in an error
    refused: LatencyHistogram = field(default_factory=LatencyHistogram)
    # from the intended start to the real one; empty in a closed loop, which intends nothing
    send_lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    # of response streams: to the first part of the answer, or to giving up where none came
    first_byte: LatencyHistogram | None = None
    tokens: TokenResult | None = None  # of streams that are read token by token
    loop_lag: LatencyHistogram = field(default_factory=LatencyHistogram)  # of the generator
    cpu_seconds: float = 0.0  # processor time of all processes
    cpu_share: float = 0.0  # of one core, by the busiest process
    memory_bytes: int = 0  # of all processes together
    processes: int = 0  # of the generator

    def add(self, other: Self) -> None:
        """Count everything that another process measured, without loss."""
        busiest = max(self.cpu_share, other.cpu_share)
        super().add(other)
        self.cpu_share = busiest
        for kind, count in other.errors.items():
            self.count_failed(kind, other.messages.get(kind, ""), count)

    def count_failed(self, kind: str, message: str = "", count: int = 1) -> None:
        """Count requests that failed in one way."""
        if kind not in self.errors and len(self.errors) >= MOST_KINDS:
            kind = MANY_MORE
        self.errors[kind] = self.errors.get(kind, 0) + count
        if message and kind not in self.messages:
            self.messages[kind] = brief(message)

    def histogram(self, name: str) -> LatencyHistogram:
        """The histogram of that name, of tokens too; an empty one where it was not measured."""
        of = self.tokens if name in TOKEN_HISTOGRAMS else self
        histogram: LatencyHistogram | None = getattr(of, name, None)
        return LatencyHistogram() if histogram is None else histogram

    @property
    def failed(self) -> int:
        """Requests that failed."""
        return sum(self.errors.values())

    @property
    def failures(self) -> dict[str, int]:
        """The kinds of errors with their first messages, and how many requests each failed."""
        return {
            f"{kind} ({message})" if (message := self.messages.get(kind)) else kind: count
            for kind, count in self.errors.items()
        }

    @property
    def answered(self) -> int:
        """Requests of which the end is known, good or not."""
        return self.completed + self.failed

    @property
    def good(self) -> int:
        """Answers that kept both token limits."""
        return self.tokens.good if self.tokens is not None else 0

    @property
    def output_tokens(self) -> int:
        """Tokens of the answers."""
        return self.tokens.output_tokens if self.tokens is not None else 0

    @property
    def loop_lag_p99(self) -> float:
        """Seconds by which the event loops of the generator woke late; NaN where none was seen to."""
        return self.loop_lag.percentile(99)

    @property
    def cpu_seconds_per_request(self) -> float:
        """Processor time for each request sent: the client's own overhead."""
        return self.cpu_seconds / self.sent if self.sent else 0.0


#: What makes a field of its numbers in a message, by the field's type.
_MADE_OF_NUMBERS: dict[str, Any] = {
    "LatencyHistogram": LatencyHistogram.of_counts,
    "TokenResult": TokenResult.of_message,
}
