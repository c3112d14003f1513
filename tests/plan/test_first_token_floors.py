"""The shortest time before the first token is that of the prompt which a target has to hold for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from low_latency_endpoint.plan.hub_serving import HubModel, hub_serving
from low_latency_endpoint.plan.plan import Plan

from .test_token_plan import QWEN3_8B, chat, line, ms, warned

#: 8,190,735,360 less two embeddings of 151,936 x 4,096; dense operations of 16 bits per second.
PARAMETERS = 8_190_735_360 - 2 * 151_936 * 4096
TERAFLOPS = {"ml.g5.xlarge": 70, "ml.g6.xlarge": 121, "ml.g6e.xlarge": 362.05}


def planned(types: tuple[str, ...], **stated: Any) -> Plan:
    model = HubModel(pinned=replace(QWEN3_8B, license="mit"))
    hub = hub_serving(model, types)
    return chat(instance_type=types[0], hub=hub, images=[], throughput=None, **stated)


#: Up to a twentyfold p95, whose mean is 5.2 times the median: all fit into the context.
LENGTHS = st.integers(1, 9000) | st.builds(
    lambda p50, more: TokenLengths(p50=p50, p95=p50 + more),
    st.integers(1, 3000),
    st.integers(0, 5000),
).filter(lambda lengths: lengths.p95 <= 20 * lengths.p50)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    types=st.lists(st.sampled_from(sorted(TERAFLOPS)), min_size=1, unique=True).map(tuple),
    lengths=LENGTHS,
    shared=st.integers(0, 90).map(lambda percent: percent / 100),
    percentiles=st.sets(st.sampled_from(["p50", "p90", "p95", "p99"]), min_size=1),
    first=st.integers(1, 4000),
    kept=st.none() | st.integers(1, 90).map(lambda percent: percent / 100),
)
def test_each_target_is_held_against_its_own_prompt(
    types: tuple[str, ...],
    lengths: int | TokenLengths,
    shared: float,
    percentiles: set[str],
    first: int,
    kept: float | None,
) -> None:
    """Of random targets, the highest share and each one that is out of reach."""
    targets = {name: first * (number + 1) for number, name in enumerate(sorted(percentiles))}
    asked: dict[str, Any] = {f"ttft_{name}": ms(target) for name, target in targets.items()}
    plan = planned(
        types,
        tokens=TokenTraffic(input=lengths, output=100, shared_prefix=shared),
        latency=LatencyTarget(**asked, overhead_share=kept),
    )
    shares: dict[tuple[str, str], float] = {}
    for name, target in targets.items():
        if isinstance(lengths, int):
            prompt = lengths
        else:
            prompt = lengths.p95 if name in ("p95", "p99") else lengths.p50
        uncached = round(prompt * (1 - shared), 1)
        for kind in types:
            least = 2 * PARAMETERS * uncached / TERAFLOPS[kind] / 1e9
            shares[name, kind] = least / (target * (1 - (0.2 if kept is None else kept)))
    decision = plan.explanation["first_token_floor"]
    (share,) = [value for name, value in decision.inputs.items() if name == "share of that"]
    assert share == pytest.approx(max(shares.values()), abs=6e-5)
    assert f"{max(shares.values()):.0%} of the" in (line(plan, "Floors") or "")
    beyond = [place for place, found in shares.items() if found > 1]
    warning = warned(plan, "first-token-floor")
    assert (warning is not None) == bool(beyond)
    for name, kind in beyond:
        assert f"ttft_{name} leaves the model" in str(warning)
        assert f"on {kind}" in str(warning)


#: By hand: 2 x 6.946e9 x 4,000 / 70e12 = 794 ms (793.8), and of 1,200 tokens 238 ms.
CHATS = TokenTraffic(input=TokenLengths(p50=1200, p95=4000), output=250)


def test_a_95th_percentile_waits_for_the_95th_percentile_of_the_prompts() -> None:
    plan = planned(("ml.g5.xlarge",), tokens=CHATS, latency=LatencyTarget(ttft_p95=ms(1000)))
    text = line(plan, "Floors") or ""
    assert "794 ms before the first, after a p95 prompt of 4,000 tokens" in text
    assert "99% of the 800 ms that ttft_p95 leaves the model" in text
    assert warned(plan, "first-token-floor") is None


def test_a_median_waits_for_the_median_prompt() -> None:
    plan = planned(("ml.g5.xlarge",), tokens=CHATS, latency=LatencyTarget(ttft_p50=ms(500)))
    text = line(plan, "Floors") or ""
    assert "238 ms before the first, after a p50 prompt of 1,200 tokens" in text
    assert "60% of the 400 ms that ttft_p50 leaves the model" in text


def test_without_a_target_the_mean_prompt_is_shown() -> None:
    plan = planned(("ml.g5.xlarge",), tokens=CHATS, latency=LatencyTarget(itl_p95=ms(60)))
    # exp(0.732 ** 2 / 2) = 1.307 times the median, 1,569: 311 ms
    assert "311 ms before the first, after a mean prompt of 1,569 tokens" in (
        line(plan, "Floors") or ""
    )


def test_a_target_below_the_floor_is_warned_of() -> None:
    plan = planned(("ml.g5.xlarge",), tokens=CHATS, latency=LatencyTarget(ttft_p95=ms(990)))
    text = str(warned(plan, "first-token-floor"))
    assert "ttft_p95 leaves the model 792 ms for a p95 prompt of 4,000 tokens" in text
    assert "which takes 794 ms on ml.g5.xlarge" in text
