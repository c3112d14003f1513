"""What the planning tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from low_latency_endpoint.errors import ConfigurationError

Refused = Callable[[str], AbstractContextManager[pytest.ExceptionInfo[ConfigurationError]]]


@pytest.fixture
def refused() -> Refused:
    """``with refused("LLE101"):`` holds when exactly that rule is broken and the error is whole."""

    @contextmanager
    def expect(code: str) -> Iterator[pytest.ExceptionInfo[ConfigurationError]]:
        with pytest.raises(ConfigurationError) as caught:
            yield caught
        error = caught.value
        assert error.code == code, str(error)
        assert all([error.what, error.got, error.allowed, error.mend]), str(error)

    return expect
