"""Expect an argument to be refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from low_latency_client import ConfigurationError


@contextmanager
def refused(
    code: str, says: str = "", **parts: str
) -> Iterator[pytest.ExceptionInfo[ConfigurationError]]:
    """``with refused("LLC104", got="9"):`` holds if that rule is broken and the error is complete."""
    with pytest.raises(ConfigurationError) as caught:
        yield caught
    error = caught.value
    assert error.code == code, str(error)
    assert all([error.what, error.got, error.allowed, error.fix]), str(error)
    assert says in str(error)
    assert {name: getattr(error, name) for name in parts} == parts
