"""The OpenAI-compatible path: who is let in, what comes back, what is counted, where it goes."""

from __future__ import annotations

import base64
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import Credentials
from component_site import Components, component_endpoint
from openai_requests import chat, events, openai, own_token, token
from roles_under_test import allow, document
from signed_requests import signed

from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer
from local_sagemaker.signatures import BadToken, check_token, region_of_token

FAST = LanguageModelServer(gap_seconds=0.002, seconds_per_prompt_token=1e-6, output_tokens=6)
CHAT = {"messages": [{"role": "user", "content": "what does the river do"}]}


# ---------------------------------------------------------------------------------------- tokens


def secret_of(key: str) -> str | None:
    return {"AKIAMINE": "secret/+=key"}.get(key)


@pytest.mark.parametrize("session", ["", "a/session+token=="])
def test_a_token_of_botocores_signer_is_good_until_it_expires(session: str) -> None:
    header = "Bearer " + token("AKIAMINE", "secret/+=key", expires=900, session=session)
    now = time.time()
    check_token(header, secret_of)
    check_token(header, secret_of, now + 890)
    with pytest.raises(BadToken, match="Bearer Token has expired"):
        check_token(header, secret_of, now + 901)
    with pytest.raises(BadToken, match="Authentication failed"):
        check_token(header, secret_of, now - 400)  # it is from the future
    assert region_of_token(header) == "us-east-1"


def changed(good: str, before: str, after: str) -> str:
    url = base64.b64decode(good.removeprefix("sagemaker-api-key-")).decode()
    assert before in url
    text = url.replace(before, after)
    return "sagemaker-api-key-" + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("X-Amz-Expires=600", "X-Amz-Expires=43200"),
        ("CallWithBearerToken", "ListEndpoints"),
        ("us-east-1", "eu-west-1"),
        ("%2Fsagemaker%2F", "%2Fbedrock%2F"),
        ("sagemaker.amazonaws.com", "bedrock.amazonaws.com"),
        ("&Version=1", "&Version=2"),
        ("&Version=1", ""),
        ("AKIAMINE", "AKIAOTHER"),
        ("SignedHeaders=host", "SignedHeaders="),
        ("X-Amz-Date=", "X-Amz-Date=2"),
        ("&X-Amz-Signature=", "&X-Amz-Signature=0"),
    ],
)
def test_a_token_that_was_tampered_with_opens_nothing(before: str, after: str) -> None:
    bad = changed(token("AKIAMINE", "secret/+=key"), before, after)
    with pytest.raises(BadToken, match="Authentication failed") as raised:
        check_token(f"Bearer {bad}", secret_of)
    assert "AKIA" not in str(raised.value)


def test_a_token_longer_than_twelve_hours_opens_nothing() -> None:
    check_token("Bearer " + token("AKIAMINE", "secret/+=key", expires=43_200), secret_of)
    with pytest.raises(BadToken):
        check_token("Bearer " + token("AKIAMINE", "secret/+=key", expires=43_201), secret_of)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer x",
        "Bearer sagemaker-api-key-",
        "Bearer sagemaker-api-key-%%%",
        "Bearer sagemaker-api-key-w6k=",
        "Basic sagemaker-api-key-YQ==",
    ],
)
def test_what_is_no_token_opens_nothing(header: str) -> None:
    with pytest.raises(BadToken):
        check_token(header, secret_of)
    assert region_of_token(header) is None


