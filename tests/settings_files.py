"""What is wrong with settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.settings import parse_settings


def mistakes(
    given: Any, load: Callable[[Any], object] = parse_settings
) -> list[tuple[int, ConfigurationError]]:
    """The line and the error of each mistake in a text, or in what else is loaded."""
    with pytest.raises(SettingsError) as caught:
        load(given)
    return caught.value.problems


def problems(given: Any, load: Callable[[Any], object] = parse_settings) -> list[tuple[int, str]]:
    """The line and the code of each."""
    return [(line, error.code) for line, error in mistakes(given, load)]
