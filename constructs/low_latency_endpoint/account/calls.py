"""Calls to an account: nothing but reads, and refusals told apart from answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from ..errors.given_files import json_value
from .sessions import (
    ClientFactory,
    Unreadable,
    aws_errors_in_words,
    credentials_error,
    error_code,
    is_denied,
)

#: How the operations begin that may be called here; none of them changes anything.
READ_ONLY = ("batch_get_", "describe_", "filter_", "get_", "head_", "list_", "lookup_", "simulate_")

#: Reads under way at once: more only meet the limits of the services sooner.
_AT_ONCE = 6

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be read, and why: never taken for fine."""

    what: str
    why: str


class Account:
    """One account and region, read through a client factory; ``once`` keeps each answer.

    Threads may share it: a question that several have at once is asked once.
    """

    def __init__(self, client: ClientFactory, region: str = "", *, once: bool = True) -> None:
        self.region = region
        self.unknown: list[Unknown] = []  # what known() could not read
        # whether lists are read whole, and once, as most of what is on them will be asked for
        self.whole_lists = False
        self._factory, self._once = client, once
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Future[Any]] = {}
        self._lock = RLock()

    def view(self) -> Account:
        """The same account with the same answers; what it cannot read is unknown to it alone."""
        view = copy(self)
        view.unknown = []
        return view

    def client(self, service: str) -> Any:
        with self._lock:  # a session makes one client after the other
            if service not in self._clients:
                try:
                    self._clients[service] = self._factory(service)
                except (ClientError, BotoCoreError) as error:
                    raise Unreadable.of(service, "its client", error) from error
            return self._clients[service]

    def identity(self) -> dict[str, Any]:
        """Who asks, by STS: ``LLA102`` without credentials; :class:`Unreadable` where it is denied."""
        with self._lock:
            if "identity" not in self._answers:
                answer: Future[Any] = Future()
                answer.set_result(self._ask_identity())
                self._answers["identity"] = answer
        found: dict[str, Any] = _given(self._answers["identity"].result())
        return found

    def _ask_identity(self) -> dict[str, Any] | Unreadable:
        with aws_errors_in_words():
            try:
                answer: dict[str, Any] = self._factory("sts").get_caller_identity()
            except ClientError as error:
                if not is_denied(error):
                    raise
                return Unreadable.of("sts", "GetCallerIdentity", error)
        return answer

    def account_id(self) -> str:
        return str(self.identity()["Account"])

    def partition(self) -> str:
        """The partition of the caller's ARN, such as ``aws``; ``aws`` when it is not known."""
        with suppress(Unreadable, IndexError):
            return str(self.identity()["Arn"]).split(":")[1]
        return "aws"

    def read(
        self, service: str, operation: str, /, missing: Collection[str] = (), **arguments: Any
    ) -> dict[str, Any] | Any:  # no None for whoever names none ``missing``
        """One answer; ``None`` when AWS answers with an error code in ``missing``."""
        return self._answer(
            service,
            operation,
            missing,
            arguments,
            lambda client: getattr(client, operation)(**arguments),
        )

    def every(
        self,
        service: str,
        operation: str,
        key: str,
        /,
        missing: Collection[str] = (),
        **arguments: Any,
    ) -> list[Any]:
        """All items under ``key`` from all pages; none where :meth:`read` gives ``None``."""

        def pages(client: Any) -> list[Any]:
            if not client.can_paginate(operation):
                return _by_token(getattr(client, operation), key, arguments)
            return [
                item
                for page in client.get_paginator(operation).paginate(**arguments)
                for item in page.get(key) or ()
            ]

        answer = self._answer(service, operation, missing, {**arguments, "every": key}, pages)
        return list(answer or ())

    def keep(self, told: Any, service: str, operation: str, /, **arguments: Any) -> None:
        """Keep what was told elsewhere as the answer to a question; ``every`` is that method's key."""
        answer: Future[Any] = Future()
        answer.set_result(told)
        with self._lock:
            self._answers.setdefault(_question(service, operation, arguments), answer)

    def known(
        self,
        what: str,
        read: Callable[Concatenate[Account, P], T],
        /,
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T | None:
        """What a function reads, or ``None``: then ``what`` is :attr:`unknown`; ``LLA102`` as ever."""
        try:
            return read(self, *arguments, **named)
        except Unreadable as refusal:
            if refusal.error is not None and (coded := credentials_error(refusal.error)):
                raise coded from refusal.error
            unknown = Unknown(what, refusal.why)
            if unknown not in self.unknown:
                self.unknown.append(unknown)
            return None

    def _answer(
        self,
        service: str,
        operation: str,
        missing: Collection[str],
        arguments: Mapping[str, Any],
        ask: Callable[[Any], Any],
    ) -> Any:
        if not operation.startswith(READ_ONLY):
            raise ValueError(f"{operation} is not a read")
        if not self._once:
            return _given(self._ask(service, operation, missing, ask))
        key = _question(service, operation, arguments)
        with self._lock:
            asked = key in self._answers
            answer = self._answers.setdefault(key, Future())
        if not asked:
            try:
                answer.set_result(self._ask(service, operation, missing, ask))
            except BaseException as error:
                del self._answers[key]
                answer.set_exception(error)
        return _given(answer.result())

    def _ask(
        self, service: str, operation: str, missing: Collection[str], ask: Callable[[Any], Any]
    ) -> Any:
        client = self.client(service)
        try:
            return ask(client)
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            if isinstance(error, ClientError) and error_code(error) in missing:
                return None
            name = client.meta.method_to_api_mapping.get(operation, operation)
            return Unreadable.of(service, name, error)


def _by_token(
    ask: Callable[..., dict[str, Any]], key: str, arguments: Mapping[str, Any]
) -> list[Any]:
    """All items of a list that botocore has no paginator for, though AWS gives it by the page."""
    page = ask(**arguments)
    items = list(page[key])
    while token := page.get("NextToken"):
        page = ask(**arguments, NextToken=token)
        items += page[key]
    return items


def side_by_side(read: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
    """What a function reads of each, in their order; several at once."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(read, items))


def _question(service: str, operation: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([service, operation, arguments], sort_keys=True, default=str)


def _given(answer: Any) -> Any:
    if isinstance(answer, Unreadable):
        raise answer from answer.error
    return answer


def json_object(text: Any) -> Mapping[str, Any]:
    """A JSON object, that boto3 may have read already; empty where there is none."""
    try:
        found = text if isinstance(text, Mapping) else json_value(text or "{}")
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}