def test_the_pages_token_is_good() -> None:
    page = (Path(__file__).parents[2] / "docs" / "language-models.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    there: dict[str, Any] = {}
    exec(block, there)
    made = there["bearer_token"](Credentials("AKIAMINE", "secret/+=key"), "eu-central-1")
    check_token(f"Bearer {made}", secret_of)
    assert region_of_token(f"Bearer {made}") == "eu-central-1"


# ------------------------------------------------------------------------------------- the path


@pytest.fixture
def name(site: Any) -> tuple[Any, str]:
    """An endpoint whose model streams tokens, and the site that it is on."""
    here = site({"model": FAST})
    return here, here.endpoint()


@pytest.mark.parametrize("at", ["the runtime's URL", "the main URL, which passes it on"])
def test_a_stream_comes_through_as_the_container_sends_it(name: Any, at: str) -> None:
    here, endpoint = name
    url = here.aws.url if "main" in at else here.aws.runtime_url()
    asked = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    answer = chat(url, openai(endpoint), own_token(here.aws), asked)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-amzn-invoked-production-variant"] == "primary"
    *chunks, usage, done = events(answer)
    assert (len(chunks), done) == (1 + 6 + 1, "[DONE]")
    assert usage["usage"]["completion_tokens"] == 6


def test_a_whole_answer_counts_as_an_invocation(name: Any) -> None:
    here, endpoint = name
    answer = chat(here.aws.runtime_url(), openai(endpoint), own_token(here.aws), CHAT)
    assert json.loads(answer.body)["usage"]["total_tokens"] == 5 + 6
    assert here.statistics(endpoint, "Invocations", "Sum") == {"Sum": 1}
    assert here.statistics(endpoint, "ModelLatency", "SampleCount") == {"SampleCount": 1}


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"expires": 1}, 403, "Bearer Token has expired"),
        # Every Region is served at one URL here: it has no such endpoint.
        ({"region": "eu-west-1"}, 400, "not found"),
    ],
)
def test_expired_and_other_regions_tokens(name: Any, more: Any, status: int, words: str) -> None:
    here, endpoint = name
    bearer = own_token(here.aws, **more)
    time.sleep(2.1 if "expires" in more else 0)
    answer = chat(here.aws.runtime_url(), openai(endpoint), bearer, CHAT)
    assert answer.status == status
    assert words in json.loads(answer.body)["Message"]


def test_no_token_is_logged(name: Any, caplog: pytest.LogCaptureFixture) -> None:
    here, endpoint = name
    caplog.set_level("DEBUG")
    bearer, key = own_token(here.aws), here.aws.credentials.access_key
    for url in (here.aws.url, here.aws.runtime_url()):
        assert chat(url, openai(endpoint), bearer, CHAT).status == 200
        assert chat(url, openai(endpoint), bearer[:-8], CHAT).status == 403
    # botocore, which signs in this process too, logs what it signs; a server has no part in that.
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("local_sagemaker")]
    logged = "\n".join(ours)
    assert openai(endpoint) in logged
    for secret in (bearer[20:60], key, here.aws.credentials.secret_key):
        assert secret not in logged


def test_nobody_else_gets_in(name: Any) -> None:
    here, endpoint = name
    url, key = here.aws.runtime_url(), here.aws.credentials.access_key
    path = openai(endpoint)
    for bearer in (None, token(key, "not the secret"), token("AKIAUNKNOWN", "secret")):
        assert chat(url, path, bearer, CHAT).status == 403
    # AWS documents a token there, and a token nowhere else.
    assert chat(url, path, None, CHAT, signed(key, "sagemaker")).status == 403
    other = f"/endpoints/{endpoint}/invocations"
    assert chat(url, other, own_token(here.aws), CHAT).status == 403
    assert here.statistics(endpoint, "Invocations", "Sum").get("Sum", 0) == 0


def test_a_users_own_key_opens_it(name: Any) -> None:
    here, endpoint = name
    iam = here.aws.client("iam")
    iam.create_user(UserName="caller")
    key = iam.create_access_key(UserName="caller")["AccessKey"]
    bearer = token(key["AccessKeyId"], key["SecretAccessKey"])
    try:
        both = ["sagemaker:CallWithBearerToken", "sagemaker:InvokeEndpoint"]
        for actions in (["sagemaker:ListEndpoints"], both[:1], both[1:], both):
            policy = {
                "PolicyName": "rights",
                "PolicyDocument": json.dumps(document(allow(actions))),
            }
            iam.put_user_policy(UserName="caller", **policy)
            answer = chat(here.aws.runtime_url(), openai(endpoint), bearer, CHAT)
            assert answer.status == (200 if actions == both else 403)
            assert (b"no identity-based policy allows" in answer.body) is (actions != both)
    finally:
        iam.delete_user_policy(UserName="caller", PolicyName="rights")
        iam.delete_access_key(UserName="caller", AccessKeyId=key["AccessKeyId"])
        iam.delete_user(UserName="caller")
    assert chat(here.aws.runtime_url(), openai(endpoint), bearer, CHAT).status == 403


