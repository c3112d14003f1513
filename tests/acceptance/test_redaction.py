"""Nothing of an account's may stay in evidence; what claims rest on must."""

from __future__ import annotations

import json

import pytest

from acceptance.evidence import redact

ACCOUNT, SUFFIX = "987654321098", "llee-accept-0a1b2c3d"


@pytest.mark.parametrize(
    "secret",
    [
        ACCOUNT,
        "9876-5432-1098",
        "vpc-0123456789abcdef0",
        "vpc-1a2b3c4d",
        "eni-0123456789abcdef0",
        "subnet-0123456789abcdef0",
        "sg-0123456789abcdef0",
        "rtb-0123456789abcdef0",
        "i-0123456789abcdef0",
        "fl-0123456789abcdef0",
        "vpce-0123456789abcdef0",
        "vpce-0123456789abcdef0-a1b2c3d4",
        "eipalloc-0123456789abcdef0",
        "rtbassoc-0123456789abcdef0",
        "eni-attach-0123456789abcdef0",
        "vpce-svc-0123456789abcdef0",
        "10.0.3.17",
        "203.0.113.9",
        "2001:db8:0:1::7",
        "fe80::1",
        "fd00:ec2::254",
        "alice@example.com",
        "bob.smith+aws@mail.example.co.uk",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AROAIOSFODNN7EXAMPLE",
        "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
        "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0",
        "lleeaccept0a1b2c3dEndpointAlarmsComposite",
        SUFFIX,
        f"{SUFFIX}-EndpointModelRole1B2C-XYZABC123456",
        "ip-10-0-3-17.ec2.internal",
        "my-laptop.local",
        "my-bucket.s3.us-east-2.amazonaws.com",
        "build.corp.example.com",
        "us-east-2a",
        "us-gov-west-1b",
        "ap-southeast-2c",
    ],
)
@pytest.mark.parametrize("around", ["{}", "it is {}.", '"{}"', "({}, and more)", "a={},b", "x/{}"])
def test_it_is_gone_wherever_it_stands(secret: str, around: str) -> None:
    text = around.format(secret)
    assert secret not in redact(text)
    assert secret not in json.dumps(redact({"a": [{"b": text}], text: 1}))


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        (f"arn:aws:iam::{ACCOUNT}:role/Deploy-Role", [ACCOUNT, "Deploy-Role"]),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Admin/alice", [ACCOUNT, "Admin", "alice"]),
        (f"arn:aws-us-gov:iam::{ACCOUNT}:user/team/alice", [ACCOUNT, "alice"]),
        (f"https://sqs.us-east-2.amazonaws.com/{ACCOUNT}/{SUFFIX}-Pages", [ACCOUNT, "0a1b2c3d"]),
        (f"{ACCOUNT}.dkr.ecr.us-east-2.amazonaws.com/team:1", [ACCOUNT]),
        (f"cdk-hnb659fds-assets-{ACCOUNT}-us-east-2", [ACCOUNT]),
        (
            "(Service: Ec2, Status Code: 400, Request ID: Zx9_abcDEF0123456789ghij)",
            ["Zx9_abcDEF0123456789ghij"],
        ),
        (
            "vpce-0123456789abcdef0-a1b2c3d4-us-east-2a.runtime.sagemaker.us-east-2.vpce.amazonaws.com",
            ["0123456789abcdef0", "a1b2c3d4", "us-east-2a"],
        ),
        ("callback at https://pipeline.example.org/x", ["pipeline.example.org"]),
        ("[2001:db8:0:1::7]:443", ["2001:db8"]),
    ],
)
def test_what_is_made_of_secrets_keeps_none(text: str, secrets: list[str]) -> None:
    told = redact(text)
    assert [secret for secret in secrets if secret in told] == []


@pytest.mark.parametrize(
    "text",
    [
        "runtime.sagemaker.us-east-2.amazonaws.com",
        "AWS::EC2::SecurityGroup",
        "use2-az1",
        "2026-11-22T08:46:00Z",
        "at 08:46:12",
        "UPDATE_ROLLBACK_COMPLETE",
        "us-east-2",
        "ml.m5.large",
        "/aws/sagemaker/Endpoints",
        "sagemaker.amazonaws.com",
        "2.6.0-cpu-py312-ubuntu22.04-sagemaker",
        "PR(160000:)",
        "AccessDeniedException",
        "TLSv1.3",
        "16adb23",
        "1.44.5",
        "0.1.0",
        "EU::x",
    ],
)
def test_what_is_everyones_stays(text: str) -> None:
    assert redact(text) == text
    assert redact(f"({text})") == f"({text})"


def test_the_names_of_a_certificate_stay_but_for_the_endpoint_s_own() -> None:
    names = [
        "runtime.sagemaker.us-east-2.amazonaws.com",
        "*.vpce-0123456789abcdef0-a1b2c3d4.runtime.sagemaker.us-east-2.vpce.amazonaws.com",
    ]
    assert redact(names) == [names[0], "*.<vpce-1>.runtime.sagemaker.us-east-2.vpce.amazonaws.com"]


def test_the_same_thing_has_the_same_words_and_another_has_others() -> None:
    told = redact(
        {
            "before": "eni-0123456789abcdef0",
            "after": ["eni-0123456789abcdef1", "eni-0123456789abcdef0"],
        }
    )
    assert told == {"before": "<eni-1>", "after": ["<eni-2>", "<eni-1>"]}


def test_known_names_go_first_the_longest_before_its_parts() -> None:
    names = {"shop": "<Endpoint-1>", "shop-v2": "<Endpoint-2>"}
    arn = f"arn:aws:sagemaker:us-east-2:{ACCOUNT}:endpoint/SHOP-V2 and shop, not workshop"
    assert redact(arn, names) == (
        "arn:aws:sagemaker:us-east-2:<account-1>:endpoint/<Endpoint-2> and <Endpoint-1>, "
        "not workshop"
    )


def test_numbers_and_nothing_stay() -> None:
    assert redact({"a": 1, "b": None, "c": True, "d": 0.5}) == {
        "a": 1,
        "b": None,
        "c": True,
        "d": 0.5,
    }
