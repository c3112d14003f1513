"""Decisions of the boto3 client at botocore's events: which host, whether again, whether twice."""

from __future__ import annotations

import io
import logging
import os
import random
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)
from botocore.exceptions import (
    HTTPClientError,
    ReadTimeoutError,
)
from botocore.response import StreamingBody

from .client_timing import RETRY_SHARE, Budget, CallTiming, ClientCounts, may_retry
from .hedging import HedgingState, hedged_in_threads
from .tls_connections import Connections
from .zonal_route import ZonalRoute

__all__ = ["Handlers", "is_idempotent"]

_log = logging.getLogger(__name__)


class Handlers:
    """One client's handlers of botocore's events."""

    def __init__(self, client: Any, connections: Connections | None,
                 hedging: HedgingState | None, threads: int) -> None:
        self._timing: CallTiming = client.timing
        self._counts: ClientCounts = client.counts
        self._route: ZonalRoute | None = client.route
        self._regional: str = client.meta.endpoint_url
        self._connections = connections
        self._hedging = hedging
        self._retry_budget = Budget(RETRY_SHARE)
        self._number_of_threads = threads
        self._threads: ThreadPoolExecutor | None = None
        # botocore names events after the service's ID; clients know theirs.
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_first(f"provide-client-params.{service}", self.take_idempotent)
        events.register_first(f"needs-retry.{service}", self.decide_on_retry)
        if self._route is not None:
            # Before the request is signed: the signature covers the host.
            events.register_first(f"request-created.{service}", self.choose_host)
        if connections is not None and not _take_over(client, connections):
            self._connections = None
        if hedging is not None:
            self._start_threads()
            plain = client.invoke_endpoint
            client.invoke_endpoint = lambda **parameters: self._invoke(plain, parameters)
        _of_this_process.add(self)

    def _start_threads(self) -> None:
        self._threads = ThreadPoolExecutor(self._number_of_threads, "hedging")

    def start_anew_after_fork(self) -> None:
        """In a forked child, where neither the parent's threads nor its connections are ours."""
        if self._connections is not None:
            self._connections.leave_to_parent()
        if self._threads is not None:
            self._start_threads()

    def preconnect(self, number: int) -> int:
        """Where calls go first: all; to the other name: one, to have it checked and warm."""
        if self._connections is None:
            return 0
        opened = 0
        if self._route is not None:
            opened += self._connections.open(self._route.zonal, number)
            number = 1 if opened else number
        opened += self._connections.open(self._regional, number)
        self._counts.add("connections_opened", opened)
        return opened

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def take_idempotent(self, params: Mapping[str, Any], context: dict[str, Any],
                        **_: Any) -> Mapping[str, Any] | None:
        """Handle ``provide-client-params``: our parameter is not for AWS."""
        self._retry_budget.earn()
        context["low_latency_idempotent"] = is_idempotent(params)
        if "Idempotent" not in params:
            return None
        return {name: value for name, value in params.items() if name != "Idempotent"}

    def choose_host(self, request: Any, **_: Any) -> None:
        """Handle ``request-created``: the zone's host, or the Region's."""
        assert self._route is not None
        origin = self._route.choose()
        request.context["low_latency_origin"] = origin
        if origin != self._regional and request.url.startswith(self._regional):
            request.url = origin + request.url[len(self._regional):]

    def decide_on_retry(self, response: Any, caught_exception: Any, attempts: int,
                        request_dict: dict[str, Any], **_: Any) -> float | bool | None:
        """Handle ``needs-retry``: seconds to wait, or ``False`` for no further attempt."""
        context = request_dict["context"]
        origin = context.get("low_latency_origin")
        if response is not None:
            if self._route is not None:
                self._route.answered(origin)
            status = response[0].status_code
            if status < 300:
                return None  # as most calls: nothing to decide
            sent, timed_out = True, False
        else:
            status, timed_out = None, isinstance(caught_exception, ReadTimeoutError)
            if not isinstance(caught_exception, (HTTPClientError, NoConnectionError)):
                return False  # a mistake in the call, not on the way
            # No connection was made, so nothing was sent.
            sent = not isinstance(caught_exception, NoConnectionError)
            if (self._route is not None and not timed_out
                    and self._route.failed(origin)
                    and (not sent or context["low_latency_idempotent"])
                    and not context.get("low_latency_failed_over")):
                context["low_latency_failed_over"] = True  # on top of the retries, once
                return 0.0
        failovers = 1 if context.get("low_latency_failed_over") else 0
        if attempts - failovers > self._timing.retries:
            return False
        idempotent = context["low_latency_idempotent"]
        if not may_retry(sent=sent, status=status, timed_out=timed_out, idempotent=idempotent):
            return False
        if not self._retry_budget.spend():
            return False
        self._counts.add("retries")
        return random.uniform(0, self._timing.retry_delay.total_seconds())

    def _invoke(self, plain: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        if not is_idempotent(parameters):
            return plain(**parameters)
        assert self._hedging is not None
        assert self._threads is not None
        return hedged_in_threads(lambda: _read(plain(**parameters)), self._hedging, self._threads)


_of_this_process: weakref.WeakSet[Handlers] = weakref.WeakSet()


def _start_all_anew() -> None:
    for handlers in list(_of_this_process):
        handlers.start_anew_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_all_anew)


def _take_over(client: Any, connections: Connections) -> bool:
    """Put our connections in the place of botocore's; returns whether there was such a place.

    botocore's public ``before-send`` event would do too, but calls every handler: a client under
    moto's mock would still send each request. This way a mock's answer keeps it from being sent.
    """
    endpoint = getattr(client, "_endpoint", None)
    session = getattr(endpoint, "http_session", None)
    if endpoint is None or session is None:
        _log.warning("this botocore keeps its own connections; new ones will be slow")
        return False
    session.close()
    endpoint.http_session = connections
    return True


def _read(response: dict[str, Any]) -> dict[str, Any]:
    """The whole answer, so that its connection is free again whoever wins."""
    body = response["Body"].read()
    response["Body"] = StreamingBody(io.BytesIO(body), len(body))
    return response


def is_idempotent(parameters: Mapping[str, Any]) -> bool:
    """What the call says itself; sessions have a state, so their calls are not by default."""
    return bool(parameters.get("Idempotent", not parameters.get("SessionId")))
