"""How a refusal is expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from low_latency_endpoint.errors import ConfigurationError

from .contradictions import contradicts_itself


@contextmanager
def refused(
    code: str, says: str = "", **parts: str
) -> Iterator[pytest.ExceptionInfo[ConfigurationError]]:
    """``with refused("LLE101", got="x"):`` holds when that rule is broken and the error is whole."""
    with pytest.raises(ConfigurationError) as caught:
        yield caught
    error = caught.value
    assert error.code == code, str(error)
    assert all([error.what, error.got or "got" in parts, error.allowed, error.fix]), str(error)
    assert says in str(error)
    assert not contradicts_itself(error.got, error.allowed), str(error)
    assert {name: getattr(error, name) for name in parts} == parts
