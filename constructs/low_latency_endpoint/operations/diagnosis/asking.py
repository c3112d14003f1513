"""Asking AWS: an answer, or an ``Unknown`` that says in words why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..sessions import ClientFactory, error_code, is_denied, who_is_asking
from .breaches import METRICS_READABLE
from .measurements import Unknown

__all__ = ["Account", "ClientFactory"]


class Account:
    """An AWS account as the credentials see it; ``unknown`` collects what they may not read."""

    def __init__(self, client: ClientFactory, progress: Callable[[str], None]) -> None:
        self._client = client
        self._clients: dict[str, Any] = {}
        self.progress = progress
        self.unknown: list[Unknown] = []

    def must(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """The answer; without it there is nothing to diagnose.

        Raises
        ------
        ConfigurationError
            ``LLE582``, ``LLE583``.
        """
        try:
            return self._call(service, operation, request)
        except (ClientError, BotoCoreError) as error:
            raise METRICS_READABLE.error(
                got=f"{_iam(service, operation)}: {in_words(error)}", allowed="an answer",
            ) from error

    def ask(self, what: str, service: str, operation: str, **request: Any) -> dict[str, Any] | None:
        """The answer, or ``None``; then ``what`` is unknown.

        Raises
        ------
        ConfigurationError
            ``LLE583`` when there are no credentials at all.
        """
        try:
            return self._call(service, operation, request)
        except (ClientError, BotoCoreError) as error:
            unknown = Unknown(what, f"{_iam(service, operation)}: {in_words(error)}")
            if unknown not in self.unknown:
                self.unknown.append(unknown)
            return None

    def pages(self, what: str, service: str, operation: str, key: str,
              **request: Any) -> list[Any] | None:
        """All items of a paginated answer, or ``None``; a part of them is no answer."""
        found: list[Any] = []
        for page in self._pages(what, service, operation, request):
            if page is None:
                return None
            found += page.get(key, [])
        return found

    def _pages(self, what: str, service: str, operation: str,
               request: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        token = None
        while True:
            page = self.ask(what, service, operation, **request,
                            **({"NextToken": token} if token else {}))
            yield page
            token = (page or {}).get("NextToken")
            if not token:
                return

    def _call(self, service: str, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if service not in self._clients:
                self._clients[service] = self._client(service)
            answer: dict[str, Any] = getattr(self._clients[service], operation)(**request)
        except (ClientError, BotoCoreError) as error:
            if coded := who_is_asking(error):
                raise coded from error
            raise
        return answer


def in_words(error: ClientError | BotoCoreError) -> str:
    """AWS's error for people: what it said, without botocore's frame around it."""
    if not isinstance(error, ClientError):
        return str(error).rstrip(".")
    if is_denied(error):
        return "not permitted"
    message = str(error.response.get("Error", {}).get("Message", "")).rstrip(".")
    code = error_code(error) or "error"
    return f"{code}: {message}" if message else code


def _iam(service: str, operation: str) -> str:
    """The permission's name: ``cloudwatch:GetMetricData``."""
    return f"{service}:{''.join(part.capitalize() for part in operation.split('_'))}"
