"""Reads an account: nothing but reads, each made once, and refusals told apart from answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from ..sessions import (
    ClientFactory,
    aws_errors_in_words,
    error_code,
    is_denied,
    open_clients,
)

__all__ = ["READ_ONLY", "Account", "ClientFactory", "Unreadable", "iam_action", "open_clients"]

#: How the operations begin that these commands may call; none of them changes anything.
READ_ONLY = ("batch_get_", "describe_", "filter_", "get_", "head_", "list_", "simulate_")

# IAM names some actions otherwise than the API.
_ACTIONS = {
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
}
_PREFIXES = {"service-quotas": "servicequotas"}


class Unreadable(Exception):
    """AWS refused, or did not answer: what was asked for is unknown.

    Attributes
    ----------
    evidence, mend : str
        What happened and what to do, in words.
    headers : mapping of str to str
        The answer's HTTP headers: S3 tells a bucket's region even when it refuses.
    """

    def __init__(self, evidence: str, mend: str = "",
                 headers: Mapping[str, str] | None = None) -> None:
        super().__init__(evidence)
        self.evidence = evidence
        self.mend = mend
        self.headers = dict(headers or {})


class Account:
    """One account and region, read through a client factory; each request is made once.

    Parameters
    ----------
    client : callable
        Service name to boto3 client.
    region : str
        The region that the clients ask.
    """

    def __init__(self, client: ClientFactory, region: str) -> None:
        self.region = region
        self._factory = client
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """The client of a service, made once."""
        if service not in self._clients:
            with _unreadable(service, "its client"):
                self._clients[service] = self._factory(service)
        return self._clients[service]

    def identity(self) -> dict[str, Any]:
        """Who asks: STS's GetCallerIdentity.

        Raises
        ------
        ConfigurationError
            ``LLE583`` without credentials, or with expired ones: nothing else will be answered.
        AwsUnavailable
            When AWS cannot be reached.
        Unreadable
            When something explicitly denies even this.
        """
        if "identity" not in self._answers:
            with aws_errors_in_words():
                try:
                    answer = self._factory("sts").get_caller_identity()
                except ClientError as error:
                    if not is_denied(error):
                        raise
                    answer = _words("sts", "GetCallerIdentity", error)
            self._answers["identity"] = answer
        found: dict[str, Any] = _given(self._answers["identity"])
        return found

    def account_id(self) -> str:
        """The account's twelve digits.

        Raises
        ------
        Unreadable
            See :meth:`identity`.
        """
        return str(self.identity()["Account"])

    def partition(self) -> str:
        """The partition of the caller's ARN, such as ``aws``; ``aws`` when it is not known."""
        try:
            return str(self.identity()["Arn"]).split(":")[1]
        except (Unreadable, IndexError):
            return "aws"

    def zones(self) -> dict[str, str]:
        """Zone names to zone IDs of the zones that this account may use in the region."""
        answer = self.read("ec2", "describe_availability_zones")
        return {zone["ZoneName"]: zone["ZoneId"] for zone in (answer or {})["AvailabilityZones"]
                if zone.get("OptInStatus") != "not-opted-in"}

    def read(self, service: str, operation: str, /, missing: Collection[str] = (),
             **arguments: Any) -> Any:
        """One answer; ``None`` when AWS answers with an error code in ``missing``.

        Raises
        ------
        Unreadable
            For a refusal, any other error code, or no answer.
        """
        return self._once(service, operation, missing, arguments, lambda client: getattr(
            client, operation)(**arguments))

    def every(self, service: str, operation: str, key: str, /, missing: Collection[str] = (),
              **arguments: Any) -> Any:
        """All items under ``key`` from all pages; ``None`` and errors as for :meth:`read`."""
        def pages(client: Any) -> list[Any]:
            if not client.can_paginate(operation):
                return list(getattr(client, operation)(**arguments)[key])
            return [item for page in client.get_paginator(operation).paginate(**arguments)
                    for item in page.get(key) or ()]

        return self._once(service, operation, missing, {**arguments, "every": key}, pages)

    def _once(self, service: str, operation: str, missing: Collection[str],
              arguments: dict[str, Any], ask: Callable[[Any], Any]) -> Any:
        if not operation.startswith(READ_ONLY):
            raise ValueError(f"{operation} is not a read")
        key = json.dumps([service, operation, arguments], sort_keys=True, default=str)
        if key not in self._answers:
            self._answers[key] = self._ask(service, operation, missing, ask)
        return _given(self._answers[key])

    def _ask(self, service: str, operation: str, missing: Collection[str],
             ask: Callable[[Any], Any]) -> Any:
        client = self.client(service)
        name = client.meta.method_to_api_mapping.get(operation, operation)
        try:
            with _unreadable(service, name):
                return ask(client)
        except Unreadable as refusal:
            cause = refusal.__cause__
            if isinstance(cause, ClientError) and error_code(cause) in missing:
                return None
            return refusal


def _given(answer: Any) -> Any:
    if isinstance(answer, Unreadable):
        raise Unreadable(answer.evidence, answer.mend, answer.headers)
    return answer


@contextmanager
def _unreadable(service: str, name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _words(service, name, error) from error
    except ResponseParserError as error:
        raise Unreadable(f"{service} {name}: the answer is not the service's") from error
    except BotoCoreError as error:
        raise Unreadable(f"{service} {name}: {error}") from error


def iam_action(service: str, operation: str) -> str:
    """The IAM action that an API operation needs.

    >>> iam_action("s3", "HeadObject"), iam_action("service-quotas", "ListServiceQuotas")
    ('s3:GetObject', 'servicequotas:ListServiceQuotas')
    """
    return _ACTIONS.get((service, operation), f"{_PREFIXES.get(service, service)}:{operation}")


def _words(service: str, name: str, error: ClientError) -> Unreadable:
    action = iam_action(service, name)
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders")
    if is_denied(error):
        return Unreadable(f"these credentials may not read it: {action} is denied",
                          f"Allow {action} to these credentials, or ask somebody who may.",
                          headers)
    message = str(error.response.get("Error", {}).get("Message", ""))
    if message.lstrip().startswith("<"):
        message = "a page, and no answer of the service's"  # a proxy's, or an unknown server's
    return Unreadable(f"{action} was answered with {error_code(error)}: {message[:200]}",
                      headers=headers)
