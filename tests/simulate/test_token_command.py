"""``low-latency simulate`` with the tokens of a language model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError

CHAT = """
stack_name: Chat
region: us-east-1
client_zones:
  ids: [use1-az1, use1-az2]
endpoints:
  chat:
    containers:
      - image:
          dlc: {repository: vllm, tag: 0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker}
        data: {s3_prefix: "s3://my-models/chat/"}
    instance_type: ml.g5.2xlarge
"""
TOKENS = "    tokens: {input: 512, output: 64, shared_prefix: 0.5}\n"
TARGETS = "    latency: {ttft_p95: 500ms, itl_p95: 50ms}\n"
QUICK = ("--requests", "400", "--replications", "2")
TIMES = ("--iteration-ms", "1=23.9,128=30.3,2048=259")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT + TOKENS + TARGETS)
    return path


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["simulate", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def answer(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def test_it_says_the_largest_rate_that_keeps_the_settings_targets(chat: Path) -> None:
    found = answer(str(chat), *TIMES, "--instances", "2", "--kv-tokens", "28000", *QUICK)
    (routing,) = found["tokens"]
    largest = found["tokens"][routing]["largest_rate"]
    assert f"up to {largest:.3g} requests per second" in found["answer"][0]
    assert (
        "ttft-p95 within 500 ms, itl-p95 within 50 ms and a goodput of 95 %" in found["answer"][0]
    )
    rates = {
        each["requests_offered_per_second"]: each for each in found["tokens"][routing]["rates"]
    }
    kept, beyond = rates[largest], rates[largest * 1.2]
    assert kept["itl_ms"]["p95"]["mean"] <= 50
    assert kept["ttft_ms"]["p95"]["mean"] <= 500
    assert kept["goodput"]["mean"] >= 0.95
    assert beyond["itl_ms"]["p95"]["mean"] > kept["itl_ms"]["p95"]["mean"]


def test_options_go_over_the_settings(chat: Path) -> None:
    found = answer(
        *(str(chat), *TIMES, *QUICK, "--instances", "1", "--tps", "1"),
        *("--tokens", "input=100:300,output=20", "--target", "ttft-p99=2s"),
    )
    assert "100 (p50) to 300 (p95) tokens in, 20 out" in found["assumed"][0]
    assert "ttft-p99 within 2000 ms and a goodput of 99 %" in found["answer"][0]
    assert "1 per second keep it" in found["answer"][0]


def test_a_rate_alone_is_simulated_without_targets(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT + TOKENS)
    found = answer(str(path), *TIMES, *QUICK, "--tps", "1", "--instances", "1")
    # One request at a time for the most part: 31 ms and some between tokens is the floor.
    assert found["answer"][0].startswith(
        "RANDOM: at 1 requests per second 95 of 100 first tokens"
    ) or (": at 1 requests per second 95 of 100 first tokens" in found["answer"][0])
    (only,) = next(iter(found["tokens"].values()))["rates"]
    assert only["itl_ms"]["p50"]["mean"] == pytest.approx(23.95, abs=0.1)


def test_strategies_meet_the_same_requests(chat: Path) -> None:
    found = answer(
        *(str(chat), *TIMES, *QUICK, "--instances", "3", "--compare-routing"),
        *("--concurrency-threshold", "16"),
    )
    assert list(found["tokens"]) == ["RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE"]
    for each in found["tokens"].values():
        assert each["largest_rate"] > 0


def test_the_table_is_for_people_and_for_a_comment(chat: Path) -> None:
    options = (str(chat), *TIMES, *QUICK, "--instances", "1")
    assert "Goodput" in run(*options)
    assert "| TTFT p95, ms " in run(*options, "--markdown")


def test_a_slow_server_keeps_no_target(chat: Path) -> None:
    found = answer(str(chat), "--iteration-ms", "1=60", *QUICK)
    assert "even a lone request misses" in found["answer"][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "LLS145"),
        ((*TIMES, "--iteration-profile", "a100/llama-3-8b/tp1"), "one of --iteration-ms"),
        (("--iteration-profile", "abacus"), "LLS142"),
        (("--cached-token-us", "0.1"), "goes with --iteration-ms"),
        ((*TIMES, "--service-time", "40ms"), "--service-time does not go with"),
        ((*TIMES, "--traffic", "spike"), "--traffic does not go with"),
        ((*TIMES, "--target", "p99=200ms"), "ttft-p95=500ms"),
        ((*TIMES, "--tokens", "input=5"), "LLT165"),
        ((*TIMES, "--tokens", "input=5,output=5,turns=2,conversations=9"), "turns=... is not"),
        ((*TIMES, "--routing", "PREFIX_AWARE"), "LLE423"),
    ],
)
def test_what_does_not_fit_is_refused(chat: Path, options: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, ["simulate", str(chat), *options])
    assert done.exit_code in (1, 2)  # a coded error becomes 2 around the app
    assert said in " ".join((done.output + str(done.exception)).split())


def test_it_asks_for_a_rate_or_targets(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT + TOKENS)
    done = CliRunner().invoke(app, ["simulate", str(path), *TIMES])
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS146"


def test_options_of_a_language_model_need_tokens(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT + "    latency: {p99: 2s}\n")
    done = CliRunner().invoke(app, ["simulate", str(path), *TIMES, "--tps", "1"])
    assert done.exit_code == 2
    assert "give --tokens" in " ".join((done.output + str(done.stderr)).split())
