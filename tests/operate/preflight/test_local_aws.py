"""The local AWS answers every check of the settings that ship; what none can read is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import LocalAws, RuntimeOptions
from low_latency_endpoint.operate.checking.checks import Report, Status
from low_latency_endpoint.operate.preflight import run_preflight
from low_latency_endpoint.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]
REGION = "us-east-1"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings(ROOT / "endpoint.yaml")


@pytest.fixture
def aws(settings: Settings) -> Iterator[LocalAws]:
    """An account with all that the settings name, which may have 40 instances of a type."""
    options = RuntimeOptions(endpoint_instances=40)
    with LocalAws.in_process(region=REGION, runtime=options) as aws:
        aws.reset()
        list(stand_ins_for_images(aws, settings))
        with uploaded(aws, model_uris(settings), settings.alarm_topic_arn):
            yield aws


def outcomes(report: Report, status: Status) -> dict[str, str]:
    return {row.id: row.evidence for row in report.results if row.status is status}


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def test_no_check_is_unknown(aws: LocalAws, settings: Settings) -> None:
    report = run_preflight(settings, aws.client, REGION)
    assert outcomes(report, Status.UNKNOWN) == {}
    assert outcomes(report, Status.WARN) == {}
    assert "LLP301" in outcomes(report, Status.PASS)
    # 24 instances at most, and as many new ones beside them in an update.
    assert outcomes(report, Status.FAIL)["LLP302"].startswith("quota 40 (applied), 24 at most")


def test_a_deploying_role_that_may_too_little_is_found(aws: LocalAws, settings: Settings) -> None:
    """By the judge of real requests: what it would deny, the simulation denies."""
    iam, trusted = aws.client("iam"), {"Service": "cloudformation.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="deployer", AssumeRolePolicyDocument=document(trust))["Role"]

    def denied(*statements: dict[str, str]) -> dict[str, str]:
        policy = document(*statements)
        iam.put_role_policy(RoleName="deployer", PolicyName="p", PolicyDocument=policy)
        report = run_preflight(settings, aws.client, REGION, deploying_role=role["Arn"])
        return {row.subject: row.evidence for row in report.results if row.id == "LLP502"}

    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    no_endpoints = {"Effect": "Deny", "Action": "sagemaker:CreateEndpoint", "Resource": "*"}
    assert "has the rights" in denied(everything)[""]
    assert "may not sagemaker:CreateEndpoint" in denied(everything, no_endpoints)["Endpoints"]
