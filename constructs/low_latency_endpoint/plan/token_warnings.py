"""Warnings about the tokens of a language model: lengths, requests in flight, alarms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..options.throughput import stated
from ..report.numbers import plain_number, readable
from .decisions import PlanWarning
from .scaling_policy import INVOCATIONS_METRIC
from .token_plan import STREAM_SECONDS

if TYPE_CHECKING:
    from .plan import Plan


TOKEN_WINDOW_SECONDS = 300
"""What the alarms on tokens look back on: the default of ``TokenLatencyAlarms(window=)``."""
_NEAR_STREAM_LIMIT = 0.9  # of its seconds, from which on a warning names it: our judgement


def _few_first_tokens(plan: Plan) -> Iterator[PlanWarning]:
    """That the alarms on tokens stay silent because too few requests come, where they do."""
    request = plan.request
    if request.peak_tps is None or not plan.watched_thresholds:
        return
    requests = stated(request.peak_tps) * TOKEN_WINDOW_SECONDS
    if requests < request.least_first_tokens:
        yield PlanWarning(
            "few-first-tokens",
            f"even at the peak only {plain_number(float(requests), 2)} requests come in five minutes, and "
            f"below {request.least_first_tokens} the alarms on tokens stay silent: lower "
            "alarms.tokens.minimum_requests, but then single requests raise them",
        )


NO_TOKEN_ALARMS = (
    "no alarm watches tokens: the images' names do not say whose metrics the container publishes. "
    "State alarms.tokens.server (TokenAlarmOptions), vllm or sglang, if it is one of them"
)


def token_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warn of lengths, requests in flight and alarms that the tokens of requests contradict."""
    if plan.tokens is None:
        return
    yield from _lengths(plan)
    yield from _in_flight(plan)
    yield from _few_first_tokens(plan)


def unwatched_token_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warn where no target, or no alarm, is on the tokens of a language model."""
    if plan.tokens is None:
        return
    request = plan.request
    if request.latency is not None and not request.latency.of_tokens:
        yield PlanWarning(
            "no-token-target",
            "answers are streamed, and no target says how long callers wait for the first token "
            "or between tokens: nothing watches either. State latency.ttft_p95 and itl_p95",
        )
    if plan.tokens.thresholds and request.server_of_metrics is None:
        yield PlanWarning("no-token-alarms", NO_TOKEN_ALARMS)


def _lengths(plan: Plan) -> Iterator[PlanWarning]:
    """Answers that are longer than a stream may last, or than the model's context."""
    request, made, traffic = plan.request, plan.tokens, plan.request.tokens
    if made is None:
        return
    if traffic is None:
        yield PlanWarning(
            "no-token-lengths",
            "nothing says how long prompts and answers are: capacity is counted in calls, and how "
            "many requests the KV cache holds is not known. State tokens, with input and output, as "
            "your callers send them",
        )
        return
    if made.long_call_seconds is not None:
        yield from _stream_limit(made.long_call_seconds, traffic.long_output)
    serving = request.serving.hub
    contexts = [container.fit.context for container in serving.containers] if serving else []
    context = min((context for context in contexts if context is not None), default=None)
    long = traffic.long_input + traffic.long_output
    if context is not None and long > context:
        yield PlanWarning(
            "tokens-above-context",
            f"a long prompt with a long answer, {long:,} tokens, is longer than the context of "
            f"{context:,} that the server is given: it refuses such a request or cuts the answer",
        )


def _stream_limit(seconds: float, tokens: int) -> Iterator[PlanWarning]:
    """That a long answer lasts longer than a stream may, or nearly as long."""
    if seconds < _NEAR_STREAM_LIMIT * STREAM_SECONDS:
        return
    takes = f"an answer of {tokens:,} tokens takes {seconds:,.0f} s at these targets"
    remedy = "Limit max_tokens, or ask for a shorter inter-token latency"
    if seconds > STREAM_SECONDS:
        yield PlanWarning(
            "answers-longer-than-stream",
            f"{takes}, and SageMaker ends a stream after {STREAM_SECONDS} s: callers would get a "
            f"broken answer. {remedy}",
        )
        return
    share = math.floor(100 * seconds / STREAM_SECONDS)
    yield PlanWarning(
        "answers-near-stream-limit",
        f"{takes}, {share} % of the {STREAM_SECONDS} s after which SageMaker ends a stream: callers "
        f"would get a longer answer, or a slower one, broken. {remedy}",
    )


def _in_flight(plan: Plan) -> Iterator[PlanWarning]:
    """Nothing measured in flight, no room in the cache, or numbers that contradict each other."""
    made, measured = plan.tokens, plan.request.throughput
    if made is None or measured is None:
        return
    if made.room == 0:
        yield PlanWarning(
            "no-room-in-kv-cache",
            "the KV cache has no room for a single request of these lengths: shorten them, or "
            "choose a type with more memory",
        )
    in_flight = measured.concurrency_per_instance
    if in_flight is None:
        chosen = plan.request.scaling
        own = chosen.metric == "invocations" or chosen.invocations_target is not None
        by_invocations = plan.scaling is not None and plan.scaling.metric == INVOCATIONS_METRIC
        if by_invocations and not own:
            yield PlanWarning(
                "no-concurrency",
                "scaling counts invocations, and one invocation may write ten tokens or a "
                "thousand: state throughput.concurrency_per_instance, the requests in flight on "
                "one instance at its measured limit, which low-latency load-test writes"
                + _estimate(plan),
            )
        return
    if made.room and in_flight > made.room:
        yield PlanWarning(
            "concurrency-above-kv-cache",
            f"{readable(in_flight)} in flight were measured, and the KV cache of an instance holds "
            f"{made.room:,} requests of these lengths: the load test sent shorter ones, or many of them "
            "waited. What an instance holds is lowered to the cache here, and longer prompts take "
            "longer besides: load-test with these lengths",
        )
    seconds = float(measured.call_seconds or 0)
    longest = made.call_seconds
    if longest is not None and seconds > longest:
        yield PlanWarning(
            "concurrency-contradicts-targets",
            f"{readable(in_flight)} in flight at {readable(measured.tps_per_instance)} calls per second are "
            f"{readable(seconds, 3)} s for each call (Little's law), and calls that keep the targets take "
            f"{readable(longest, 3)} s: lengths, targets or load test are of different traffic",
        )


def _estimate(plan: Plan) -> str:
    """Requests in flight by Little's law, where the targets say how long a call takes."""
    made, measured = plan.tokens, plan.request.throughput
    if made is None or measured is None or made.call_seconds is None:
        return ""
    most = measured.tps_per_instance * made.call_seconds
    return f". By Little's law it is at most {readable(most, 3)} while calls keep the targets"
