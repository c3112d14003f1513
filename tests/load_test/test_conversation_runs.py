"""Conversations sent to a language model of the local AWS: what its caches find again, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import LanguageModelServer
from local_sagemaker.model_servers.language_model import BLOCK
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.prompts import Prompts
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import INVOKE, OPENAI, Target, TokenLimits

from .conftest import LoadTest
from .servers import serve_sentiment

pytestmark = pytest.mark.realtime

MODEL = LanguageModelServer(
    gap_seconds=0.005, seconds_per_prompt_token=1e-6, kv_tokens=100_000, stateful_sessions=True
)
RATE, SECONDS, TURNS, AT_ONCE = 20, 6, 4, 20
QUESTION, ANSWER = 4 * BLOCK, BLOCK
LENGTHS = f"input={QUESTION},output={ANSWER},turns={TURNS},conversations={AT_ONCE}"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(region="us-east-1", model_servers={"*": MODEL}) as started:
        serve_sentiment(started, instances=4)
        yield started


def sent(
    aws: LocalAws, prompts: Prompts, first_number: int, api: str = INVOKE, processes: int = 1
) -> StepResult:
    """All of a step's requests, of which each counts."""
    target = Target(
        "sentiment", "us-east-1", streaming=True, api=api, tokens=TokenLimits(), timeout_seconds=20
    )
    step = Step("s", SECONDS, ConstantArrivals(RATE), first_number=first_number)
    with GeneratorProcess(
        target, Payloads.of_prompts(prompts), processes, environment=aws.environment()
    ) as generator:
        return generator.run(step)


def found_again(prompts: Prompts, first_number: int) -> int:
    """Tokens that were sent before within the step: all but the last answer and the question."""
    return sum(
        turn * QUESTION + (turn - 1) * ANSWER
        for number in range(first_number + AT_ONCE, first_number + RATE * SECONDS)
        if (turn := prompts.turn(number)[1])
    )


@pytest.mark.parametrize(("number", "api", "processes"), [(0, INVOKE, 2), (1, OPENAI, 1)])
def test_in_a_session_all_that_was_sent_before_is_found_again(
    aws: LocalAws, number: int, api: str, processes: int
) -> None:
    prompts = Prompts.of(LENGTHS, sessions=True)
    first_number = number * 1_000_000
    result = sent(aws, prompts, first_number, api, processes)
    assert (result.errors, result.completed) == ({}, RATE * SECONDS)
    # Questions and answers are whole blocks. A machine that stands still for a second lets turns
    # overlap, and the later one finds less.
    again = found_again(prompts, first_number)
    assert 0.9 * again <= result.tokens.cached_tokens <= again
    assert result.between_turns == pytest.approx(AT_ONCE / RATE)


SENT = ("--tokens", LENGTHS, "--tps", "20", "--duration", "4s", "--alone", "0s", "--sessions")


def test_the_command_says_how_far_apart_turns_were(load_test: LoadTest, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    content, said = load_test(*SENT, "--prefix-aware-id", "--html", str(page))
    (step,) = content["steps"]
    assert step["errors"] == {}
    assert step["conversations"] == AT_ONCE
    assert math.isclose(
        step["between_turns_ms"],
        1000 * AT_ONCE * (step["ended_at"] - step["started_at"]) / step["sent"],
        rel_tol=1e-6,
    )
    told = f"{TURNS} turns of {AT_ONCE} conversations at once"
    assert told in content["payload"]
    assert told in page.read_text()
    assert f"20 TPS: {AT_ONCE} conversations at once, " in said
