"""What an option's declaration may say, and what a wrong one is told."""

from __future__ import annotations

from typing import Annotated

import pytest

from low_latency_endpoint.errors.frozen import dataclass
from low_latency_endpoint.facts import limits
from low_latency_endpoint.options.option import Option, Options, options_of


@dataclass(frozen=True, kw_only=True)
class OfNoLimit(Options):
    count: Annotated[int, Option(limits.NO_SUCH_LIMIT)] = 1  # type: ignore[attr-defined]
    """A number. Default: 1."""


def test_a_limit_that_does_not_exist_is_named_in_a_traceback_that_pytest_can_print() -> None:
    """The names of the frame are asked for pytest's own, and a class of CDK's is none of them."""
    with pytest.raises(AttributeError, match="NO_SUCH_LIMIT") as raised:
        options_of(OfNoLimit)
    assert "NO_SUCH_LIMIT" in str(raised.getrepr())
