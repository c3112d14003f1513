"""What is suspicious about a language model's plan, or not known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..options.capacity import stated
from ..report.numbers import readable
from .decisions import PlanWarning
from .plan import INVOCATIONS_METRIC
from .token_explanations import STREAM_SECONDS

if TYPE_CHECKING:
    from .plan import Plan

NO_TOKEN_ALARMS = (
    "no alarm watches tokens: the images' names do not say whose metrics the container publishes. "
    "State alarms.tokens.server (TokenAlarmOptions), vllm or sglang, if it is one of them"
)


def token_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """All of them; none of an endpoint that states no tokens."""
    if plan.tokens is None:
        return
    yield from _lengths(plan)
    yield from _in_flight(plan)
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
            "many requests the KV cache holds is not known. State tokens: {input: 512, output: "
            "128} as your callers send them",
        )
        return
    longest = made.long_call_seconds
    if longest is not None and longest > STREAM_SECONDS:
        yield PlanWarning(
            "answers-longer-than-stream",
            f"an answer of {traffic.long_output:,} tokens takes {longest:,.0f} s at these targets, "
            f"and SageMaker ends a stream after {STREAM_SECONDS} s: callers would get a broken "
            "answer. Limit max_tokens, or ask for a shorter inter-token latency",
        )
    serving = request.serving.hub
    contexts = [each.fit.context for each in serving.containers] if serving else []
    context = min((each for each in contexts if each is not None), default=None)
    long = traffic.long_input + traffic.long_output
    if context is not None and long > context:
        yield PlanWarning(
            "tokens-above-context",
            f"a long prompt with a long answer, {long:,} tokens, is longer than the context of "
            f"{context:,} that the server is given: it refuses such a request or cuts the answer",
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
    seconds = float(stated(in_flight) / stated(measured.tps_per_instance))
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
