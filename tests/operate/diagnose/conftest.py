"""Runs the diagnosis: on a scenario, through boto3's clients, and on a local AWS, by the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from local_sagemaker.admission import TOKEN_VARIABLE
from low_latency_endpoint.cli import app
from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose

from .account import FakeAccount
from .scenarios import END, ENDPOINT, Scenario

Run = Callable[..., Diagnosis]


@pytest.fixture
def run() -> Run:
    """Diagnoses the window of a scenario, or of an account that was made of one."""

    def _run(given: Scenario | FakeAccount, **options: Any) -> Diagnosis:
        account = given.account() if isinstance(given, Scenario) else given
        return diagnose(
            account, ENDPOINT, start=account.start, end=END, now=END, region="us-east-1", **options
        )

    return _run


Diagnosed = Callable[..., dict[str, Any]]


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch) -> Diagnosed:
    """What the command finds in a local AWS, by default up to now."""

    def _diagnosed(aws: LocalAws, *arguments: str, by_the_wall: bool = False) -> dict[str, Any]:
        for name, value in aws.exports().items():
            monkeypatch.setenv(name, value)
        if by_the_wall:  # without the token the local AWS's own time is not asked for
            monkeypatch.delenv(TOKEN_VARIABLE)
        result = CliRunner().invoke(app, ["diagnose", "--since", "25m", "--json", *arguments])
        assert result.exit_code in (0, 1), result.output
        found: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == bool(found["findings"])
        return found

    return _diagnosed
