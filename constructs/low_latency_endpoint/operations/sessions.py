"""Sessions with AWS for the commands, and AWS's refusals in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)
from botocore.utils import validate_region_name

from ..errors import ConfigurationError, LowLatencyEndpointError
from .credentials import CREDENTIALS

__all__ = [
    "AwsUnavailable", "ClientFactory", "aws_errors_in_words", "client_config", "error_code",
    "is_denied", "open_clients", "open_session", "who_is_asking",
]

ClientFactory = Callable[[str], Any]
"""Service name to boto3 client."""

# How codes begin: services put Exception, Operation or nothing behind them.
_DENIED = ("AccessDenied", "UnauthorizedOperation", "AuthorizationError", "NotAuthorized",
           "Forbidden", "403")
_NOT_YOU = ("ExpiredToken", "InvalidClientTokenId", "UnrecognizedClient", "InvalidSignature",
            "SignatureDoesNotMatch", "MissingAuthenticationToken", "RequestExpired",
            "InvalidToken", "InvalidAccessKeyId")


class AwsUnavailable(LowLatencyEndpointError):
    """AWS refused or could not be reached; the message says what and what to do."""


def open_session(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 session with the profile and region of the AWS CLI's options."""
    return boto3.Session(profile_name=profile, region_name=region)


def client_config() -> Config:
    """Few, quick retries: a command that hangs helps nobody."""
    return Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=5,
                  read_timeout=30)


def open_clients(profile: str | None, region: str | None,
                 otherwise: str | None = None) -> tuple[ClientFactory, str]:
    """A factory of clients, and their region: the first given one, else the profile's.

    Parameters
    ----------
    profile, region : str, optional
        As for the AWS CLI.
    otherwise : str, optional
        The region where ``region`` is not given.

    Raises
    ------
    ConfigurationError
        ``LLE583`` for a profile that does not exist, or when no region is known, or it is none.
    """
    with aws_errors_in_words():
        session = open_session(profile, region or otherwise)
        if session.region_name is None:
            raise NoRegionError
        validate_region_name(session.region_name)
    configuration = client_config()
    return (lambda service: session.client(service, config=configuration),
            str(session.region_name))


def error_code(error: ClientError) -> str:
    """AWS's code, such as ``AccessDeniedException``; empty without one."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_denied(error: ClientError) -> bool:
    """Whether these credentials may not do it; others may."""
    return error_code(error).startswith(_DENIED)


def who_is_asking(error: ClientError | BotoCoreError) -> ConfigurationError | None:
    """``LLE583`` when AWS cannot know who asks, or where: no other request will be answered."""
    if isinstance(error, ProfileNotFound):
        return CREDENTIALS.error(
            got=str(error), allowed="one that `aws configure list-profiles` prints")
    if isinstance(error, NoCredentialsError | PartialCredentialsError | NoRegionError):
        return CREDENTIALS.error(got=str(error), allowed="credentials and a region")
    if isinstance(error, InvalidRegionError):
        return CREDENTIALS.error(got=str(error), allowed="a region such as us-east-1")
    if isinstance(error, ClientError) and error_code(error).startswith(_NOT_YOU):
        said = str(error.response["Error"].get("Message", "")).rstrip(".")
        return CREDENTIALS.error(
            got=": ".join(filter(None, (error_code(error), said))),
            allowed="credentials that are valid and have not expired")
    return None


@contextmanager
def aws_errors_in_words() -> Iterator[None]:
    """Turn boto3's exceptions into errors that say what to do.

    Raises
    ------
    ConfigurationError
        ``LLE583`` for a profile, credentials or a region that are missing or not valid.
    AwsUnavailable
        For a refusal by AWS, and when it cannot be reached.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise who_is_asking(error) or _unavailable(error) from error


def _unavailable(error: ClientError | BotoCoreError) -> AwsUnavailable:
    advice = ""
    if isinstance(error, EndpointConnectionError):
        advice = "The service cannot be reached from here: network, or region."
    text = str(error)
    if isinstance(error, ClientError):
        said = error.response.get("Error", {}).get("Message", "")
        text = f"AWS refused {error.operation_name}: {error_code(error)}: {said}"
        if is_denied(error):
            advice = f"Allow {error.operation_name} to these credentials."
    return AwsUnavailable(text + (f"\n  mend:    {advice}" if advice else ""))
