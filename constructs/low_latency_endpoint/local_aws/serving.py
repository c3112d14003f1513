"""Putting the application behind a loopback port."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import BaseWSGIServer, make_server

from . import corrections, hosting, lambda_runner, resources, task_runner
from .application import Application, OwnService
from .cloudformation import stacks
from .cloudformation.api import CLOUDFORMATION
from .runtime.service import Runtime
from .sagemaker_api import SAGEMAKER
from .scaling_api import APPLICATION_AUTO_SCALING
from .server import LocalAwsError

LOOPBACK = "127.0.0.1"

_serving: set[str] = set()
"""The URLs that this process serves at."""

CLOUDTRAIL = OwnService("cloudtrail", {"LookupEvents": lambda caller, request: {"Events": []}})
"""The CDK CLI looks for causes of a failed deployment here, and retries for 20 s without it."""


class _QuietHandler(MotoRequestHandler):
    """Writes requests to the log file, never to the terminal."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        # werkzeug's own would add terminal colours.
        self.log("info", "%s %s -> %s", self.command, self.path, code)

    def log(self, type: str, message: str, *args: object) -> None:
        logging.getLogger("low_latency_endpoint.local_aws.requests").info(message, *args)


def make_loopback_server(
    port: int = 0, runtime: Runtime | None = None
) -> tuple[BaseWSGIServer, str]:
    """Make the server, in front of a runtime; gives it and its URL.

    The URL says `localhost` and the socket is bound to 127.0.0.1: S3 clients write the bucket into
    the path for both, but some parse `127` out of a numeric host as if it were a bucket.

    Raises
    ------
    LocalAwsError
        When the port is taken.
    """
    resources.load()
    corrections.apply()
    application = Application(
        [CLOUDFORMATION, SAGEMAKER, APPLICATION_AUTO_SCALING, CLOUDTRAIL],
        on_reset=[stacks.reset, hosting.reset, lambda_runner.forget, task_runner.forget],
        runtime=runtime,
    )
    try:
        server = make_server(
            LOOPBACK, port, application, threaded=True, request_handler=_QuietHandler
        )
    except SystemExit:  # werkzeug's, which has said why on the standard error
        raise LocalAwsError(f"port {port} cannot be served: is it in use?") from None
    # A request under way must not keep the process alive.
    server.daemon_threads = True  # type: ignore[attr-defined]
    application.url = f"http://localhost:{server.server_port}"
    return server, application.url


@contextlib.contextmanager
def serving_in_thread(port: int = 0, runtime: Runtime | None = None) -> Iterator[str]:
    """Serve in a daemon thread; gives the URL.

    When the last server of this process stops, the unpacked code of its functions goes, and
    functions and tasks that still run are stopped: all servers of one process share one state.
    """
    server, url = make_loopback_server(port, runtime)
    thread = threading.Thread(target=server.serve_forever, name="local-aws", daemon=True)
    thread.start()
    _serving.add(url)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
        _serving.discard(url)
        if not _serving:
            lambda_runner.forget()
            task_runner.forget()


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Send this package's log to a file."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("low_latency_endpoint.local_aws")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
