"""Runs the diagnosis on a scenario, through boto3's clients and botocore's shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose

from .account import FakeAccount
from .scenarios import END, ENDPOINT, Scenario

Run = Callable[..., Diagnosis]


@pytest.fixture
def run() -> Run:
    """Diagnoses the window of a scenario; ``account`` stands for a changed account of it."""

    def _run(scenario: Scenario, account: FakeAccount | None = None, **options: Any) -> Diagnosis:
        made = account or scenario.account()
        return diagnose(
            made, ENDPOINT, start=scenario.start, end=END, now=END, region="us-east-1", **options
        )

    return _run
