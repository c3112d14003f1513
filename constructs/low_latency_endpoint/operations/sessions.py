"""Sessions with AWS for the commands, and AWS's refusals in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
)

from ..errors import LowLatencyEndpointError

__all__ = ["AwsUnavailable", "aws_errors_in_words", "open_session"]

_ADVICE: tuple[tuple[type[BotoCoreError], str], ...] = (
    (NoCredentialsError, "Run `aws configure`, set AWS_PROFILE, or pass --profile."),
    (NoRegionError, "Pass --region, or set AWS_REGION."),
    (ProfileNotFound, "Name one of the profiles that `aws configure list-profiles` prints."),
    (EndpointConnectionError, "The service cannot be reached from here: network, or region."),
)


class AwsUnavailable(LowLatencyEndpointError):
    """AWS refused or could not be reached; the message says what and what to do."""


def open_session(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 session with the profile and region of the AWS CLI's options."""
    return boto3.Session(profile_name=profile, region_name=region)


def client_config() -> Config:
    """Few, quick retries: a command that hangs helps nobody."""
    return Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5,
                  read_timeout=30)


@contextmanager
def aws_errors_in_words() -> Iterator[None]:
    """Turn boto3's exceptions into :class:`AwsUnavailable`, with what to do.

    Raises
    ------
    AwsUnavailable
        For missing credentials, a region that is not known, a refusal by AWS.
    """
    try:
        yield
    except ClientError as error:
        code = error.response["Error"].get("Code", "")
        message = error.response["Error"].get("Message", "")
        advice = ""
        if code.startswith(("AccessDenied", "UnauthorizedOperation")):
            advice = f"\n  mend:    Allow {error.operation_name} to these credentials."
        elif code.startswith(("ExpiredToken", "InvalidClientToken", "UnrecognizedClient")):
            advice = "\n  mend:    Log in again: the credentials have expired or are not valid."
        raise AwsUnavailable(f"AWS refused {error.operation_name}: {code}: {message}{advice}") \
            from error
    except BotoCoreError as error:
        advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
        raise AwsUnavailable(f"{error}" + (f"\n  mend:    {advice}" if advice else "")) from error
