"""The latency that callers must see: of whole answers, of their first token, between tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..errors import rule
from ..report.numbers import milliseconds
from .argument_kinds import checked_arguments
from .durations import milliseconds_of
from .limits import ALARM_THRESHOLD_MILLISECONDS

TARGET_GIVEN = rule(
    "LLE802",
    "a latency target names no statistic",
    fix="Give one, such as LatencyTarget(p99=Duration.millis(200)), or for streamed answers "
    "LatencyTarget(ttft_p95=Duration.millis(500), itl_p95=Duration.millis(50)).",
)
TARGET_RISES = rule(
    "LLE803",
    "a higher percentile has a shorter latency target",
    fix="Give it the same or a longer time.",
)

# Field of LatencyTarget -> statistic as CloudWatch writes it
_STATISTICS = {
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99_9": "p99.9",
    "average": "Average",
}
_OF_TOKENS = ("p50", "p90", "p95", "p99")
#: Kind of a target -> its statistics by field, and what an error calls it.
_KINDS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "milliseconds": (_STATISTICS, "latency target"),
    "ttft_milliseconds": (
        {f"ttft_{each}": each for each in _OF_TOKENS},
        "target of the time to first token,",
    ),
    "itl_milliseconds": (
        {f"itl_{each}": each for each in _OF_TOKENS},
        "target of the inter-token latency,",
    ),
}


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class LatencyTarget:
    """How long callers may wait, by percentile; at least one must be given, of any kind.

    A streamed answer has three times. They are measured at the caller, and tools define them
    differently, so the same numbers of another tool may mean something else:

    time to first token (TTFT)
        From sending a request to the first chunk of its answer **with content**; a chunk that only
        opens the answer (``"role": "assistant"``) does not count. Load tests count from when the
        request was due. It is how long a reader waits before anything appears: queueing and
        prefill of the prompt are in it.
    inter-token latency (ITL)
        The gaps between successive chunks with content, of all streams, in one pool: with
        ``itl_p95`` of 50 ms, 95 % of **all gaps** are at most 50 ms. So do ``vllm bench serve``
        ("ITL") and vLLM's ``vllm:inter_token_latency_seconds``. AIPerf's "ITL" is another number:
        one mean for each request, which vLLM and MLPerf call time per output token (TPOT).
        50 ms are 20 tokens per second for one reader; a single long gap is a pause that is seen.
    whole call
        From sending to the last byte. It grows with the length of an answer, so for answers that
        differ in length it says little: state it where answers are not streamed.

    Each time is CDK's ``Duration`` (anything with ``to_milliseconds()``) or a
    ``datetime.timedelta``; bare numbers are refused. A statistic that is left out gets no alarm.

    Args:
        p50: Median of the whole call.
        p90: p90 of the whole call.
        p95: p95 of the whole call.
        p99: p99 of the whole call.
        p99_9: p99.9 of the whole call.
        average: Mean of the whole call.
        ttft_p50: Median of the time to first token, over requests.
        ttft_p90: p90 of the time to first token, over requests.
        ttft_p95: p95 of the time to first token, over requests.
        ttft_p99: p99 of the time to first token, over requests.
        itl_p50: Median of the inter-token latency, over all gaps of all streams.
        itl_p90: p90 of the inter-token latency, over all gaps of all streams.
        itl_p95: p95 of the inter-token latency, over all gaps of all streams.
        itl_p99: p99 of the inter-token latency, over all gaps of all streams.

    Attributes:
        milliseconds: The targets of the whole call, by statistic as CloudWatch writes it (``p99``, ``p99.9``, ``Average``); empty where only tokens have one.
        ttft_milliseconds: The targets of the time to first token, by percentile.
        itl_milliseconds: The targets of the inter-token latency, by percentile.

    Raises:
        ConfigurationError: ``LLE701`` for a time of zero or less, ``LLE801`` for one
            without a unit, ``LLE802`` when none is given, ``LLE803`` when a higher
            percentile of the same kind is to be faster.

    Examples:
        >>> from datetime import timedelta
        >>> LatencyTarget(p50=timedelta(milliseconds=40), p99=timedelta(milliseconds=200)).milliseconds
        {'p50': 40.0, 'p99': 200.0}

        A chat that starts within half a second and then writes 20 tokens per second:

        >>> chat = LatencyTarget(
        ...     ttft_p95=timedelta(milliseconds=500), itl_p95=timedelta(milliseconds=50))
        >>> chat.milliseconds, chat.ttft_milliseconds, chat.itl_milliseconds
        ({}, {'p95': 500.0}, {'p95': 50.0})
    """

    p50: Any = field(default=None, compare=False, repr=False)
    p90: Any = field(default=None, compare=False, repr=False)
    p95: Any = field(default=None, compare=False, repr=False)
    p99: Any = field(default=None, compare=False, repr=False)
    p99_9: Any = field(default=None, compare=False, repr=False)
    average: Any = field(default=None, compare=False, repr=False)
    ttft_p50: Any = field(default=None, compare=False, repr=False)
    ttft_p90: Any = field(default=None, compare=False, repr=False)
    ttft_p95: Any = field(default=None, compare=False, repr=False)
    ttft_p99: Any = field(default=None, compare=False, repr=False)
    itl_p50: Any = field(default=None, compare=False, repr=False)
    itl_p90: Any = field(default=None, compare=False, repr=False)
    itl_p95: Any = field(default=None, compare=False, repr=False)
    itl_p99: Any = field(default=None, compare=False, repr=False)
    milliseconds: dict[str, float] = field(init=False, hash=False)
    ttft_milliseconds: dict[str, float] = field(init=False, hash=False)
    itl_milliseconds: dict[str, float] = field(init=False, hash=False)

    def __post_init__(self) -> None:
        for name, (statistics, words) in _KINDS.items():
            object.__setattr__(self, name, self._checked(statistics, words))
        if not any(getattr(self, name) for name in _KINDS):
            raise TARGET_GIVEN.error(
                got="none",
                allowed=", ".join(each for statistics, _ in _KINDS.values() for each in statistics),
            )

    def _checked(self, statistics: Mapping[str, str], words: str) -> dict[str, float]:
        """The targets of one kind by statistic, in the order of their percentiles."""
        found: dict[str, float] = {}
        for name, statistic in statistics.items():
            given = getattr(self, name)
            if given is not None:
                where = f"{words} {statistic}"
                found[statistic] = float(
                    ALARM_THRESHOLD_MILLISECONDS.check(milliseconds_of(given, where), where)
                )
        percentiles = [(name, value) for name, value in found.items() if name != "Average"]
        for (lower, faster), (higher, slower) in pairwise(percentiles):
            if slower < faster:
                raise TARGET_RISES.error(
                    got=f"{higher} {milliseconds(slower, 6)} after {lower} {milliseconds(faster, 6)}",
                    allowed=f"{higher} of at least {milliseconds(faster, 6)}",
                    where="" if statistics is _STATISTICS else words.removesuffix(","),
                )
        return found

    @property
    def of_tokens(self) -> bool:
        """Whether a target is on tokens, which only a caller of a stream sees."""
        return bool(self.ttft_milliseconds or self.itl_milliseconds)

    @property
    def tightest(self) -> tuple[str, float] | None:
        """Statistic and milliseconds of the shortest whole call; None where none is given."""
        return min(self.milliseconds.items(), key=lambda item: item[1], default=None)

    @property
    def slowest(self) -> tuple[str, float] | None:
        """Statistic and milliseconds of the longest whole call; None where none is given."""
        return max(self.milliseconds.items(), key=lambda item: item[1], default=None)

    @property
    def typical(self) -> tuple[str, float] | None:
        """Statistic and milliseconds that say most about an ordinary response, as above."""
        for statistic in ("p50", "Average"):
            if statistic in self.milliseconds:
                return statistic, self.milliseconds[statistic]
        return self.tightest

    @property
    def typical_ttft(self) -> tuple[str, float] | None:
        """Percentile and milliseconds of the lowest target of the time to first token, if any."""
        return next(iter(self.ttft_milliseconds.items()), None)

    @property
    def typical_itl(self) -> tuple[str, float] | None:
        """Percentile and milliseconds of the lowest target of the inter-token latency, if any."""
        return next(iter(self.itl_milliseconds.items()), None)
