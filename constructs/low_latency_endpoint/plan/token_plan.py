"""What the plan of a language model adds: tokens per second, requests in flight, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import AWS_DOCS
from ..errors.frozen import dataclass
from ..errors.impossible import out_of_range, refuse
from ..options.load import TokenTraffic
from ..options.throughput import MeasuredThroughput, limit_tps, stated
from ..report.numbers import milliseconds, readable
from .decisions import IMPOSSIBLE, Decision
from .endpoint_request import EndpointRequest
from .instance_load import InFlight, cache_limit

FIRST_TOKEN = "time to first token"
BETWEEN_TOKENS = "inter-token latency"
STREAM_SECONDS = 480
WHOLE_SECONDS = 60
"""After which SageMaker ends a streamed answer, and a whole one."""

_OPTIONS = AWS_DOCS + "/sagemaker/latest/dg/deploy-model-options.html"
_HISTOGRAMS = AWS_DOCS + "/AmazonCloudWatch/latest/monitoring/metrics-otel-histograms.html"


class TokenThreshold(NamedTuple):
    """A limit for an alarm on what the container publishes of its tokens."""

    # ``time to first token`` or ``inter-token latency``: each server names its metrics itself
    measures: str
    percentile: str
    target: float  # of the caller, in milliseconds; 0 where the limit itself is stated
    decision: Decision[float]  # where the alarm stands, in seconds, as servers publish

    @property
    def seconds(self) -> float:
        """Where the alarm stands, in the unit that servers publish."""
        return self.decision.value


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
    output_tokens_per_instance: float | None = None  # per second at one instance's measured limit
    # requests of these lengths that the KV cache of one instance has room for
    room: int | None = None
    in_flight: InFlight | None = None  # None where nothing is measured
    decisions: tuple[Decision[Any], ...] = ()  # of its numbers, without those of the thresholds

    def problems(self) -> Iterator[str]:
        """Numbers that no plan has."""
        for limit in self.thresholds:
            threshold = {f"threshold on {limit.measures}": limit.seconds}
            yield from out_of_range(threshold, high=limit.target / 1000)


def token_plan(request: EndpointRequest, overhead_share: Fraction) -> TokenPlan | None:
    """The numbers of a request that states tokens or targets on them; None of any other."""
    if not request.of_tokens:
        return None
    traffic = request.tokens
    measured = request.throughput
    room = _room(request)
    in_flight = None
    if measured is not None and measured.concurrency_per_instance is not None:
        in_flight = InFlight(measured.concurrency_per_instance, measured.safety_factor, room)
    numbers: dict[str, Any] = {}
    decisions: list[Decision[Any]] = []
    if traffic is not None and measured is not None:
        limit = limit_tps(measured, room)
        numbers = {
            "output_tokens": measured.highest_tps * traffic.mean_output,
            "output_tokens_per_instance": float(limit) * traffic.mean_output,
        }
        refuse(IMPOSSIBLE, "tokens", out_of_range(numbers))
        decisions += _rates(traffic, measured, limit, numbers)
    if traffic is not None:
        numbers["call_seconds"] = call_seconds(request, traffic.mean_output)
        numbers["long_call_seconds"] = call_seconds(request, traffic.long_output)
        decisions += _call(request, traffic, numbers["call_seconds"], numbers["long_call_seconds"])
        decisions += _requests_in_cache(traffic, room)
    return TokenPlan(
        thresholds=tuple(_thresholds(request, overhead_share)),
        room=room,
        in_flight=in_flight,
        decisions=tuple(decisions),
        **numbers,
    )


def _rates(
    traffic: TokenTraffic, measured: MeasuredThroughput, limit: Fraction, rates: Mapping[str, float]
) -> Iterator[Decision[int]]:
    """Tokens per second at the peak, and at one instance's limit."""
    lengths = {"mean output tokens": round(traffic.mean_output, 1)}
    prompts = round(measured.highest_tps * traffic.mean_input)
    yield Decision(
        name="output_tokens_at_peak",
        value=round(rates["output_tokens"]),
        unit="tokens per second",
        rule="peak TPS x mean tokens of an answer: what decode has to write",
        inputs={"peak TPS": measured.highest_tps, **lengths},
        note=f"and {prompts:,} tokens per second of prompts to prefill, less "
        "what prefix caches hold",
    )
    yield Decision(
        name="output_tokens_per_instance",
        value=round(rates["output_tokens_per_instance"]),
        unit="tokens per second",
        rule="TPS per instance x mean tokens of an answer, at the measured limit",
        inputs={
            "TPS per instance": measured.tps_per_instance,
            **lengths,
            **cache_limit(measured, limit),
        },
        note="for answers and prompts as long as these: other lengths ask for another load test",
    )


