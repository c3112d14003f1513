"""What the planning tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.latency_plan import EndpointRequest, Plan, ScalingOptions, make_plan

Refused = Callable[[str], AbstractContextManager[pytest.ExceptionInfo[ConfigurationError]]]


_SCALING = {
    "enabled",
    "min_instances",
    "initial_instances",
    "max_instances",
    "max_concurrency_per_instance",
    "scale_in_cooldown",
    "scale_out_cooldown",
}


def planned(**given: Any) -> Plan:
    """The plan of a request whose scaling options stand among the rest."""
    scaling = {name: given.pop(name) for name in _SCALING & given.keys()}
    return make_plan(EndpointRequest(scaling=ScalingOptions(**scaling), **given))


@pytest.fixture
def refused() -> Refused:
    """``with refused("LLE101"):`` holds when exactly that rule is broken and the error is whole."""

    @contextmanager
    def expect(code: str) -> Iterator[pytest.ExceptionInfo[ConfigurationError]]:
        with pytest.raises(ConfigurationError) as caught:
            yield caught
        error = caught.value
        assert error.code == code, str(error)
        assert all([error.what, error.got, error.allowed, error.fix]), str(error)

    return expect
