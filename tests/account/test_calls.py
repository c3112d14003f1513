"""Answers, refusals and what is unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from low_latency_endpoint.account.calls import Account, Unknown
from low_latency_endpoint.account.endpoints import existing_endpoint, read_endpoint
from low_latency_endpoint.account.scaling import scalable_targets
from low_latency_endpoint.account.sessions import AwsUnavailable, Unreadable, aws_errors_in_words
from low_latency_endpoint.errors import ConfigurationError


class SageMaker:
    """Answers one request after the other; an exception is raised."""

    meta = SimpleNamespace(
        method_to_api_mapping={
            "describe_endpoint": "DescribeEndpoint",
            "describe_endpoint_config": "DescribeEndpointConfig",
        }
    )

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            self.asked.append(operation)
            answer = self.answers[operation].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def account(self, *, once: bool = True) -> Account:
        return Account(lambda service: self, "eu-west-1", once=once)


def refused(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeEndpoint")


def described(status: str = "InService") -> dict[str, Any]:
    return {"EndpointName": "e", "EndpointStatus": status, "EndpointConfigName": "c"}


GONE = refused("ValidationException", 'Could not find endpoint "e".')


def test_an_answer_is_kept_or_asked_for_again() -> None:
    for once, statuses in ((True, ["Updating", "Updating"]), (False, ["Updating", "InService"])):
        aws = SageMaker(describe_endpoint=[described("Updating"), described()])
        account = aws.account(once=once)
        assert [
            account.read("sagemaker", "describe_endpoint", EndpointName="e")["EndpointStatus"]
            for _ in range(2)
        ] == statuses


def test_a_refusal_is_told_from_what_does_not_exist() -> None:
    assert read_endpoint(SageMaker(describe_endpoint=[GONE]).account(), "e") is None
    with pytest.raises(Unreadable, match="sagemaker:DescribeEndpoint is denied") as caught:
        read_endpoint(SageMaker(describe_endpoint=[refused("AccessDenied")]).account(), "e")
    assert caught.value.why == "sagemaker:DescribeEndpoint: not permitted"
    assert "Allow sagemaker:DescribeEndpoint" in caught.value.fix


def test_a_refusal_that_is_kept_is_the_same_each_time() -> None:
    aws = SageMaker(describe_endpoint=[refused("Throttling", "slow down")])
    account = aws.account()
    said = []
    for _ in range(2):
        with pytest.raises(Unreadable) as caught:
            read_endpoint(account, "e")
        said.append((caught.value.evidence, type(caught.value.__cause__)))
    assert (
        said
        == [("sagemaker:DescribeEndpoint was answered with Throttling: slow down", ClientError)] * 2
    )
    assert aws.asked == ["describe_endpoint"]


def test_what_cannot_be_read_is_unknown_once() -> None:
    aws = SageMaker(describe_endpoint=[refused("AccessDenied")] * 2)
    account = aws.account(once=False)
    assert [account.known("endpoint", read_endpoint, "e") for _ in range(2)] == [None, None]
    assert account.unknown == [Unknown("endpoint", "sagemaker:DescribeEndpoint: not permitted")]


def test_credentials_that_are_none_end_everything() -> None:
    account = SageMaker(describe_endpoint=[refused("ExpiredTokenException")]).account()
    with pytest.raises(ConfigurationError) as caught:
        account.known("endpoint", read_endpoint, "e")
    assert caught.value.code == "LLA102"
    assert account.unknown == []


def test_a_missing_endpoint_is_an_error_that_names_the_region() -> None:
    with pytest.raises(ConfigurationError) as caught:
        existing_endpoint(SageMaker(describe_endpoint=[GONE]).account(), "e")
    assert (caught.value.code, caught.value.got) == ("LLA101", "e in eu-west-1")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (refused("AccessDenied"), "sagemaker:DescribeEndpointConfig: not permitted"),
        (GONE, "c, the configuration that serves, is deleted"),
    ],
)
def test_an_endpoint_is_read_without_its_configuration(answer: Exception, why: str) -> None:
    aws = SageMaker(
        describe_endpoint=[
            described() | {"ProductionVariants": [{"VariantName": "v", "CurrentInstanceCount": 2}]}
        ]
        * 2,
        describe_endpoint_config=[answer] * 2,
    )
    account = aws.account(once=False)
    variant = existing_endpoint(account, "e").variants["v"]
    assert (variant.current_instances, variant.instance_types, variant.routing) == (2, (), "")
    assert account.unknown == [Unknown("endpoint configuration", why)]
    with pytest.raises(Unreadable):
        read_endpoint(account, "e")


def test_commands_that_end_tell_the_refusal_as_aws_did() -> None:
    error = EndpointConnectionError(endpoint_url="https://api.sagemaker.eu-west-1.amazonaws.com")
    with pytest.raises(AwsUnavailable, match="network, or region") as caught, aws_errors_in_words():
        read_endpoint(SageMaker(describe_endpoint=[error]).account(), "e")
    assert not isinstance(caught.value, Unreadable)


def test_without_variants_no_other_endpoint_s_scaling_is_read() -> None:
    aws = SageMaker()
    assert scalable_targets(aws.account(), "e", []) == {}
    assert aws.asked == []
