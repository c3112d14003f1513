"""Decisions of the boto3 client at botocore's events: which host, whether again, whether twice."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, SSLError
from botocore.response import StreamingBody

from .after_fork import start_anew_after_fork
from .boto3_connections import Urllib3Connections
from .call_attempts import Attempts, CallRules, is_idempotent
from .client_timing import CLIENT_CLOSED, ClientCounts
from .hedging import HedgingState, hedged_in_threads
from .runtime_wire import check_header_values
from .zonal_route import ZonalRoute

_log = logging.getLogger(__name__)


class Handlers:
    """One client's handlers of botocore's events."""

    def __init__(
        self,
        client: Any,
        connections: Urllib3Connections | None,
        hedging: HedgingState | None,
        threads: int,
    ) -> None:
        self._counts: ClientCounts = client.counts
        self._route: ZonalRoute | None = client.route
        self._regional: str = client.meta.endpoint_url
        self._connections = connections
        self._hedging = hedging
        self._rules = CallRules(client.timing, client.counts, self._regional, client.route)
        self._closed = False
        self._number_of_threads = threads
        self._threads: ThreadPoolExecutor | None = None
        # botocore names events after the service's ID; clients know theirs.
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_first(f"provide-client-params.{service}", self.take_idempotent)
        events.register_first(f"needs-retry.{service}", self.decide_on_retry)
        events.register_first(f"before-call.{service}", self.check_headers)
        if self._route is not None:
            # Before the request is signed: the signature covers the host.
            events.register_first(f"request-created.{service}", self.choose_host)
        if connections is not None and not _take_over(client, connections):
            self._connections = None
        if hedging is not None:
            self._start_threads()
            plain = client.invoke_endpoint
            client.invoke_endpoint = lambda **parameters: self._invoke(plain, parameters)
        start_anew_after_fork(self)

    def _start_threads(self) -> None:
        self._threads = ThreadPoolExecutor(self._number_of_threads, "hedging")

    def start_anew(self) -> None:
        """In a forked child, where neither the parent's threads nor its connections are ours."""
        if self._connections is not None:
            self._connections.leave_to_parent()
        if self._threads is not None:
            self._start_threads()
        self._rules.start_anew()

    def preconnect(self, number: int) -> int:
        """Where calls go first: all; to the other name: one, to have it checked and warm."""
        if self._closed:
            raise CLIENT_CLOSED.error(got="preconnect() after close()", allowed="before it")
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
        self._closed = True
        if self._connections is not None:
            self._connections.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def take_idempotent(
        self, params: Mapping[str, Any], context: dict[str, Any], **_: Any
    ) -> Mapping[str, Any] | None:
        """Handle ``provide-client-params``: our parameter is not for AWS."""
        if self._closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before it")
        context["low_latency_attempts"] = Attempts(
            self._rules, is_idempotent(params), time.monotonic()
        )
        if "Idempotent" not in params:
            return None
        return {name: value for name, value in params.items() if name != "Idempotent"}

    def check_headers(self, params: Mapping[str, Any], **_: Any) -> None:
        """Handle ``before-call``: the standard library would send a NUL."""
        check_header_values(params["headers"])

    def choose_host(self, request: Any, **_: Any) -> None:
        """Handle ``request-created``: the zone's host, or the Region's."""
        origin = request.context["low_latency_attempts"].origin()
        request.context["low_latency_origin"] = origin
        if origin != self._regional and request.url.startswith(self._regional):
            request.url = origin + request.url[len(self._regional) :]

    def decide_on_retry(
        self, response: Any, caught_exception: Any, request_dict: dict[str, Any], **_: Any
    ) -> float | bool | None:
        """Handle ``needs-retry``: seconds to wait, or ``False`` for no further attempt."""
        context = request_dict["context"]
        attempts: Attempts = context["low_latency_attempts"]
        origin = context.get("low_latency_origin", self._regional)
        if response is not None:
            status = response[0].status_code
            pause = attempts.answered(origin, status)
            if status < 300:
                return None  # as most calls: nothing to decide
        elif isinstance(caught_exception, (HTTPClientError, NoConnectionError)):
            # urllib3 does not tell TLS's errors of the handshake from those of the answer.
            sent = True if isinstance(caught_exception, SSLError) else None
            pause = attempts.failed(origin, caught_exception, sent=sent)
        else:
            return False  # a mistake in the call, not on the way
        return False if pause is None else pause

    def _invoke(self, plain: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        if self._closed or not is_idempotent(parameters):
            return plain(**parameters)
        assert self._hedging is not None
        assert self._threads is not None
        return hedged_in_threads(lambda: _read(plain(**parameters)), self._hedging, self._threads)


def _take_over(client: Any, connections: Urllib3Connections) -> bool:
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
