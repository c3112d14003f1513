"""Putting the application behind a loopback port."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import BaseWSGIServer, make_server

from . import corrections, hosting, resources
from .application import Application, OwnService
from .cloudformation import stacks
from .cloudformation.api import CLOUDFORMATION
from .runtime.service import Runtime
from .sagemaker_api import SAGEMAKER
from .scaling_api import APPLICATION_AUTO_SCALING

LOOPBACK = "127.0.0.1"

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
    """
    resources.load()
    corrections.apply()
    application = Application(
        [CLOUDFORMATION, SAGEMAKER, APPLICATION_AUTO_SCALING, CLOUDTRAIL],
        on_reset=[stacks.reset, hosting.reset],
        runtime=runtime,
    )
    server = make_server(LOOPBACK, port, application, threaded=True, request_handler=_QuietHandler)
    # A request under way must not keep the process alive.
    server.daemon_threads = True  # type: ignore[attr-defined]
    application.url = f"http://localhost:{server.server_port}"
    return server, application.url


def serve_in_thread(
    port: int = 0, runtime: Runtime | None = None
) -> tuple[BaseWSGIServer, str, threading.Thread]:
    """Start the server in a daemon thread."""
    server, url = make_loopback_server(port, runtime)
    thread = threading.Thread(target=server.serve_forever, name="local-aws", daemon=True)
    thread.start()
    return server, url, thread


def log_to(path: Path) -> logging.Handler:
    """Send this package's log to a file."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("low_latency_endpoint.local_aws")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    return handler
