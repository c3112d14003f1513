"""Sessions with AWS for the commands, and AWS's refusals told apart, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

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
from botocore.parsers import ResponseParserError
from botocore.utils import validate_region_name

from ..errors import ConfigurationError, LowLatencyEndpointError, rule

ClientFactory = Callable[[str], Any]
"""Service name to boto3 client."""

CREDENTIALS = rule(
    "LLA102",
    "AWS credentials or the region are missing",
    fix="Give --profile and --region, or set AWS_PROFILE and AWS_DEFAULT_REGION. aws configure makes "
    "a profile.",
    source="/cli/latest/userguide/cli-configure-quickstart.html",
)

# How codes begin: services put Exception, Operation or nothing behind them.
_DENIED = (
    "AccessDenied",
    "UnauthorizedOperation",
    "AuthorizationError",
    "NotAuthorized",
    "Forbidden",
    "403",
)
_NOT_YOU = (
    "ExpiredToken",
    "InvalidClientTokenId",
    "UnrecognizedClient",
    "InvalidSignature",
    "SignatureDoesNotMatch",
    "MissingAuthenticationToken",
    "RequestExpired",
    "InvalidToken",
    "InvalidAccessKeyId",
)
# IAM names some actions otherwise than the API.
_ACTIONS = {
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
}
_PREFIXES = {"service-quotas": "servicequotas"}


class AwsUnavailable(LowLatencyEndpointError):
    """AWS refused or could not be reached; the message says what and what to do."""


class Unreadable(AwsUnavailable):
    """AWS refused to tell, or did not answer: what was asked for is unknown."""

    def __init__(
        self,
        evidence: str,
        fix: str = "",
        *,
        why: str = "",
        error: ClientError | BotoCoreError | None = None,
    ) -> None:
        super().__init__(evidence)
        self.evidence, self.fix, self.error = evidence, fix, error
        self.why = why or evidence  # in short: the permission, and what AWS said

    @classmethod
    def of(cls, service: str, name: str, error: ClientError | BotoCoreError) -> Unreadable:
        action = iam_action(service, name)
        why = f"{action}: {in_words(error)}"
        if isinstance(error, ResponseParserError):
            return cls(f"{service} {name}: the answer is not the service's", why=why, error=error)
        if not isinstance(error, ClientError):
            return cls(f"{service} {name}: {error}", why=why, error=error)
        if is_denied(error):
            return cls(
                f"these credentials may not read it: {action} is denied",
                f"Allow {action} to these credentials, or ask somebody who may.",
                why=why,
                error=error,
            )
        message = str(error.response.get("Error", {}).get("Message", ""))
        if message.lstrip().startswith("<"):
            message = "a page, and no answer of the service's"  # a proxy's, or an unknown server's
        return cls(
            f"{action} was answered with {error_code(error)}: {message[:200]}", why=why, error=error
        )

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's HTTP headers: S3 tells a bucket's region even when it refuses."""
        response = getattr(self.error, "response", {})
        return dict(response.get("ResponseMetadata", {}).get("HTTPHeaders") or {})


