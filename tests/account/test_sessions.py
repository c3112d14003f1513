"""Clients for the commands: one way to open them, and AWS's errors in words."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from low_latency_endpoint.account.sessions import AwsUnavailable, aws_errors_in_words, open_clients
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused


@pytest.fixture(autouse=True)
def _no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")


def test_the_region_is_the_first_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_clients(None, "eu-west-1", "us-east-1")[1] == "eu-west-1"
    client, region = open_clients(None, None, "us-east-1")
    assert region == "us-east-1"
    config = client("sts").meta.config
    assert config.retries["total_max_attempts"] == 4
    assert (config.connect_timeout, config.read_timeout) == (5, 30)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    assert open_clients(None, None)[1] == "ap-south-1"


@pytest.mark.parametrize(
    "given",
    [("nobody", "us-east-1"), (None, None), (None, "us east 1")],
    ids=["no such profile", "no region", "no region's name"],
)
def test_who_and_where_must_be_known(given: tuple[str | None, str | None]) -> None:
    with refused("LLA102", "--profile and --region"):
        open_clients(*given)


def refusal(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeEndpoint")


@pytest.mark.parametrize(
    "error",
    [
        NoCredentialsError(),
        NoRegionError(),
        ProfileNotFound(profile="nobody"),
        PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"),
        refusal("ExpiredTokenException"),
        refusal("UnrecognizedClientException"),
        refusal("InvalidSignatureException"),
    ],
    ids=lambda error: (
        error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    ),
)
def test_who_is_not_known_gets_one_coded_error(error: Exception) -> None:
    with pytest.raises(ConfigurationError) as caught, aws_errors_in_words():
        raise error
    assert caught.value.code == "LLA102"
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            refusal("AccessDeniedException", "not you"),
            "AWS refused DescribeEndpoint: AccessDeniedException: not you\n"
            "  fix:    Allow DescribeEndpoint to these credentials.",
        ),
        (
            refusal("ThrottlingException", "slowly"),
            "AWS refused DescribeEndpoint: ThrottlingException: slowly",
        ),
        (
            EndpointConnectionError(endpoint_url="https://nowhere"),
            'Could not connect to the endpoint URL: "https://nowhere"\n'
            "  fix:    The service cannot be reached from here: network, or region.",
        ),
        (ClientError({}, "ListEndpoints"), "AWS refused ListEndpoints: : "),
    ],
)
def test_what_aws_refuses_is_said_in_words(error: ClientError | BotoCoreError, said: str) -> None:
    with pytest.raises(AwsUnavailable) as caught, aws_errors_in_words():
        raise error
    assert str(caught.value) == said
