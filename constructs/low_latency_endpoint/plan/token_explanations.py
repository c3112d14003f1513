"""Why the numbers of a language model's plan are what they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import AWS_DOCS
from ..options.throughput import stated
from ..report.numbers import milliseconds, plain_number, readable
from .decisions import Decision, PlanWarning
from .instance_load import cache_limit
from .scaling_policy import INVOCATIONS_METRIC
from .token_plan import FIRST_TOKEN, TokenThreshold

if TYPE_CHECKING:
    from .plan import Plan


TOKEN_WINDOW_SECONDS = 300
"""What the alarms on tokens look back on: the default of ``TokenLatencyAlarms(window=)``."""
STREAM_SECONDS, WHOLE_SECONDS = 480, 60
"""After which SageMaker ends a streamed answer, and a whole one."""
_NEAR_STREAM_LIMIT = 0.9  # of its seconds, from which on a warning names it: our judgement

_OPTIONS = AWS_DOCS + "/sagemaker/latest/dg/deploy-model-options.html"
_ROUTING = AWS_DOCS + ("/sagemaker/latest/APIReference/API_PrefixAwareRoutingConfig.html")
_HISTOGRAMS = AWS_DOCS + "/AmazonCloudWatch/latest/monitoring/metrics-otel-histograms.html"


def explain_tokens(plan: Plan) -> Iterator[Decision[Any]]:
    """Capacity in tokens, how long a call takes, and the room in the KV cache."""
    request, made, traffic = plan.request, plan.tokens, plan.request.tokens
    if made is None or traffic is None:
        return
    measured = request.throughput
    if measured is not None:
        lengths = {"mean output tokens": round(traffic.mean_output, 1)}
        yield Decision(
            name="output_tokens_at_peak",
            value=_whole(made.output_tokens),
            unit="tokens per second",
            rule="peak TPS x mean tokens of an answer: what decode has to write",
            inputs={"peak TPS": measured.highest_tps, **lengths},
            note=f"and {_whole(made.input_tokens):,} tokens per second of prompts to prefill, less "
            "what prefix caches hold",
        )
        yield Decision(
            name="output_tokens_per_instance",
            value=_whole(made.output_tokens_per_instance),
            unit="tokens per second",
            rule="TPS per instance x mean tokens of an answer, at the measured limit",
            inputs={
                "TPS per instance": measured.tps_per_instance,
                **lengths,
                **(cache_limit(measured, plan.held_tps) if plan.held_tps else {}),
            },
            note="for answers and prompts as long as these: other lengths ask for another load test",
        )
    if made.call_seconds is not None:
        yield _call(plan, made.call_seconds)
    if made.room is not None:
        yield Decision(
            name="requests_in_kv_cache",
            value=made.room,
            unit="requests",
            rule="the KV cache's room on one instance / (prompt + answer), each in full; answers "
            "by their length, as long ones are in flight for longer",
            inputs={"tokens of a request": traffic.held_tokens},
            note="beyond it a server lets requests wait or preempts them: that is a gap between "
            "tokens, or a late first one. Shared prefixes take less, which is not counted",
        )


def _call(plan: Plan, seconds: float) -> Decision[Any]:
    request, made = plan.request, plan.tokens
    assert made is not None
    assert request.tokens is not None
    assert request.latency is not None
    first, gap = request.latency.typical_ttft, request.latency.typical_itl
    inputs: dict[str, Any] = {}
    if first is not None:
        inputs[f"time to first token, {first[0]}"] = milliseconds(first[1], 6)
    if gap is not None:
        inputs[f"inter-token latency, {gap[0]}"] = milliseconds(gap[1], 6)
    inputs["mean output tokens"] = round(request.tokens.mean_output, 1)
    long = made.long_call_seconds or seconds
    notes = (
        [f"with {request.tokens.long_output:,} tokens {readable(long, 3)} s"]
        if long > seconds
        else []
    )
    if first is None:
        notes.append("from the first token on: no target says how long that takes")
    if STREAM_SECONDS >= long > WHOLE_SECONDS:
        notes.append(f"callers must stream: SageMaker ends whole answers after {WHOLE_SECONDS} s")
    notes.append(
        "a caller's time-out for the whole call must be longer; boto3's read_timeout (60 s) waits "
        "for the next bytes only"
    )
    return Decision(
        name="call_duration",
        value=round(seconds, 3),
        unit="seconds",
        rule="TTFT + (output tokens - 1) x ITL at the targets, by the lowest percentile stated",
        inputs=inputs,
        source=_OPTIONS,
        note="; ".join(notes),
    )


def explain_token_alarms(plan: Plan) -> Iterator[Decision[Any]]:
    """Limits on tokens, in seconds, for query alarms on what the container publishes."""
    own_share = plan.request.overhead_share is not None
    for threshold in watched_thresholds(plan):
        yield explain_limit(threshold, chosen=own_share and threshold.measures == FIRST_TOKEN)


def explain_limit(limit: TokenThreshold, *, chosen: bool) -> Decision[Any]:
    """One limit; ``chosen`` where the share kept for overhead is."""
    return Decision(
        name=alarm_name_of(limit),
        value=limit.seconds,
        unit="seconds",
        rule="the target less the share kept for network and SageMaker's overhead: the server "
        "counts from the arrival of a request in itself"
        if limit.measures == FIRST_TOKEN
        else "the target itself: a gap is as long in the server as for the caller, but for what "
        "the network adds",
        inputs={
            "measures": limit.measures,
            "percentile": limit.percentile,
            "target in ms": limit.target,
            "share": limit.share,
        },
        source=_HISTOGRAMS,
        overridden=chosen,
        note="from the container's own histogram, whose bounds are wide: a percentile within one "
        "is estimated. A wrong metric name never alarms, so low-latency verify asks for data",
    )


def watched_thresholds(plan: Plan) -> tuple[TokenThreshold, ...]:
    """The limits on tokens that alarms can watch: those whose metrics are known."""
    if plan.tokens is None or plan.request.server_of_metrics is None:
        return ()
    return plan.tokens.thresholds


def alarm_name_of(threshold: TokenThreshold) -> str:
    """The name of the decision on a limit."""
    words = threshold.measures.replace(" ", "_").replace("-", "_")
    return f"alarm_{words}_{threshold.percentile}"


def _few_first_tokens(plan: Plan) -> Iterator[PlanWarning]:
    """That the alarms on tokens stay silent because too few requests come, where they do."""
    request = plan.request
    if request.peak_tps is None or not watched_thresholds(plan):
        return
    requests = stated(request.peak_tps) * TOKEN_WINDOW_SECONDS
    if requests < request.least_first_tokens:
        yield PlanWarning(
            "few-first-tokens",
            f"even at the peak only {plain_number(float(requests), 2)} requests come in five minutes, and "
            f"below {request.least_first_tokens} the alarms on tokens stay silent: lower "
            "alarms.tokens.minimum_requests, but then single requests raise them",
        )


def prefix_note(plan: Plan) -> str:
    """What is known of PREFIX_AWARE for these prompts; empty where it is chosen."""
    if plan.routing == "PREFIX_AWARE":
        return ""
    traffic = plan.request.tokens
    if traffic is None or not traffic.shared_prefix:
        return "where prompts share a long beginning, measure PREFIX_AWARE as well"
    shared = round(traffic.shared_prefix * traffic.mean_input)
    return (
        f"about {shared:,} tokens of a prompt are shared: a beginning that all requests have is in "
        "every instance's cache under any routing; with many of them (tenants, documents, "
        "conversations) PREFIX_AWARE keeps each on few instances. AWS publishes no figure for it: "
        "low-latency compare-routing measures both"
    )


def _whole(value: float | None) -> int:
    return round(value or 0)


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
