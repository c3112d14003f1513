"""The latency that callers must see: of whole answers, of their first token, between tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ..errors import rule
from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts.durations import milliseconds_of
from ..facts.limit_kinds import number_range
from ..facts.limits import ALARM_THRESHOLD_MILLISECONDS
from ..report.numbers import milliseconds
from .argument_kinds import checked_arguments
from .option import Option, Options

if TYPE_CHECKING:
    from aws_cdk import Duration

TARGET_GIVEN = rule(
    "LLE802",
    "a latency target has no statistic",
    fix="Give a statistic, such as a p99 of 200ms. For streamed answers, give a ttft_p95 "
    "of 500ms and an itl_p95 of 50ms.",
)
TARGET_RISES = rule(
    "LLE803",
    "a higher percentile has a shorter latency target",
    fix="Give the higher percentile the same or a longer time.",
)
OVERHEAD_SHARE = number_range(
    "LLE821",
    "the share of the target kept for overhead",
    0.01,
    0.9,
    whole=False,
    source="",
    fix="Give the share for network and SageMaker overhead.",
)

# Field of LatencyTarget -> statistic as CloudWatch writes it
_WHOLE_CALL = {name: name for name in ("p50", "p90", "p95", "p99")} | {
    "p99_9": "p99.9",
    "average": "Average",
}
_TTFT = {f"ttft_{each}": each for each in ("p50", "p90", "p95", "p99")}
_ITL = {f"itl_{each}": each for each in ("p50", "p90", "p95", "p99")}


def _latency(example: str) -> Option:
    return Option(ALARM_THRESHOLD_MILLISECONDS, example, planned=True)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class LatencyTarget(Options):
    """How long callers may wait; a statistic you omit gets no alarm, and one at least is needed.

    Streamed answers also have targets for the time to first token and the inter-token latency. All
    are measured at the caller, and tools define them differently, so the same numbers of another
    tool may mean something else:

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

    Attributes:
        milliseconds: The targets of the whole call, by statistic as CloudWatch writes it (``p99``, ``p99.9``, ``Average``); empty where only tokens have one.
        ttft_milliseconds: The targets of the time to first token, by percentile.
        itl_milliseconds: The targets of the inter-token latency, by percentile.

    Raises:
        ConfigurationError: ``LLE701`` for a time of zero or less, ``LLE801`` for one
            without a unit, ``LLE802`` when none is given, ``LLE803`` when a higher
            percentile of the same kind is to be faster, ``LLE821`` for a share out of range,
            ``LLE825`` for a token.

    Examples:
        >>> from datetime import timedelta
        >>> LatencyTarget(p50=timedelta(milliseconds=40), p99=timedelta(milliseconds=200)).milliseconds
        {'p50': 40.0, 'p99': 200.0}

        A chat that starts within half a second and then writes 20 tokens per second:

        >>> chat = LatencyTarget(ttft_p95="500ms", itl_p95="50ms")
        >>> chat.milliseconds, chat.ttft_milliseconds, chat.itl_milliseconds
        ({}, {'p95': 500.0}, {'p95': 50.0})
    """

    plain_value: ClassVar[str] = "p99"

    p50: Annotated[Duration | timedelta | str | None, _latency("40ms")] = None
    """Median of the whole call, from sending to the last byte."""
    p90: Annotated[Duration | timedelta | str | None, _latency("100ms")] = None
    """90th percentile of the whole call."""
    p95: Annotated[Duration | timedelta | str | None, _latency("150ms")] = None
    """95th percentile of the whole call."""
    p99: Annotated[Duration | timedelta | str | None, _latency("200ms")] = None
    """99th percentile of the whole call."""
    p99_9: Annotated[Duration | timedelta | str | None, _latency("400ms")] = None
    """99.9th percentile of the whole call."""
    average: Annotated[Duration | timedelta | str | None, _latency("60ms")] = None
    """Average of the whole call."""
    ttft_p50: Annotated[Duration | timedelta | str | None, _latency("200ms")] = None
    """Median time to first token: from sending to the first chunk with content."""
    ttft_p90: Annotated[Duration | timedelta | str | None, _latency("400ms")] = None
    """90th percentile of the time to first token."""
    ttft_p95: Annotated[Duration | timedelta | str | None, _latency("500ms")] = None
    """95th percentile of the time to first token: how long a reader waits before anything appears."""
    ttft_p99: Annotated[Duration | timedelta | str | None, _latency("1s")] = None
    """99th percentile of the time to first token."""
    itl_p50: Annotated[Duration | timedelta | str | None, _latency("30ms")] = None
    """Median inter-token latency: of the gaps between chunks with content, of all streams together."""
    itl_p90: Annotated[Duration | timedelta | str | None, _latency("40ms")] = None
    """90th percentile of the inter-token latency."""
    itl_p95: Annotated[Duration | timedelta | str | None, _latency("50ms")] = None
    """95th percentile of the inter-token latency: 50ms are 20 tokens per second for one reader."""
    itl_p99: Annotated[Duration | timedelta | str | None, _latency("100ms")] = None
    """99th percentile of the inter-token latency: the pauses that a reader notices."""
    overhead_share: Annotated[float | None, Option(OVERHEAD_SHARE, 0.1, planned=True)] = None
    """Share of a target that the network and SageMaker take; the rest is the model's. Default: 0.2,
    which nobody measured: ``low-latency plan --from-canary`` measures it."""

    def _rules(self) -> Iterator[Finding]:
        """One target at least, and higher percentiles are not asked to be faster."""
        kinds = (_WHOLE_CALL, _TTFT, _ITL)
        if not any(map(self._by_statistic, kinds)):
            allowed = "one or several of " + ", ".join(name for kind in kinds for name in kind)
            yield finding(TARGET_GIVEN, got="none", allowed=allowed)
        for kind in kinds:
            stated = [
                name for name in kind if getattr(self, name) is not None and name != "average"
            ]
            for lower, higher in pairwise(stated):
                faster, slower = (milliseconds_of(getattr(self, name)) for name in (lower, higher))
                if slower < faster:
                    yield finding(
                        TARGET_RISES,
                        higher,
                        got=milliseconds(slower, 6),
                        allowed=f"at least {lower}: {milliseconds(faster, 6)}",
                    )

    def _by_statistic(self, kind: Mapping[str, str]) -> dict[str, float]:
        """The targets of one kind in milliseconds, in the order of their percentiles."""
        stated: Mapping[str, Any] = {name: getattr(self, name) for name in kind}
        return {
            kind[name]: milliseconds_of(each) for name, each in stated.items() if each is not None
        }

    @cached_property
    def milliseconds(self) -> dict[str, float]:  # under Attributes
        return self._by_statistic(_WHOLE_CALL)

    @cached_property
    def ttft_milliseconds(self) -> dict[str, float]:
        return self._by_statistic(_TTFT)

    @cached_property
    def itl_milliseconds(self) -> dict[str, float]:
        return self._by_statistic(_ITL)

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
