"""What an endpoint has to hold: requests and their tokens, their latency, the instances that serve them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from typing import Annotated, Any, ClassVar

from ..errors import rule
from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limit_kinds import Range, number_range
from ..report.numbers import plain_number
from .argument_kinds import checked_arguments
from .latency_target import LatencyTarget
from .option import Option, Options
from .scaling import InstanceCounts, ScalingOptions
from .throughput import MeasuredThroughput

_P95_DEVIATIONS = 1.6448536269514722
"""Standard deviations from the median to the 95th percentile of a normal distribution."""

TOKEN_COUNT = number_range(
    "LLE893",
    "the number of tokens",
    1,
    None,
    fix="Give prompt tokens (input) and answer tokens (output) as whole numbers, or as "
    "p50 and p95.",
)
LENGTHS_FALL = rule(
    "LLE894",
    "the 95th percentile of a length is below its median",
    fix="Give p95 the same or more tokens than p50.",
)
SHARED_PREFIX = Range(
    rule(
        "LLE895",
        "the shared part of the prompts is not a share from 0 to 1",
        fix="Give the share of a prompt's tokens that requests have in common at its beginning, "
        "such as a system prompt: 0.5 is one half.",
    ),
    "the shared part of the prompts",
    0,
    1,
    "",
    False,
)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class TokenLengths(Options):
    """Varying lengths: lognormal, given by median and 95th percentile.

    Raises:
        ConfigurationError: ``LLE893`` for no number of tokens, ``LLE894`` for a p95
            below the p50, ``LLE807``.

    Examples:
        >>> answers = TokenLengths(p50=300, p95=1800)
        >>> round(answers.mean), round(answers.mean_in_flight)
        (543, 1779)
    """

    p50: Annotated[int, Option(TOKEN_COUNT, 300, planned=True)]
    """Median number of tokens."""
    p95: Annotated[int, Option(TOKEN_COUNT, 1800, planned=True)]
    """95th percentile of the number of tokens."""

    def _rules(self) -> Iterator[Finding]:
        """The 95th percentile is no less than the median."""
        if self.p95 < self.p50:
            got, allowed = f"p95: {self.p95}", f"at least p50: {self.p50}"
            yield finding(LENGTHS_FALL, "p95", got=got, allowed=allowed)

    @property
    def deviation(self) -> float:
        """Standard deviation of the logarithm, whose mean is that of the median."""
        return math.log(self.p95 / self.p50) / _P95_DEVIATIONS

    @property
    def mean(self) -> float:
        """The mean length in tokens."""
        return self.p50 * math.exp(self.deviation**2 / 2)

    @property
    def mean_in_flight(self) -> float:
        """The mean length of those in flight: a long answer is in flight for longer."""
        return self.mean * math.exp(self.deviation**2)

    @property
    def text(self) -> str:
        """In words, for people."""
        return f"{self.p50:,} (p50) to {self.p95:,} (p95)"


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class TokenTraffic(Options):
    """Tokens of the requests that a language model gets, and of its answers.

    Raises:
        ConfigurationError: ``LLE893`` for no number of tokens, ``LLE895`` for no share,
            ``LLE807``, ``LLE825``.

    Examples:
        >>> TokenTraffic(input=512, output=128, shared_prefix=0.5).text
        '512 tokens in, 128 out, 50 % of the prompt shared'
    """

    input: Annotated[int | TokenLengths, Option(TOKEN_COUNT, 512, planned=True)]
    """Tokens of a prompt with its system prompt and history, as one number or as {p50: 300, p95:
    1800}. Long prompts delay first tokens, their own and others'.

    In Python, percentiles are ``TokenLengths(p50=300, p95=1800)``.
    """
    output: Annotated[int | TokenLengths, Option(TOKEN_COUNT, 128, planned=True)]
    """Tokens of an answer, in the same form. The longer the answer, the longer the call."""
    shared_prefix: Annotated[float, Option(SHARED_PREFIX, 0.5, planned=True)] = 0.0
    """Share of a prompt's tokens that requests have in common at the start, such as a system
    prompt. A shared, cached prefix does not delay the first token. Default: 0."""

    @property
    def mean_input(self) -> float:
        """Mean tokens of a prompt."""
        return _mean(self.input)

    @property
    def mean_output(self) -> float:
        """Mean tokens of an answer."""
        return _mean(self.output)

    @property
    def long_input(self) -> int:
        """Tokens of a long prompt: the 95th percentile."""
        return _long(self.input)

    @property
    def long_output(self) -> int:
        """Tokens of a long answer: the 95th percentile."""
        return _long(self.output)

    @property
    def held_tokens(self) -> int:
        """Tokens that a request in flight holds in the KV cache at its end, on average.

        Prompt and answer in full, as most of the answers in flight are not at their end yet; and
        answers by their length, as long ones are in flight for longer.
        """
        output = self.output
        of_answer = output.mean_in_flight if isinstance(output, TokenLengths) else output
        return math.ceil(self.mean_input + of_answer)

    @property
    def text(self) -> str:
        """In words, for people."""
        shared = (
            f", {plain_number(self.shared_prefix * 100, 4)} % of the prompt shared"
            if self.shared_prefix
            else ""
        )
        return f"{_text(self.input)} tokens in, {_text(self.output)} out{shared}"


def _mean(length: Any) -> float:
    return length.mean if isinstance(length, TokenLengths) else float(length)


def _long(length: Any) -> int:
    return length.p95 if isinstance(length, TokenLengths) else int(length)


def _text(length: Any) -> str:
    return length.text if isinstance(length, TokenLengths) else f"{length:,}"


@dataclass(frozen=True, kw_only=True)
class LoadOptions(Options):
    """What an endpoint has to hold, and the fleet that holds it."""

    leads: ClassVar[bool] = True

    latency: Annotated[LatencyTarget | None, Option(example={"p99": "200ms"})] = None
    """The latency target. Default: none, with no latency alarms and a warning."""
    throughput: Annotated[
        MeasuredThroughput | None, Option(example={"peak_tps": 1000, "tps_per_instance": 200})
    ] = None
    """Load to serve and measured throughput. Default: not measured, so one instance per client zone
    and no scaling."""
    tokens: Annotated[
        TokenTraffic | None, Option(example={"input": 512, "output": 128, "shared_prefix": 0.5})
    ] = None
    """Tokens of prompts and answers, for a language model that streams: the plan counts capacity
    and KV cache in tokens. Default: it counts only calls."""
    streaming: Annotated[bool | None, Option()] = None
    """Callers stream answers: SageMaker ends a stream after 8 minutes, other calls after 60 s.
    Default: true with tokens or targets for ttft or itl, else false."""
    payload_bytes: Annotated[int | None, Option(limits.PAYLOAD, 8000000, planned=True)] = None
    """Size of the callers' largest request, for SageMaker's limits, the data through the interface
    endpoint, and the overhead. Default: assumed to be that of the warm-up's payload, and not
    checked."""
    instances: Annotated[InstanceCounts, Option(example={"min": 2, "max": 12})] = field(
        default_factory=InstanceCounts
    )
    """Instance counts. Default: derived from the throughput."""
    scaling: Annotated[ScalingOptions, Option(example={"scale_in_cooldown": "5m"})] = field(
        default_factory=ScalingOptions
    )
    """How the number of instances follows the load. Default: target tracking on invocations per
    instance."""
