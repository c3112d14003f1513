"""A session for each conversation of a load test, which keeps it on one instance."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import boto3
import gevent
from botocore.exceptions import BotoCoreError, ClientError
from gevent.pool import Pool

import low_latency_client

from .client_errors import translated_client_errors
from .measurement import Invocation
from .payloads import Payloads
from .prompts import Prompts
from .steps import Step
from .target import Target

#: Calls at once: enough for some hundred sessions a second.
_AT_ONCE = 16
_CLOSING_SECONDS = 10.0
_FAILURES = (ClientError, BotoCoreError, low_latency_client.ConfigurationError)


class ConversationSessions:
    """Sends the requests of one process, each in the session of its conversation."""

    @translated_client_errors()
    def __init__(
        self,
        target: Target,
        payloads: Payloads,
        invoke: Callable[[bytes, dict[str, Any]], Invocation],
        session: boto3.Session,
    ) -> None:
        self._payloads = payloads
        self._prompts = cast(Prompts, payloads.prompts)
        self._invoke = invoke
        given = {
            "EndpointName": target.endpoint_name,
            "TargetVariant": target.target_variant,
            "InferenceComponentName": target.inference_component,
        }
        self._parameters: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        }
        self._client = low_latency_client.RuntimeClient(
            target.region,
            latency_target=timedelta(seconds=target.timeout_seconds),
            read_timeout=timedelta(seconds=target.timeout_seconds),
            concurrency=_AT_ONCE,
            preconnect=0,
            url=target.endpoint_urls[0] if target.endpoint_urls else None,
            session=session,
            allow_plain_http=target.allow_plain_http,
        )
        self._pool = Pool(_AT_ONCE)
        self._sessions: dict[int, Any] = {}
        self._beginning: Any = None

    def begin(self, step: Step, part: int, parts: int) -> None:
        """Open those of the step's first conversations, beside everything else."""
        first = range(part, self._prompts.conversations, parts)
        numbers = [step.first_number + number for number in first]
        self._beginning = gevent.spawn(lambda: [self._opened(number) for number in numbers])

    def invoke(self, number: int) -> Invocation:
        """Send one request in its session; without one it is not sent, and failed."""
        conversation, turn = self._prompts.turn(number)
        started = time.perf_counter()
        told = self._opened(number).get()
        if isinstance(told, Exception):
            self._sessions.pop(conversation, None)  # its next turn tries again
            return Invocation.given_up(_kind(told), started)._replace(message=str(told))
        parameters = self._payloads.parameters(number) or {}
        answer = self._invoke(self._payloads.next(number), {**parameters, "SessionId": told})
        if turn == self._prompts.turns - 1:
            self._close(conversation)
            self._opened(number + self._prompts.conversations)
        return answer._replace(started=min(started, answer.started))

    def end(self) -> None:
        """Close what is open: no conversation goes on in another step."""
        if self._beginning is not None:
            self._beginning.kill()
        for conversation in list(self._sessions):
            self._close(conversation)
        self._pool.join(_CLOSING_SECONDS)
        self._pool.kill()

    def _opened(self, number: int) -> Any:
        """The greenlet that has opened the session of a request's conversation, or does so now."""
        conversation, _ = self._prompts.turn(number)
        session = self._sessions.get(conversation)
        if session is None:
            session = gevent.Greenlet(self._open)
            self._sessions[conversation] = session  # before the pool, which may let others run
            self._pool.start(session)
        return session

    def _open(self) -> str | Exception:
        try:
            return self._client.open_session(**self._parameters)
        except _FAILURES as error:
            return error

    def _close(self, conversation: int) -> None:
        opening = self._sessions.pop(conversation, None)
        if opening is not None and (opening.started or opening.ready()):
            self._pool.spawn(self._closed, opening)

    def _closed(self, opening: Any) -> None:
        told = opening.get()
        if isinstance(told, str):
            with suppress(*_FAILURES):  # it ends by itself, too
                self._client.close_session(told, **self._parameters)


def _kind(error: Exception) -> str:
    """The kind of a failure, as a short text that failures are counted by."""
    if isinstance(error, ClientError):
        found = error.response
        status, code = found["ResponseMetadata"]["HTTPStatusCode"], found["Error"].get("Code", "")
        original = found.get("OriginalStatusCode")
        return f"session {status} {code} {'' if original is None else original}".rstrip()
    return f"session {getattr(error, 'code', None) or type(error).__name__}"
