"""Runs ``low-latency`` in this process, its clients those of an account of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from low_latency_endpoint.account.sessions import ClientFactory
from low_latency_endpoint.cli import main


@dataclass
class Done:
    """What a run left behind."""

    out: str
    err: str


@dataclass
class Command:
    """The command line, with or without a terminal to ask on."""

    account: ClientFactory
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(
        self,
        *arguments: str,
        ends: int = 0,
        answer: str | None = None,
        sleep: Callable[[float], None] = lambda seconds: None,
    ) -> Done:
        """Run it, to end so; ``answer`` is typed at the question, ``None`` is no terminal."""

        def open_clients(
            profile: str | None, region: str | None, otherwise: str | None = None
        ) -> tuple[ClientFactory, str]:
            return self.account, region or otherwise or ""

        self.monkeypatch.setattr("low_latency_endpoint.account.sessions.open_clients", open_clients)
        self.monkeypatch.setattr("time.sleep", sleep)
        self.monkeypatch.setattr(sys, "argv", ["low-latency", *arguments])
        self.monkeypatch.setattr(sys, "stdin", _Terminal(answer))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        assert int(ended.value.code or 0) == ends, (out, err)
        assert "Traceback" not in err
        return Done(out, err)


class _Terminal:
    def __init__(self, answer: str | None) -> None:
        self._answer = answer

    def isatty(self) -> bool:
        return self._answer is not None

    def readline(self, *_: Any) -> str:
        assert self._answer is not None, "asked without a terminal"
        return self._answer + "\n"

    def fileno(self) -> int:
        raise OSError
