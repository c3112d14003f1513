"""Runs ``low-latency`` in this process, its clients those of an account of the tests."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.account.sessions import ClientFactory
from low_latency_endpoint.cli import main

from .account import JobAccount

SHIPPED = Path(__file__).parents[2] / "sentiment.yaml"
Command = Callable[..., Any]  # returns what the run printed: out and err


@pytest.fixture
def account() -> JobAccount:
    return JobAccount()


@pytest.fixture
def low_latency(
    account: JobAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command to its exit code; ``answer`` is typed at the question, ``None``: no terminal."""

    def open_clients(
        profile: str | None, region: str | None, otherwise: str | None = None
    ) -> tuple[ClientFactory, str]:
        return account, region or otherwise or ""

    def run(
        *arguments: str,
        settings: Path | None = SHIPPED,
        ends: int = 0,
        answer: str | None = None,
        sleep: Callable[[float], None] = lambda seconds: None,
    ) -> Any:
        terminal = io.StringIO(f"{answer}\n")
        monkeypatch.setattr(terminal, "isatty", lambda: answer is not None)
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr("low_latency_endpoint.account.sessions.open_clients", open_clients)
        monkeypatch.setattr("time.sleep", sleep)
        named = [] if settings is None else ["--settings", str(settings)]
        command = ["low-latency", *arguments, *named]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert int(ended.value.code or 0) == ends, printed
        assert "Traceback" not in printed.err
        return printed

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file of its own, as shipped."""
    path = tmp_path / "endpoint.yaml"
    path.write_text(SHIPPED.read_text())
    return path
