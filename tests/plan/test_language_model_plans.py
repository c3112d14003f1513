"""``docs/explanation/language-model-plans.md`` says what the code does; ``UPDATE_DOCS=1 pytest <this file>`` renews it.

Memory is calculated from each model's own files. What an instance holds is an example: nothing here
was measured.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.plan.hub_serving import HubModel, hub_serving
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.pinned_model import PinnedModel
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.scaling_policy import CONCURRENCY_METRIC

from .conftest import requested
from .pinned_models import BGE_SMALL, MISTRAL_7B
from .test_plan_docs import check_in_step, planned_as

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "language-model-plans.md"
ZONES = ("use1-az1", "use1-az2")
CHAT = LatencyTarget(ttft_p95=timedelta(milliseconds=500), itl_p95=timedelta(milliseconds=50))
#: Chats with some history: prompts of 1,200 tokens at the median, answers of 250.
CHATS = TokenTraffic(
    input=TokenLengths(p50=1200, p95=4000), output=TokenLengths(p50=250, p95=800), shared_prefix=0.3
)


def planned(
    model: PinnedModel,
    instance_type: str,
    *,
    latency: LatencyTarget,
    throughput: MeasuredThroughput,
    tokens: TokenTraffic | None = None,
    license: str = "apache-2.0",
    context_length: int | None = None,
) -> Plan:
    pinned = replace(model, license=license)
    serving = hub_serving(HubModel(pinned=pinned, context_length=context_length), [instance_type])
    return make_plan(
        requested(
            client_zones=ZONES,
            instance_type=instance_type,
            hub=serving,
            latency=latency,
            tokens=tokens,
            throughput=throughput,
        )
    )


def chat(
    instance_type: str, tps: float, in_flight: float, context_length: int | None = None
) -> Plan:
    """The 7B model for the same chats, at what one instance held in an example."""
    return planned(
        MISTRAL_7B,
        instance_type,
        latency=CHAT,
        tokens=CHATS,
        context_length=context_length,
        throughput=MeasuredThroughput(
            peak_tps=20,
            tps_per_instance=tps,
            safety_factor=0.7,
            concurrency_per_instance=in_flight,
            rise_tps_per_minute=0.5,
        ),
    )


def chat_on_g5() -> Plan:
    return chat("ml.g5.xlarge", 2.5, 36)


def chat_on_g6e() -> Plan:
    return chat("ml.g6e.xlarge", 5, 70)


def embedding() -> Plan:
    return planned(
        BGE_SMALL,
        "ml.g5.xlarge",
        license="mit",
        latency=LatencyTarget(p99=timedelta(milliseconds=40)),
        throughput=MeasuredThroughput(
            peak_tps=800, tps_per_instance=300, safety_factor=0.6, rise_tps_per_minute=20
        ),
    )


def chat_on_inferentia2() -> Plan:
    return chat("ml.inf2.8xlarge", 1.5, 16, context_length=8192)


PLANS = {
    "chat-g5": chat_on_g5,
    "chat-g6e": chat_on_g6e,
    "embedding": embedding,
    "chat-inf2": chat_on_inferentia2,
}


def memory_table() -> str:
    """What follows from the files of the models and the memory of the types."""
    rows = [
        "| Plan | Weights | Cache per token | Room in the cache | Requests of these lengths |",
        "|---|---|---|---|---|",
    ]
    for name, make in PLANS.items():
        plan = make()
        fit = plan.request.serving.hub.container.fit
        of_token, room = fit.kv_bytes_per_token, fit.kv_tokens
        requests = plan.tokens.room if plan.tokens else None
        rows.append(
            f"| {name} on {plan.request.serving.instance_type} | {fit.weight_bytes / 2**30:.1f} GiB | "
            + (
                f"{of_token:,} bytes | {room:,} tokens | "
                if of_token
                else "not known | not known | "
            )
            + (f"{requests:,} |" if requests is not None else "not known |")
        )
    text = "\n".join(rows) + "\n"
    return text.replace(
        f"| embedding on ml.g5.xlarge | {BGE_SMALL.weight_bytes / 2**30:.1f} GiB | not known | not "
        "known | not known |",
        f"| embedding on ml.g5.xlarge | {BGE_SMALL.weight_bytes / 2**30:.1f} GiB | none | none | "
        "none: nothing is kept between tokens |",
    )


def target_table() -> str:
    """What scaling aims at, and which of the two binds."""
    rows = [
        "| Plan | In flight on one instance (example) | x safety factor | KV cache | Scaling target |",
        "|---|---|---|---|---|",
    ]
    for name, make in PLANS.items():
        plan = make()
        if plan.scaling is None or plan.tokens is None or plan.tokens.in_flight is None:
            continue
        found = plan.tokens.in_flight
        room = "not known" if found.room is None else f"{found.room:,}"
        binds = "the KV cache" if found.bound_by_cache else "the load test"
        rows.append(
            f"| {name} | {found.measured:g} | {found.safe:g} | {room} | "
            f"{plan.scaling.target:g}: {binds} binds |"
        )
    return "\n".join(rows) + "\n"


def generated() -> dict[str, str]:
    plans = {name: planned_as(name, make().explanation) for name, make in PLANS.items()}
    return {"memory": memory_table(), "targets": target_table(), **plans}


def test_page_is_in_step() -> None:
    check_in_step(PAGE, generated(), "tests/plan/test_language_model_plans.py")


def test_the_kv_cache_binds_on_the_smaller_gpu_and_the_load_test_on_the_larger() -> None:
    small, large = chat_on_g5(), chat_on_g6e()
    # A request in flight: 1,569 tokens of prompt on average, and answers weighed by their length,
    # 529: 2,098, which are 132 blocks of 16. In 131,072 bytes each: 264 MiB.
    # 5,696.5 MiB and 45,776 x 0.92 - 1,536 - 13,824.5 = 26,753.4 MiB are free.
    assert (small.tokens.room, large.tokens.room) == (5696 // 264, 26_753 // 264) == (21, 101)
    assert small.scaling.metric == large.scaling.metric == CONCURRENCY_METRIC
    assert small.scaling.target == 21
    assert large.scaling.target == pytest.approx(49)
    # 20 calls per second are 20 x 36 / 2.5 = 288 in flight, at 21 each 13.7 instances, where the
    # safety factor alone would leave it at 20 / (2.5 x 0.7) = 11.4.
    assert small.fleet.at_peak == 14
    assert "the KV cache holds 21 of the 25.2" in small.explanation["instances_at_peak"].note
    assert large.fleet.at_peak == 6


@pytest.mark.parametrize("name", PLANS)
def test_no_example_contradicts_itself(name: str) -> None:
    warnings = {each.id for each in PLANS[name]().explanation.warnings}
    assert not warnings & {
        "concurrency-contradicts-targets",
        "no-token-alarms",
        "tokens-above-context",
        "answers-longer-than-stream",
        "no-concurrency",
    }
