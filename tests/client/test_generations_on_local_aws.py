"""The clients against the local AWS and its language model's server: what SageMaker puts between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import openai
import pytest
from hosting_site import Site

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import LanguageModelServer
from low_latency_endpoint.client.bearer_tokens import BearerTokens, openai_base_url
from low_latency_endpoint.client.generation_requests import prefix_aware_id
from low_latency_endpoint.client.generations import GenerationFailedError
from low_latency_endpoint.client.runtime_client import RuntimeClient

PATIENCE = timedelta(seconds=30)
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
    return Site(aws).endpoint(variant or {}, MetricsConfig={"EnableEnhancedMetrics": True})


def client_of(aws: LocalAws, **more: Any) -> RuntimeClient:
    return RuntimeClient(
        url=aws.runtime_url(),
        session=session_of(aws),
        latency_target=timedelta(seconds=1),
        read_timeout=PATIENCE,
        preconnect=0,
        **more,
    )


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"EndpointName": name, "Body": {"messages": MESSAGES}, **more}


def test_tokens_come_through(aws: LocalAws) -> None:
    name = endpoint_of(aws)
    with client_of(aws) as client, client.stream(**call(name)) as generation:
        parts = list(generation)
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


def test_a_failure_in_the_middle(aws: LocalAws) -> None:
    name = endpoint_of(aws, failure_share=1.0, mid_stream_share=1.0)
    with (
        client_of(aws) as client,
        pytest.raises(GenerationFailedError) as raised,
        client.stream(**call(name)) as generation,
    ):
        list(generation)
    assert raised.value.tokens == 3  # half of six


def test_a_conversation_stays_on_its_instance_and_many_spread(aws: LocalAws) -> None:
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

    here = Site(aws)
    with client_of(aws) as client:

        def ask(name: str, messages: list[dict[str, str]], **more: Any) -> None:
            with client.stream(EndpointName=name, Body={"messages": messages}, **more) as answer:
                list(answer)

        one = endpoint_of(aws, variant)
        for turn in range(8):
            ask(one, asked(0, turn), conversation="Ada's")
        assert here.by_instance(one) == [8]
        many = endpoint_of(aws, variant)
        for number in range(40):
            messages = asked(number, 0)
            ask(many, messages, PrefixAwareId=prefix_aware_id(messages))
        assert len(here.by_instance(many)) == 4
        alone = endpoint_of(aws, variant)
        for number in range(8):
            messages = asked(number, 0)
            ask(alone, messages, PrefixAwareId=prefix_aware_id(messages, leading=1))
        assert here.by_instance(alone) == [8]
