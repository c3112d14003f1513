"""What a warm-up and its payloads refuse, and of what they warn."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from low_latency_endpoint import RuntimePrivateLink, WarmUpPayload
from tests.refusals import refused
from tests.synth.warm_up.in_template import PAYLOAD


@pytest.mark.parametrize("number", [0, 101])
def test_so_many_payloads_are_refused(make, number):
    with refused("LLE544"):
        make(payload=[PAYLOAD] * number)


def test_a_warm_up_by_itself_sends_something(make):
    with refused("LLE541"):
        make(requests=0)


def test_refuses_a_network_of_another_vpc(stack, parts, make):
    other = parts.network(stack, "Other")
    link = RuntimePrivateLink(stack, "OtherLink", network=other)
    with refused("LLE216"):
        make(private_link=link)


@pytest.mark.parametrize(
    ("make_payload", "code"),
    [
        (lambda: WarmUpPayload(data={"inputs": object()}), "LLE557"),
        (lambda: WarmUpPayload(data={"inputs": float("nan")}), "LLE557"),
        (lambda: WarmUpPayload(data={"inputs": cdk.Aws.REGION}).body, "LLE547"),
        (lambda: WarmUpPayload(text=cdk.Aws.REGION).body, "LLE547"),
        (lambda: WarmUpPayload(text="x", content_type="text/csv\r\nX-Evil: 1"), "LLE557"),
        (lambda: WarmUpPayload(text="x", target_model=cdk.Aws.REGION).headers, "LLE547"),
        (lambda: WarmUpPayload(file="no-such-file.json", content_type="a/b").body, "LLE546"),
        (lambda: WarmUpPayload(file=".", content_type="a/b").body, "LLE546"),
        (lambda: WarmUpPayload(file="request.json"), "LLE928"),
        (lambda: WarmUpPayload(data={}, text="{}"), "LLE927"),
        (lambda: WarmUpPayload(text="x" * (25 * 1024 * 1024 + 1)), "LLE545"),
    ],
)
def test_payloads_refused(make_payload, code):
    with refused(code):
        make_payload()


def test_a_payload_from_a_file_is_its_bytes(tmp_path):
    file = tmp_path / "image.npy"
    file.write_bytes(bytes(range(256)))
    payload = WarmUpPayload(file=file, content_type="application/x-npy")
    assert payload.body == bytes(range(256))


def test_json_keeps_its_letters():
    assert WarmUpPayload(data={"inputs": "Grüße"}).body == '{"inputs":"Grüße"}'.encode()


def test_a_payload_above_the_api_models_limit_is_a_warning(stack, make):
    make(payload=WarmUpPayload(text="x" * 6_291_457))
    Annotations.from_stack(stack).has_warning(
        "/Serving/WarmUp", Match.string_like_regexp("larger than 6,291,456 bytes")
    )
