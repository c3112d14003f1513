"""What runs by day, and how much more of the same `make nightly` runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

BY_NIGHT = bool(os.environ.get("NIGHTLY"))


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """The parameters of a test: the first of so many cases by day, all of them by night."""
    return [
        case
        if number % every == 0
        else pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly
        )
        for number, case in enumerate(cases)
    ]


def examples(by_day: int) -> int:
    """How many examples Hypothesis makes: ten times as many by night."""
    return 10 * by_day if BY_NIGHT else by_day