def open_session(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 session with the profile and region of the AWS CLI's options."""
    return boto3.Session(profile_name=profile, region_name=region)


def client_config() -> Config:
    """Few, quick retries: a command that hangs helps nobody."""
    return Config(
        retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=5, read_timeout=30
    )


def open_clients(
    profile: str | None, region: str | None, otherwise: str | None = None
) -> tuple[ClientFactory, str]:
    """A factory of clients, and their region: the first given one, else the profile's."""
    with aws_errors_in_words():
        with _surroundings():
            session = open_session(profile, region or otherwise)
        if session.region_name is None:
            raise NoRegionError
        validate_region_name(session.region_name)
    configuration = client_config()

    def client_of(service: str) -> Any:
        with _surroundings():
            client = session.client(service, config=configuration)
            _check_use(session, client)
        return client

    return client_of, str(session.region_name)


def _check_use(session: Any, client: Any) -> None:
    """Raise where no request could be signed with these credentials, or sent to this URL."""
    if urlsplit(client.meta.endpoint_url).port == 0:
        raise ValueError(f"no server has port 0: {client.meta.endpoint_url}")
    credentials = session.get_credentials()
    if credentials is None:
        return
    if not all(part.isascii() for part in credentials.get_frozen_credentials() if part):
        raise ValueError("credentials with characters that none of AWS's have")


@contextmanager
def _surroundings() -> Iterator[None]:
    """``LLA102`` where botocore stumbles over variables, files or a process: around its code alone."""
    try:
        yield
    except BotoCoreError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CREDENTIALS.error(
            got=f"botocore cannot use what is set here: {type(error).__name__}: {error}",
            allowed="AWS_ variables, AWS's configuration files and a credential_process as botocore "
            "documents them",
            fix="Look at AWS_ENDPOINT_URL, at the other variables that begin with AWS_, and at the "
            "profile in ~/.aws/config.",
        ) from error


def error_code(error: ClientError) -> str:
    """AWS's code, such as ``AccessDeniedException``; empty without one."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_denied(error: ClientError) -> bool:
    """Whether these credentials may not do it; others may."""
    return error_code(error).startswith(_DENIED)


def in_words(error: ClientError | BotoCoreError) -> str:
    """AWS's error for people: what it said, without botocore's frame around it."""
    if not isinstance(error, ClientError):
        return str(error).rstrip(".")
    if is_denied(error):
        return "not permitted"
    message = str(error.response.get("Error", {}).get("Message", "")).rstrip(".")
    code = error_code(error) or "error"
    return f"{code}: {message}" if message else code


def iam_action(service: str, operation: str) -> str:
    """The IAM action that an API operation needs.

    >>> iam_action("s3", "HeadObject"), iam_action("service-quotas", "ListServiceQuotas")
    ('s3:GetObject', 'servicequotas:ListServiceQuotas')
    """
    return _ACTIONS.get((service, operation), f"{_PREFIXES.get(service, service)}:{operation}")


def credentials_error(error: ClientError | BotoCoreError) -> ConfigurationError | None:
    """``LLA102`` when AWS cannot know who asks, or where: no other request will be answered."""
    if isinstance(error, ProfileNotFound):
        return CREDENTIALS.error(
            got=str(error), allowed="a profile that `aws configure list-profiles` lists"
        )
    if isinstance(error, NoCredentialsError | PartialCredentialsError | NoRegionError):
        return CREDENTIALS.error(got=str(error), allowed="credentials and a region")
    if isinstance(error, InvalidRegionError):
        return CREDENTIALS.error(got=str(error), allowed="a region such as us-east-1")
    if isinstance(error, ClientError) and error_code(error).startswith(_NOT_YOU):
        said = str(error.response["Error"].get("Message", "")).rstrip(".")
        return CREDENTIALS.error(
            got=": ".join(filter(None, (error_code(error), said))),
            allowed="credentials that are valid and have not expired",
        )
    return None


@contextmanager
def aws_errors_in_words() -> Iterator[None]:
    """Turn boto3's exceptions into errors that say what to do."""
    try:
        yield
    except Unreadable as refusal:
        if refusal.error is None:
            raise
        raise credentials_error(refusal.error) or _unavailable(refusal.error) from refusal.error
    except (ClientError, BotoCoreError) as error:
        raise credentials_error(error) or _unavailable(error) from error


def _unavailable(error: ClientError | BotoCoreError) -> AwsUnavailable:
    advice = ""
    if isinstance(error, EndpointConnectionError):
        advice = "The service cannot be reached from here: network, or region."
    text = str(error)
    if isinstance(error, ClientError):
        message = error.response.get("Error", {}).get("Message", "")
        text = f"AWS refused {error.operation_name}: {error_code(error)}: {message}"
        if is_denied(error):
            advice = f"Allow {error.operation_name} to these credentials."
    return AwsUnavailable(text + (f"\n  fix:    {advice}" if advice else ""))
