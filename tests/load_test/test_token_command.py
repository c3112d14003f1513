"""``low-latency load-test --tokens`` on a language model of the local AWS, over both paths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import LanguageModelServer

from .conftest import LoadTest
from .servers import serve_sentiment

pytestmark = pytest.mark.realtime

MODEL = LanguageModelServer(gap_seconds=0.01, seconds_per_prompt_token=0.00005, kv_tokens=30_000)
SENT = ("--tokens", "input=120,output=10,shared_prefix=0.5", "--tps", "8", "--alone", "0s")


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(region="us-east-1", model_servers={"*": MODEL}) as started:
        serve_sentiment(started, instances=2)
        yield started


@pytest.mark.parametrize("path", [(), ("--openai",)])
def test_both_paths_count_what_was_asked_for(load_test: LoadTest, path: tuple[str, ...]) -> None:
    targets = ("--target", "ttft-p95=60s", "--target", "itl-p95=60s")
    content, _ = load_test(*SENT, "--duration", "4s", *targets, *path)
    (step,) = content["steps"]
    tokens = step["tokens"]
    assert step["errors"] == {}
    assert step["completed"] > 10
    assert tokens["output_tokens"] == 10 * step["completed"]
    assert tokens["prompt_tokens"] == 120 * step["completed"]
    # The shared half is 60 tokens: three whole blocks of 16, of all but the first of an instance.
    assert tokens["cached_tokens"] >= 48 * (step["completed"] - 2)
    assert tokens["good"] == step["completed"]
    assert tokens["uncounted"] == tokens["unstreamed"] == 0
    assert tokens["inter_token_ms"]["count"] == 9 * step["completed"]
    # No token comes before the model's iteration; what the machine adds is only ever more.
    assert tokens["first_token_ms"]["min"] >= 10
    assert tokens["per_token_ms"]["percentiles"]["p50"]["ms"] >= 9
