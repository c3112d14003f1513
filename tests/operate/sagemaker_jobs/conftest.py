"""The account, and the settings that ship."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.settings import EndpointSettings, load_settings

from .account import JobAccount
from .command import Command, Done

SHIPPED = Path(__file__).parents[2] / "sentiment.yaml"


@pytest.fixture
def account() -> JobAccount:
    return JobAccount()


@pytest.fixture
def endpoint() -> EndpointSettings:
    return load_settings(SHIPPED).endpoints["sentiment"]


@pytest.fixture
def low_latency(
    account: JobAccount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return Command(account, monkeypatch, capsys)


Recommend = Callable[..., Done]


@pytest.fixture
def recommend(low_latency: Command) -> Recommend:
    """Run ``low-latency recommend`` on the settings that ship, or on others."""

    def run(*arguments: str, settings: Path = SHIPPED, **more: Any) -> Done:
        return low_latency("recommend", "--settings", str(settings), *arguments, **more)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file of its own, as shipped."""
    path = tmp_path / "endpoint.yaml"
    path.write_text(SHIPPED.read_text())
    return path