def test_a_container_without_the_path_is_a_model_error(served: Any) -> None:
    here, endpoint = served(model=SimulatedModelServer())
    answer = chat(here.aws.runtime_url(), openai(endpoint), own_token(here.aws), CHAT)
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (424, "ModelError")
    assert json.loads(answer.body)["OriginalStatusCode"] == 404


def test_other_openai_paths_are_unknown(name: Any) -> None:
    here, endpoint = name
    path = f"/endpoints/{endpoint}/openai/v1/models"
    answer = chat(here.aws.runtime_url(), path, own_token(here.aws), CHAT)
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (404, "UnknownOperationException")


def test_prefixes_and_prefix_ids_choose_the_instance(site: Any) -> None:
    here = site({"model": FAST})
    routing = {
        "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 100},
    }
    metrics = {"MetricsConfig": {"EnableEnhancedMetrics": True}}
    variant = {"InitialInstanceCount": 4, "RoutingConfig": routing}
    one = here.endpoint(variant, **metrics)
    for number in range(12):  # the first 1024 bytes are the same
        content = f"{'the same beginning ' * 80}{number}"
        body = {"messages": [{"role": "user", "content": content}]}
        chat(here.aws.runtime_url(), openai(one), own_token(here.aws), body)
    assert here.by_instance(one) == [12]
    two = here.endpoint(variant, **metrics)
    for number in range(40):
        given = {"X-Amzn-SageMaker-Prefix-Aware-Id": f"conversation {number}"}
        chat(here.aws.runtime_url(), openai(two), own_token(here.aws), CHAT, given)
    assert len(here.by_instance(two)) == 4  # 40 ids on 4 instances: one without any is 4e-5
    assert sum(here.by_instance(two)) == 40


def test_an_inference_component_has_a_path_of_its_own(site: Any) -> None:
    here = site({"model": FAST})
    components = Components(here, component_endpoint(here))
    component = components.create()
    try:
        path = (
            f"/endpoints/{components.endpoint}/inference-components/{{}}/openai/v1/chat/completions"
        )
        url, bearer = here.aws.runtime_url(), own_token(here.aws)
        assert chat(url, path.format(component), bearer, CHAT).status == 200
        assert components.sum(component, "Invocations") == 1
        assert chat(url, path.format("nobody"), bearer, CHAT).status == 400
        told = json.loads(chat(url, openai(components.endpoint), bearer, CHAT).body)
        assert told["Message"].startswith("Inference Component Name header is required")
    finally:
        components.delete(component)


def test_a_session_stays_with_its_instance(site: Any) -> None:
    here = site({"model": replace(FAST, stateful_sessions=True)})
    metrics = {"MetricsConfig": {"EnableEnhancedMetrics": True}}
    endpoint = here.endpoint({"InitialInstanceCount": 4}, **metrics)
    url, bearer = here.aws.runtime_url(), own_token(here.aws)
    header = "X-Amzn-SageMaker-Session-Id"
    # The path leads past what opens sessions in AWS's containers, which is /invocations.
    past = chat(url, openai(endpoint), bearer, CHAT, {header: "NEW_SESSION"})
    assert (past.status, past.headers.get("x-amzn-sagemaker-new-session-id")) == (200, None)
    before = sum(here.by_instance(endpoint))
    opened = here.invoke(endpoint, b'{"requestType": "NEW_SESSION"}', SessionId="NEW_SESSION")
    session = opened["NewSessionId"].partition(";")[0]
    for _ in range(11):
        chat(url, openai(endpoint), bearer, CHAT, {header: session})
    assert max(here.by_instance(endpoint)) in (12, 12 + before)
    assert sum(here.by_instance(endpoint)) == 12 + before
    unknown = chat(url, openai(endpoint), bearer, CHAT, {header: "nobody's"})
    assert (unknown.status, unknown.headers["x-amzn-errortype"]) == (400, "ValidationError")
