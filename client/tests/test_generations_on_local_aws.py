"""The clients against the local AWS and its language model's server: what SageMaker puts between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import openai
import pytest

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import LanguageModelServer
from low_latency_client.bearer_tokens import BearerTokens, openai_base_url
from low_latency_client.generation_requests import prefix_aware_id
from low_latency_client.generations import GenerationFailedError

from .callers import Caller
from .local_endpoints import create_endpoint, requests_by_instance

KINDS = ("threads", "asyncio")
FAST: dict[str, Any] = {"gap_seconds": 0.002, "seconds_per_prompt_token": 1e-6, "output_tokens": 6}
MESSAGES: Any = [{"role": "user", "content": "what does the river do"}]


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process(
        model_servers={"model": LanguageModelServer(**FAST)}, runtime=RuntimeOptions(seed=1)
    ) as made:
        yield made


def session_of(aws: LocalAws) -> boto3.Session:
    return boto3.Session(
        aws.credentials.access_key, aws.credentials.secret_key, region_name="us-east-1"
    )


def endpoint_of(aws: LocalAws, variant: dict[str, Any] | None = None, **server: Any) -> str:
    aws.set_model_servers({"model": LanguageModelServer(**{**FAST, **server})})
    return create_endpoint(aws, **(variant or {}))


def options_of(aws: LocalAws) -> dict[str, Any]:
    return {"url": aws.runtime_url(), "session": session_of(aws)}


@pytest.fixture
def caller(aws: LocalAws, kind: str) -> Iterator[Caller]:
    with Caller(kind, **options_of(aws)) as made:
        yield made


def ask(caller: Caller, name: str, messages: Any = MESSAGES, **more: Any) -> tuple[Any, list[Any]]:
    """A generation, and its parts."""
    made = caller.call("stream", EndpointName=name, Body={"messages": messages}, **more)
    return made, list(caller.each(made))


def test_tokens_come_through(aws: LocalAws, caller: Caller) -> None:
    generation, parts = ask(caller, endpoint_of(aws))
    assert len(parts) == 6
    assert all(part.text for part in parts)
    assert generation.usage is not None
    assert (generation.usage["prompt_tokens"], generation.tokens) == (5, 6)
    assert generation.finish_reason == "stop"
    assert generation.response["InvokedProductionVariant"] == "primary"


def test_openai_is_let_in_with_our_tokens(aws: LocalAws) -> None:
    """The local AWS checks the token's signature, Region and time."""
    name = endpoint_of(aws)

    def texts(tokens: BearerTokens) -> list[str]:
        with openai.OpenAI(
            base_url=openai_base_url(name, url=aws.runtime_url()), api_key=tokens, max_retries=0
        ) as client:
            stream = client.chat.completions.create(model="chat", messages=MESSAGES, stream=True)
            found = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        return [one for one in found if one]

    assert len(texts(BearerTokens(session_of(aws)))) == 6
    stranger = boto3.Session("AKIAUNKNOWN", "secret", region_name="us-east-1")
    with pytest.raises(openai.PermissionDeniedError):
        texts(BearerTokens(stranger))


def test_a_failure_in_the_middle(aws: LocalAws, caller: Caller) -> None:
    with pytest.raises(GenerationFailedError) as raised:
        ask(caller, endpoint_of(aws, failure_share=1.0, mid_stream_share=1.0))
    assert raised.value.tokens == 3  # half of six


def test_a_conversation_stays_on_its_instance_and_many_spread(
    aws: LocalAws, caller: Caller
) -> None:
    """All begin with the same 1024 bytes; 40 identifiers on 4 instances leave none without."""
    routing = {
        "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 100},
    }
    variant = {"InitialInstanceCount": 4, "RoutingConfig": routing}
    system = {"role": "system", "content": "be brief " * 200}

    def asked(number: int, turns: int) -> list[dict[str, str]]:
        question = {"role": "user", "content": f"question {number}"}
        return [system, question, *([{"role": "assistant", "content": "yes"}, question] * turns)]

    one = endpoint_of(aws, variant)
    for turn in range(8):
        ask(caller, one, asked(0, turn), conversation="Ada's")
    assert requests_by_instance(aws, one) == [8]
    many = endpoint_of(aws, variant)
    for number in range(40):
        messages = asked(number, 0)
        ask(caller, many, messages, PrefixAwareId=prefix_aware_id(messages))
    assert len(requests_by_instance(aws, many)) == 4
    alone = endpoint_of(aws, variant)
    for number in range(8):
        messages = asked(number, 0)
        ask(caller, alone, messages, PrefixAwareId=prefix_aware_id(messages, leading=1))
    assert requests_by_instance(aws, alone) == [8]
