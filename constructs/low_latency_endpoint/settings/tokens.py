"""Settings of a language model's traffic: tokens of prompts and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from ..errors.findings import Finding, finding
from ..plan.endpoint_request import STREAM_NEEDED
from ..plan.token_traffic import (
    LENGTHS_FALL,
    SHARED_PREFIX,
    TOKEN_COUNT,
    TokenLengths,
    TokenTraffic,
)
from .fields import Limited
from .model_base import SettingsModel, mapping_of, optional

Tokens = Annotated[int, Limited(TOKEN_COUNT)]


class TokenLengthSettings(SettingsModel):
    """Lengths that differ: lognormal, through a median and a 95th percentile."""

    p50: Tokens = Field(
        examples=[300], description="Tokens that half of the requests have at most."
    )
    p95: Tokens = Field(examples=[1800], description="Tokens that 95 in 100 requests have at most.")

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """The 95th percentile is no less than the median."""
        low, high = given.get("p50", 0), given.get("p95", 0)
        if TOKEN_COUNT.holds(low) and TOKEN_COUNT.holds(high) and high < low:
            yield finding(LENGTHS_FALL, "p95", got=f"p95: {high}", allowed=f"at least p50: {low}")

    @property
    def lengths(self) -> TokenLengths:
        """As planning takes them."""
        return TokenLengths(p50=self.p50, p95=self.p95)


Length = Annotated[
    Annotated[Tokens, Tag("#tokens")] | Annotated[TokenLengthSettings, Tag("#lengths")],
    Discriminator(
        lambda value: "#lengths" if isinstance(value, (Mapping, TokenLengthSettings)) else "#tokens"
    ),
]


class TokenSettings(SettingsModel):
    """Tokens of the requests that a language model gets, and of its answers."""

    other_forms: ClassVar[Mapping[str, type[SettingsModel]]] = {
        "input": TokenLengthSettings,
        "output": TokenLengthSettings,
    }

    input: Length = Field(
        examples=[512],
        description="Tokens of a prompt with all that goes before it, as one number or as "
        "{p50: 300, p95: 1800}. Long prompts delay the first token, their own and others'.",
    )
    output: Length = Field(
        examples=[128],
        description="Tokens of an answer, likewise. A call takes as long as its answer is long.",
    )
    shared_prefix: Annotated[float, Limited(SHARED_PREFIX)] = optional(
        "Share of a prompt's tokens, at its beginning, that requests have in common, such as a "
        "system prompt. What is shared and cached delays no first token. Default: 0, nothing is "
        "known to be shared.",
        example=0.5,
        default=0.0,
    )

    @property
    def traffic(self) -> TokenTraffic:
        """As planning and the constructs take them."""
        return TokenTraffic(
            input=_planned(self.input),
            output=_planned(self.output),
            shared_prefix=self.shared_prefix,
        )


def _planned(length: int | TokenLengthSettings) -> int | TokenLengths:
    return length.lengths if isinstance(length, TokenLengthSettings) else length


def stream_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """Tokens, and targets on them, are those of an endpoint that streams."""
    if given.get("streaming") is not False:
        return
    latency = mapping_of(given, "latency")
    stated = [f"latency.{name}" for name in latency if name.startswith(("ttft_", "itl_"))]
    stated += ["tokens"] * ("tokens" in given)
    if stated:
        yield finding(
            STREAM_NEEDED,
            "streaming",
            got=f"streaming: false with {', '.join(stated)}",
            allowed="streaming: true, or neither tokens nor targets of ttft and itl",
            fix="Write streaming: true, or leave it out. For whole answers state latency: {p99: "
            "...}, and no tokens.",
        )