def _requests_in_cache(traffic: TokenTraffic, room: int | None) -> Iterator[Decision[int]]:
    """How many requests the KV cache of an instance has room for, where that is known."""
    if room is None:
        return
    yield Decision(
        name="requests_in_kv_cache",
        value=room,
        unit="requests",
        rule="the KV cache's room on one instance / (prompt + answer), each in full; answers "
        "by their length, as long ones are in flight for longer",
        inputs={"tokens of a request": traffic.held_tokens},
        note="beyond it a server lets requests wait or preempts them: that is a gap between "
        "tokens, or a late first one. Shared prefixes take less, which is not counted",
    )


def _call(
    request: EndpointRequest, traffic: TokenTraffic, seconds: float | None, longest: float | None
) -> Iterator[Decision[float]]:
    """How long a call takes at the targets, where one is on the time between tokens."""
    latency = request.latency
    if seconds is None or latency is None:
        return
    first = latency.typical_ttft
    gap = latency.typical_itl
    inputs: dict[str, Any] = {}
    if first is not None:
        inputs[f"time to first token, {first[0]}"] = milliseconds(first[1], 6)
    if gap is not None:
        inputs[f"inter-token latency, {gap[0]}"] = milliseconds(gap[1], 6)
    inputs["mean output tokens"] = round(traffic.mean_output, 1)
    long = longest or seconds
    notes = [f"with {traffic.long_output:,} tokens {readable(long, 3)} s"] if long > seconds else []
    if first is None:
        notes.append("from the first token on: no target says how long that takes")
    if STREAM_SECONDS >= long > WHOLE_SECONDS:
        notes.append(f"callers must stream: SageMaker ends whole answers after {WHOLE_SECONDS} s")
    notes.append(
        "a caller's time-out for the whole call must be longer; boto3's read_timeout (60 s) waits "
        "for the next bytes only"
    )
    yield Decision(
        name="call_duration",
        value=round(seconds, 3),
        unit="seconds",
        rule="TTFT + (output tokens - 1) x ITL at the targets, by the lowest percentile stated",
        inputs=inputs,
        source=_OPTIONS,
        note="; ".join(notes),
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
    latency = request.latency
    if latency is None:
        return
    if not request.is_rare:  # each call has one: of rare calls a percentile is that of a single one
        # A server counts from the arrival in itself.
        rule = (
            "the target less the share kept for network and SageMaker's overhead: the server "
            "counts from the arrival of a request in itself"
        )
        for percentile, target in latency.ttft_milliseconds.items():
            yield _planned_threshold(
                FIRST_TOKEN,
                percentile,
                target,
                1 - overhead_share,
                rule=rule,
                chosen=request.overhead_share is not None,
            )
    # Between tokens, what lies before it cancels.
    rule = (
        "the target itself: a gap is as long in the server as for the caller, but for what "
        "the network adds"
    )
    for percentile, target in latency.itl_milliseconds.items():
        yield _planned_threshold(
            BETWEEN_TOKENS, percentile, target, Fraction(1), rule=rule, chosen=False
        )


def _planned_threshold(
    measures: str, percentile: str, target: float, share: Fraction, *, rule: str, chosen: bool
) -> TokenThreshold:
    """Return the threshold at a share of a target; ``chosen`` where that share is."""
    seconds = float(stated(target) * share / 1000)
    inputs = {"target in ms": target, "share": float(share)}
    return token_threshold(
        measures, percentile, seconds, target=target, rule=rule, inputs=inputs, chosen=chosen
    )


def token_threshold(
    measures: str,
    percentile: str,
    seconds: float,
    *,
    target: float = 0.0,
    rule: str = "your threshold",
    inputs: Mapping[str, float] = MappingProxyType({}),
    chosen: bool = True,
) -> TokenThreshold:
    """Return a threshold with its reason: by default that it is stated."""
    words = measures.replace(" ", "_").replace("-", "_")
    decision = Decision(
        name=f"alarm_{words}_{percentile}",
        value=seconds,
        unit="seconds",
        rule=rule,
        inputs={"measures": measures, "percentile": percentile, **inputs},
        source=_HISTOGRAMS,
        overridden=chosen,
        note="from the container's own histogram, whose bounds are wide: a percentile within one "
        "is estimated. A wrong metric name never alarms, so low-latency verify asks for data",
    )
    return TokenThreshold(measures, percentile, target, decision)
