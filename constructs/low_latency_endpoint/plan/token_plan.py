"""What the plan of a language model adds: tokens per second, requests in flight, limits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ..errors.frozen import dataclass
from ..errors.impossible import out_of_range
from ..options.throughput import limit_tps, stated
from .decisions import numbers_of
from .endpoint_request import EndpointRequest
from .instance_load import InFlight

FIRST_TOKEN, BETWEEN_TOKENS = "time to first token", "inter-token latency"
TOKEN_LIMITS = {FIRST_TOKEN: "ttft_milliseconds", BETWEEN_TOKENS: "itl_milliseconds"}


class TokenThreshold(NamedTuple):
    """A limit for an alarm on what the container publishes of its tokens."""

    # ``time to first token`` or ``inter-token latency``: each server names its metrics itself
    measures: str
    percentile: str
    target: float  # of the caller, in milliseconds
    share: float  # of the target: all of it between tokens; less the overhead's to the first token
    seconds: float  # where the alarm stands, in the unit that servers publish


@dataclass(frozen=True, kw_only=True)
class TokenPlan:
    """Of an endpoint that states tokens, or targets on them."""

    thresholds: tuple[TokenThreshold, ...] = ()
    # how long a call takes at the targets, with an answer of mean length and of the 95th
    # percentile; None without lengths or without a target of the inter-token latency
    call_seconds: float | None = None
    long_call_seconds: float | None = None
    # per second at the peak, of the whole variant; None without lengths or throughput
    output_tokens: float | None = None
    input_tokens: float | None = None
    output_tokens_per_instance: float | None = None  # per second at one instance's measured limit
    # requests of these lengths that the KV cache of one instance has room for
    room: int | None = None
    in_flight: InFlight | None = None  # None where nothing is measured

    def problems(self) -> Iterator[str]:
        """Numbers that no plan has."""
        yield from out_of_range(numbers_of(vars(self)))
        for limit in self.thresholds:
            threshold = {f"threshold on {limit.measures}": limit.seconds}
            yield from out_of_range(threshold, high=limit.target / 1000)


def token_plan(request: EndpointRequest, overhead_share: Fraction) -> TokenPlan | None:
    """The numbers of a request that states tokens or targets on them; None of any other."""
    if not request.of_tokens:
        return None
    traffic, measured = request.tokens, request.throughput
    room = _room(request)
    in_flight = None
    if measured is not None and measured.concurrency_per_instance is not None:
        in_flight = InFlight(measured.concurrency_per_instance, measured.safety_factor, room)
    rates: dict[str, float] = {}
    if traffic is not None and measured is not None:
        rates = {
            "output_tokens": measured.highest_tps * traffic.mean_output,
            "input_tokens": measured.highest_tps * traffic.mean_input,
            "output_tokens_per_instance": float(limit_tps(measured, room)) * traffic.mean_output,
        }
    return TokenPlan(
        thresholds=tuple(_thresholds(request, overhead_share)),
        call_seconds=call_seconds(request, traffic.mean_output) if traffic else None,
        long_call_seconds=call_seconds(request, traffic.long_output) if traffic else None,
        room=room,
        in_flight=in_flight,
        **rates,
    )


def call_seconds(request: EndpointRequest, output_tokens: float) -> float | None:
    """TTFT + (tokens - 1) x ITL, each by its lowest stated percentile; without ITL ``None``."""
    target = request.latency
    gap = target.typical_itl if target else None
    if target is None or gap is None:
        return None
    first = target.typical_ttft
    milliseconds = (stated(first[1]) if first else 0) + stated(gap[1]) * (stated(output_tokens) - 1)
    return float(milliseconds / 1000)


def _room(request: EndpointRequest) -> int | None:
    """Requests of the stated lengths that the KV cache holds, on the type with the least room."""
    if request.tokens is None or request.serving.hub is None:
        return None
    found = [
        container.fit.requests_of(request.tokens.held_tokens)
        for container in request.serving.hub.containers
    ]
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def _thresholds(request: EndpointRequest, overhead_share: Fraction) -> Iterator[TokenThreshold]:
    """The targets as the server's own clocks see them."""
    for measures, name in TOKEN_LIMITS.items():
        # A server counts from the arrival in itself. Between tokens, what lies before it cancels.
        if measures == FIRST_TOKEN and request.is_rare:
            continue  # each call has one: of rare calls a percentile is that of a single one
        share = 1 - overhead_share if measures == FIRST_TOKEN else Fraction(1)
        for percentile, target in getattr(request.latency, name, {}).items():
            yield TokenThreshold(
                measures, percentile, target, float(share), float(stated(target) * share / 1000)
            )
