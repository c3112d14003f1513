"""A runtime on loopback, and clients that call it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, settings

from .callers import KINDS, Caller
from .loopback_runtime import LoopbackRuntime, write_certificates
from .zone_metadata import Metadata

# How long an example takes says nothing on a machine that does other work.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# No test may reach an account, not even one that forgets to ask for the local AWS.
for variable in [variable for variable in os.environ if variable.startswith("AWS_")]:
    del os.environ[variable]
os.environ.update(
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
    BOTO_CONFIG=os.devnull,  # in place of /etc/boto.cfg and ~/.boto, which botocore still reads
)


@pytest.fixture(autouse=True)
def own_default_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test call with the credentials of the test before, which boto3 keeps."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


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


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    made = Metadata()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()
