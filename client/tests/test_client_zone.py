"""Whose metadata says in which zone the process runs; all of it on loopback."""

from __future__ import annotations

import json
import socket
import time
from datetime import timedelta

import pytest

from low_latency_client.zone import ClientZone, find_client_zone

from .zone_metadata import LAMBDA, Metadata

PLACEMENT = "/latest/meta-data/placement/availability-zone"
NO_EC2 = {"AWS_EC2_METADATA_DISABLED": "true"}
LONG = timedelta(seconds=20)


EC2 = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
ECS = "ECS_CONTAINER_METADATA_URI_V4"


def test_ec2_says_id_and_name(metadata: Metadata) -> None:
    metadata.answers = {
        "/latest/api/token": "ec2-token",
        PLACEMENT: "us-east-1a",
        f"{PLACEMENT}-id": "use1-az4",
    }
    zone = find_client_zone(LONG, {EC2: f"http://{metadata.address}/"})
    assert zone == ClientZone(zone_id="use1-az4", name="us-east-1a", source="Amazon EC2")
    assert metadata.asked[0] == "PUT /latest/api/token"


def test_ecs_says_the_name(metadata: Metadata) -> None:
    metadata.answers = {"/v4/abc/task": json.dumps({"AvailabilityZone": "us-west-2b"})}
    zone = find_client_zone(LONG, {**NO_EC2, ECS: f"http://{metadata.address}/v4/abc"})
    assert zone == ClientZone(name="us-west-2b", source="Amazon ECS")


def test_lambda_says_the_id(metadata: Metadata) -> None:
    metadata.answers = {LAMBDA: json.dumps({"AvailabilityZoneID": "apne1-az2"})}
    told = {
        "AWS_LAMBDA_METADATA_API": metadata.address,
        "AWS_LAMBDA_METADATA_TOKEN": "lambda-token",
    }
    zone = find_client_zone(LONG, {**NO_EC2, **told})
    assert zone == ClientZone(zone_id="apne1-az2", source="AWS Lambda")


def test_the_environment_variable_comes_first_and_asks_nobody(metadata: Metadata) -> None:
    zone = find_client_zone(
        LONG, {"LOW_LATENCY_CLIENT_ZONE": "eu-west-1c", "AWS_LAMBDA_METADATA_API": metadata.address}
    )
    assert zone == ClientZone(name="eu-west-1c", source="LOW_LATENCY_CLIENT_ZONE")
    assert metadata.asked == []


@pytest.mark.parametrize(
    "answer",
    ["", "no json", "[]", "null", '{"AvailabilityZone": 7}', '{"AvailabilityZone": "somewhere"}'],
)
def test_an_answer_that_says_nothing(metadata: Metadata, answer: str) -> None:
    metadata.answers = {"/v4/abc/task": answer}
    told = {**NO_EC2, ECS: f"http://{metadata.address}/v4/abc"}
    assert find_client_zone(LONG, told) is None


def test_the_next_is_asked_when_one_fails(metadata: Metadata) -> None:
    metadata.answers = {"/latest/api/token": "ec2-token", PLACEMENT: "us-east-1a"}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening: refuses
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}/v4/x"
        zone = find_client_zone(LONG, {ECS: refusing, EC2: f"http://{metadata.address}"})
    assert zone == ClientZone(name="us-east-1a", source="Amazon EC2")


def test_nobody_to_ask() -> None:
    assert find_client_zone(LONG, NO_EC2) is None


def test_a_service_that_never_answers_is_left() -> None:
    """The call returns though the silent service would hold it for far longer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        told = {EC2: f"http://127.0.0.1:{silent.getsockname()[1]}"}
        zone = find_client_zone(timedelta(milliseconds=50), told)
        assert zone is None
        assert time.monotonic() - started < 10  # of an endless wait, not of the machine's speed


@pytest.mark.parametrize("text", ["", "us-east-1", "use1", "az4", "us-east-1a/../x", "USE1-AZ4"])
def test_what_is_no_zone(text: str) -> None:
    assert ClientZone.of(text) is None
