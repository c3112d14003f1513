"""Answers, refusals and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from low_latency_endpoint.account.calls import Account, Unknown
from low_latency_endpoint.account.endpoints import existing_endpoint, read_endpoint
from low_latency_endpoint.account.scaling import scalable_targets
from low_latency_endpoint.account.sessions import AwsUnavailable, Unreadable, aws_errors_in_words
from tests.fake_aws import FakeAws, Refused
from tests.refusals import refused

DESCRIBE = "sagemaker.DescribeEndpoint"
DENIED = Refused("AccessDenied")


def reading(*answers: Any, once: bool = True, **others: Any) -> Account:
    """An account that describes its endpoint in these words, one after the other."""
    aws = FakeAws({DESCRIBE: list(answers)} | {f"sagemaker.{k}": v for k, v in others.items()})
    return Account(aws, "eu-west-1", once=once)


def described(status: str = "InService") -> dict[str, Any]:
    return {"EndpointName": "e", "EndpointStatus": status, "EndpointConfigName": "c"}


GONE = Refused("ValidationException", 'Could not find endpoint "e".', 400)


@pytest.mark.parametrize(
    ("once", "statuses"), [(True, ["Updating", "Updating"]), (False, ["Updating", "InService"])]
)
def test_an_answer_is_kept_or_asked_for_again(once: bool, statuses: list[str]) -> None:
    account = reading(described("Updating"), described(), once=once)
    assert [
        account.read("sagemaker", "describe_endpoint", EndpointName="e")["EndpointStatus"]
        for _ in range(2)
    ] == statuses


def test_a_refusal_is_told_from_what_does_not_exist() -> None:
    assert read_endpoint(reading(GONE), "e") is None
    with pytest.raises(Unreadable, match="sagemaker:DescribeEndpoint is denied") as caught:
        read_endpoint(reading(DENIED), "e")
    assert caught.value.why == "sagemaker:DescribeEndpoint: not permitted"
    assert "Allow sagemaker:DescribeEndpoint" in caught.value.fix


def test_a_refusal_that_is_kept_is_the_same_each_time() -> None:
    account = reading(Refused("Throttling", "slow down"))  # a second answer is not there
    said = "sagemaker:DescribeEndpoint was answered with Throttling: slow down"
    for _ in range(2):
        with pytest.raises(Unreadable) as caught:
            read_endpoint(account, "e")
        assert (caught.value.evidence, type(caught.value.__cause__)) == (said, ClientError)


def test_what_cannot_be_read_is_unknown_once() -> None:
    account = reading(DENIED, DENIED, once=False)
    assert [account.known("endpoint", read_endpoint, "e") for _ in range(2)] == [None, None]
    assert account.unknown == [Unknown("endpoint", "sagemaker:DescribeEndpoint: not permitted")]


def test_credentials_that_are_none_end_everything() -> None:
    account = reading(Refused("ExpiredTokenException"))
    with refused("LLA102"):
        account.known("endpoint", read_endpoint, "e")
    assert account.unknown == []


def test_a_missing_endpoint_is_an_error_that_names_the_region() -> None:
    with refused("LLA101", got="e in eu-west-1"):
        existing_endpoint(reading(GONE, ListEndpoints=DENIED), "e")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (DENIED, "sagemaker:DescribeEndpointConfig: not permitted"),
        (GONE, "c, the configuration that serves, is deleted"),
    ],
)
def test_an_endpoint_is_read_without_its_configuration(answer: Refused, why: str) -> None:
    serving = {"ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": 2}]}
    endpoint = described() | serving
    account = reading(endpoint, endpoint, once=False, DescribeEndpointConfig=answer)
    variant = existing_endpoint(account, "e").variants["v"]
    assert (variant.current_instances, variant.instance_types, variant.routing) == (2, (), "")
    assert account.unknown == [Unknown("endpoint configuration", why)]
    with pytest.raises(Unreadable):
        read_endpoint(account, "e")


def test_commands_that_end_tell_the_refusal_as_aws_did() -> None:
    error = EndpointConnectionError(endpoint_url="https://api.sagemaker.eu-west-1.amazonaws.com")
    with pytest.raises(AwsUnavailable, match="network, or region") as caught, aws_errors_in_words():
        read_endpoint(reading(error), "e")
    assert not isinstance(caught.value, Unreadable)


def test_without_variants_no_other_endpoint_s_scaling_is_read() -> None:
    assert scalable_targets(reading(), "e", []) == {}  # a call would fail
