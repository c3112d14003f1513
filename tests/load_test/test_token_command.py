"""``low-latency load-test --tokens`` on a language model of the local AWS, over both paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import LanguageModelServer
from low_latency_endpoint.cli import app

from .servers import serve_sentiment

pytestmark = pytest.mark.realtime

MODEL = LanguageModelServer(gap_seconds=0.01, seconds_per_prompt_token=0.00005, kv_tokens=30_000)
TOKENS = "input=120,output=10,shared_prefix=0.5"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(region="us-east-1", model_servers={"*": MODEL}) as started:
        serve_sentiment(started, instances=2)
        yield started


def load_test(aws: LocalAws, result: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(
        app,
        [
            *("load-test", "sentiment", "--tokens", TOKENS, "--metrics-wait", "0s"),
            *arguments,
            *("-o", str(result)),
        ],
        env=aws.environment(),
    )
    assert done.exit_code in (0, 1), done.output
    content: dict[str, Any] = json.loads(result.read_text())
    return done.exit_code, content


@pytest.mark.parametrize("path", [(), ("--openai",)])
def test_both_paths_count_what_was_asked_for(
    aws: LocalAws, tmp_path: Path, path: tuple[str, ...]
) -> None:
    _, content = load_test(
        aws,
        tmp_path / "result.json",
        *("--tps", "8", "--duration", "4s", "--alone", "0s"),
        *("--target", "ttft-p95=60s", "--target", "itl-p95=60s", *path),
    )
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


def test_an_error_in_the_middle_of_a_stream_is_a_failed_request(
    aws: LocalAws, tmp_path: Path
) -> None:
    aws.set_model_servers({"*": replace(MODEL, failure_share=1.0, mid_stream_share=1.0)})
    try:
        _, content = load_test(
            aws, tmp_path / "result.json", "--tps", "8", "--duration", "3s", "--alone", "0s"
        )
    finally:
        aws.set_model_servers({"*": MODEL})
    (step,) = content["steps"]
    assert step["completed"] == 0
    assert step["tokens"]["good"] == 0
    (kind,) = step["errors"]
    assert kind.startswith("stream ")
