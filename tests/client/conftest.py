"""A runtime on loopback, and clients that call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.benchmarks.tls_server import LoopbackRuntime, write_certificates

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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each kind of client, or those of the module's ``KINDS``, or of the test's own mark."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "kind" in metafunc.fixturenames and not any("kind" in mark.args[0] for mark in marks):
        metafunc.parametrize("kind", getattr(metafunc.module, "KINDS", KINDS))


@pytest.fixture
def make(server: LoopbackRuntime, folder: Path, kind: str) -> Iterator[Callable[..., Caller]]:
    """Makes clients of the server, and closes them."""
    made: list[Caller] = []

    def caller(**more: Any) -> Caller:
        given = {"url": server.url, "ca_bundle": folder / "ca.pem", **more}
        made.append(Caller(kind, **given))
        return made[-1]

    yield caller
    for one in made:
        one.close()
