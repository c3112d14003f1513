"""What tests of load tests share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from client.tests.loopback_runtime import write_certificates
from local_sagemaker import LocalAws
from low_latency_endpoint.cli import app


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With certificates for loopback."""
    made = tmp_path_factory.mktemp("certificates")
    write_certificates(made)
    return made


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, folder: Path) -> Path | None:
    """The folder with the certificates, where the server has one."""
    return folder if request.param == "tls" else None


@pytest.fixture
def environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that has a local AWS, and what it calls in this process, are in its environment."""
    if "aws" in request.fixturenames:
        for name, value in request.getfixturevalue("aws").environment().items():
            monkeypatch.setenv(name, value)


LoadTest = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def load_test(aws: LocalAws, tmp_path: Path) -> LoadTest:
    """Run ``load-test sentiment`` on the local AWS; its result, and what it printed."""

    def ran(*arguments: str) -> tuple[dict[str, Any], str]:
        result = tmp_path / "result.json"
        line = ["load-test", "sentiment", "--metrics-wait", "0s", *arguments, "-o", str(result)]
        done = CliRunner().invoke(app, line, env=aws.environment())
        assert done.exit_code in (0, 1), done.output
        content: dict[str, Any] = json.loads(result.read_text())
        return content, done.output

    return ran
