"""A runtime on loopback, and clients that call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tls_server import LoopbackRuntime, write_certificates

from .callers import KINDS, Caller


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    write_certificates(made)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[LoopbackRuntime]:
    with LoopbackRuntime(folder) as made:
        yield made


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of client."""
    return str(request.param)


@pytest.fixture
def make(server: LoopbackRuntime, folder: Path, kind: str) -> Iterator[Callable[..., Caller]]:
    """Makes clients of the server, and closes them."""
    made: list[Caller] = []

    def caller(**more: Any) -> Caller:
        given = {"url": server.url, "ca_bundle": folder / "ca.pem", **more}
        made.append(Caller(given.pop("kind", kind), **given))
        return made[-1]

    yield caller
    for one in made:
        one.close()
