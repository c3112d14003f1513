"""Putting the application behind a loopback port: each request has a thread, no connection has one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from moto.core.request import (
    PRESERVED_HEADER_NAMES_ENVIRON_KEY,
    environ_key_for_header,
    should_preserve_original_header_name,
)

from . import cloudtrail, corrections, hosting, lambda_runner, service_level_objectives, task_runner
from .admission import SERVED, admit_known, without_keys
from .application import Application, OwnService
from .cloudformation import stacks
from .cloudformation.api import CLOUDFORMATION
from .cloudwatch import evaluation
from .observability_admin import OBSERVABILITY_ADMIN
from .permissions import principals
from .policy_simulation import POLICY_SIMULATION
from .resources import iam
from .runtime.http_server import Connection, Limits, Request, listening
from .runtime.service import Runtime
from .sagemaker_api import SAGEMAKER
from .scaling_api import APPLICATION_AUTO_SCALING
from .server import LocalAwsError
from .service_level_objectives import APPLICATION_SIGNALS
from .service_quotas import SERVICE_QUOTAS

logger = logging.getLogger("local_sagemaker.requests")

_MOST_THREADS = 512
"""Requests under way at a time; further ones wait. A function that calls back needs one more."""
_OF_THE_CONNECTION = {"connection", "transfer-encoding", "content-length"}


class WsgiHandler:
    """Handles the requests of a listener with a WSGI application."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._free = asyncio.Semaphore(_MOST_THREADS)

    async def __call__(self, request: Request, connection: Connection) -> None:
        if request.too_large:
            connection.send(400, [("content-type", "text/plain")], b"too large")
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not done.done():
                done.set_result(None)

        def work() -> None:
            # A loop that has stopped meanwhile takes nothing any more, and nobody waits.
            with contextlib.suppress(RuntimeError):
                try:
                    self._respond(request, connection, loop)
                except Exception:
                    logger.exception("%s %s", request.method, without_keys(request.target))
                    loop.call_soon_threadsafe(connection.close)
                finally:
                    loop.call_soon_threadsafe(end)

        async with self._free:
            # A daemon: a request under way must not keep the process alive.
            threading.Thread(target=work, name="local-aws request", daemon=True).start()
            await done

    def _respond(
        self, request: Request, connection: Connection, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Run the application and send what it gives; runs in a thread."""
        told: list[tuple[int, str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> None:
            code, _, reason = status.partition(" ")
            told[:] = [(int(code), reason, headers)]

        try:
            parts = self._application(_environment(request, connection), start_response)
        except Exception:
            # A mistake of ours must look like one, never like a refusal.
            logger.exception("%s %s failed", request.method, without_keys(request.target))
            fault = json.dumps({"__type": "InternalFailure", "message": "see the log"}).encode()
            kind = [("content-type", "application/x-amz-json-1.1")]
            loop.call_soon_threadsafe(connection.send, 500, kind, fault)
            return
        try:
            first = next(iterator := iter(parts), b"")
            ((status, reason, given),) = told
            logger.info("%s %s -> %s", request.method, without_keys(request.target), status)
            stated = {name.lower(): value for name, value in given}
            headers = [
                (name, _one_line(value))
                for name, value in given
                if name.lower() not in _OF_THE_CONNECTION
            ]
            if "date" not in stated:
                headers.append(("Date", formatdate(usegmt=True)))
            if not request.keep:
                headers.append(("Connection", "close"))
            if request.method == "HEAD":
                length = int(stated.get("content-length", 0))
                loop.call_soon_threadsafe(
                    lambda: connection.send(status, headers, b"", reason, length=length)
                )
            elif "content-length" in stated or isinstance(parts, list) or request.version == "1.0":
                body = b"".join([first, *iterator])
                loop.call_soon_threadsafe(connection.send, status, headers, body, reason)
            else:
                loop.call_soon_threadsafe(connection.start_stream, status, headers)
                while first and connection.is_open:
                    sending = asyncio.run_coroutine_threadsafe(connection.send_chunk(first), loop)
                    sending.result()
                    first = next(iterator, b"")
                loop.call_soon_threadsafe(connection.end_stream)
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()


def _check_loopback(port: int) -> None:
    """Refuse a machine on which nobody reaches what is served."""
    try:
        named = {found[4][0] for found in socket.getaddrinfo("localhost", port, socket.AF_INET)}
    except OSError:
        named = set()
    if "127.0.0.1" not in named:
        raise LocalAwsError(
            "the name localhost does not lead to 127.0.0.1 on this machine: add the line "
            "`127.0.0.1 localhost` to /etc/hosts"
        )
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    except OSError as error:
        raise LocalAwsError(
            f"nothing reaches 127.0.0.1 on this machine ({error.strerror or error}): bring its "
            "loopback interface up, such as with `ip link set lo up`"
        ) from None


def _one_line(value: str) -> str:
    """Keep what was written into a header from becoming another one."""
    return value.replace("\r", " ").replace("\n", " ")


def _environment(request: Request, connection: Connection) -> dict[str, Any]:
    path, _, query = request.target.partition("?")
    environ: dict[str, Any] = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.input_terminated": True,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "QUERY_STRING": query,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "REQUEST_URI": request.target,
        "RAW_URI": request.target,
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(connection.port),
        "REMOTE_ADDR": "127.0.0.1",
    }
    kept: dict[str, str] = {}
    for name, value in request.headers.items():
        if "_" not in name:
            environ[environ_key_for_header(name)] = value
    for name in (raw.decode("latin-1") for raw, _ in request.raw_headers):
        # To WSGI `a_b` and `a-b` are one; moto wants S3's metadata as it was spelt.
        key = environ_key_for_header(name)
        if should_preserve_original_header_name(name) and (key not in environ or key in kept):
            environ[key] = request.headers[name.lower()]
            kept.setdefault(key, name)
    environ[PRESERVED_HEADER_NAMES_ENVIRON_KEY] = kept
    if "HTTP_TRANSFER_ENCODING" in environ:
        del environ["HTTP_TRANSFER_ENCODING"]
        environ["CONTENT_LENGTH"] = str(len(request.body))
    return environ


_SERVICES = (
    APPLICATION_AUTO_SCALING,
    APPLICATION_SIGNALS,
    CLOUDFORMATION,
    OwnService("cloudtrail", {"LookupEvents": cloudtrail.lookup_events}, complete=True),
    OBSERVABILITY_ADMIN,
    POLICY_SIMULATION,
    SAGEMAKER,
    SERVICE_QUOTAS,
)

# Source: S3 API reference, PutObject ("up to 5 GB in a single operation").
_LIMITS = Limits(largest_body=5 * 1024**3, too_large=400, chunked=True)


@contextlib.contextmanager
def serving_in_thread(port: int, runtime: Runtime) -> Iterator[str]:
    """Serve in a thread, in front of a runtime that stops with it; gives the URL."""
    # The URL says `localhost`, bound to 127.0.0.1: S3 clients write the bucket into the path,
    # but some parse `127` out of a numeric host as if it were a bucket. All servers of one process
    # share one state: when the last one stops, everything is forgotten, with processes and files.
    with contextlib.ExitStack() as serving:
        serving.callback(_forget_when_last)
        serving.callback(runtime.stop)
        try:
            handler = WsgiHandler(Application(_SERVICES, _FORGETTING, runtime))
            admit = admit_known(runtime.credentials)
            served = listening(handler, port=port, admit=admit, limits=_LIMITS)
            port = serving.enter_context(served).port
        except (OSError, OverflowError) as error:
            in_use = getattr(error, "errno", None) == errno.EADDRINUSE
            why = "it is in use" if in_use else error
            raise LocalAwsError(f"port {port} of 127.0.0.1 cannot be served: {why}") from None
        _check_loopback(port)
        runtime.aws_url = f"http://localhost:{port}"
        SERVED[port] = runtime
        serving.callback(SERVED.pop, port)
        yield runtime.aws_url


_FORGETTING = (
    stacks.reset,
    cloudtrail.reset,
    hosting.reset,
    service_level_objectives.reset,
    lambda_runner.forget,
    task_runner.forget,
    principals.forget,
    iam.forget,
)


def _forget_when_last() -> None:
    if not SERVED:
        evaluation.BACKGROUND.stop()
        for forget in (*_FORGETTING, corrections.forget):
            forget()


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Send this package's log to a file, which only its user reads."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("local_sagemaker")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
