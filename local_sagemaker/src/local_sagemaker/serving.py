"""Putting the application behind a loopback port."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from . import cloudtrail, corrections, hosting, lambda_runner, task_runner
from .admission import admit_known, serve_with
from .application import Application, OwnService
from .cloudformation import stacks
from .cloudformation.api import CLOUDFORMATION
from .cloudwatch import evaluation
from .observability_admin import OBSERVABILITY_ADMIN
from .permissions import principals
from .permissions.enforcement import ignore_at
from .resources import iam
from .runtime.http_server import Limits, listening
from .runtime.service import Runtime
from .sagemaker_api import SAGEMAKER
from .scaling_api import APPLICATION_AUTO_SCALING
from .server import LocalAwsError
from .wsgi import WsgiHandler

_serving: set[str] = set()  # the URLs that this process serves at


CLOUDTRAIL = OwnService("cloudtrail", {"LookupEvents": cloudtrail.lookup_events}, complete=True)

# Source: S3 API reference, PutObject ("up to 5 GB in a single operation").
_LIMITS = Limits(largest_body=5 * 1024**3, too_large=400, chunked=True)


@contextlib.contextmanager
def serving_in_thread(port: int = 0, runtime: Runtime | None = None) -> Iterator[str]:
    """Serve in a thread, in front of a runtime that stops with it; gives the URL."""
    # The URL says `localhost`, bound to 127.0.0.1: S3 clients write the bucket into the path,
    # but some parse `127` out of a numeric host as if it were a bucket. All servers of one process
    # share one state: when the last one stops, everything is forgotten, with processes and files.
    runtime = runtime or Runtime()
    application = Application(
        [CLOUDFORMATION, SAGEMAKER, APPLICATION_AUTO_SCALING, CLOUDTRAIL, OBSERVABILITY_ADMIN],
        _FORGETTING,
        runtime,
    )
    with contextlib.ExitStack() as serving:
        serving.callback(_forget_when_last)
        serving.callback(runtime.stop)
        try:
            admit, handler = admit_known(runtime.credentials), WsgiHandler(application)
            served = listening(handler, port=port, admit=admit, limits=_LIMITS)
            port = serving.enter_context(served).port
        except (OSError, OverflowError) as error:
            raise LocalAwsError(f"port {port} cannot be served: is it in use? ({error})") from None
        application.url = runtime.aws_url = f"http://localhost:{port}"
        serve_with(port, runtime.credentials)
        serving.callback(serve_with, port, None)
        ignore_at(port, runtime.options.permissions == "ignored")
        serving.callback(ignore_at, port, False)
        _serving.add(application.url)
        serving.callback(_serving.discard, application.url)
        yield application.url


_FORGETTING = (
    stacks.reset,
    cloudtrail.reset,
    hosting.reset,
    lambda_runner.forget,
    task_runner.forget,
    principals.forget,
    iam.forget,
)


def _forget_when_last() -> None:
    if not _serving:
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
