"""Raise the errors of low_latency_client as errors of this library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import low_latency_client

from ...errors import ConfigurationError


@contextmanager
def translated_client_errors() -> Iterator[None]:
    """Raise what the client refuses with the same code and text, as this library's own error.

    Also a decorator of a function. A load test hands its target's Region, URLs and credentials to the client. Who runs a load test
    catches one hierarchy of errors.
    """
    try:
        yield
    except low_latency_client.ConfigurationError as error:
        raise ConfigurationError(**vars(error)) from error
