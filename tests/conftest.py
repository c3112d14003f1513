"""The same world for every test, however pytest was started."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import boto3
import pytest
from hypothesis import HealthCheck, settings

from tests.leftovers import Leftovers, watch_processes
from tests.processor_times import ProcessorTimes

# How long an example takes says nothing on a machine that does other work.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# The tests start Node.js through jsii and the CDK CLI: the one of this virtual environment, which
# is first on the path only under `make test` or in an activated environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ.setdefault("JSII_RUNTIME_PACKAGE_CACHE", "enabled")
# CDK's own rules take half a second for each template, and three to load in each Node.js. Tests that
# are about them register them (tests/synth/judges.py); they judge every kind of stack there is.
os.environ["CDK_VALIDATION"] = "false"

# Programs that tests interrupt inherit what a job in the background has: SIGINT ignored, for good.
# One that is handled here is none that they inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test may reach an account, not even one that forgets to ask for the local AWS.
for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
    BOTO_CONFIG=os.devnull,  # in place of /etc/boto.cfg and ~/.boto, which botocore still reads
)
# Nobody starts EC2 instances: moto need not make its images anew for each local AWS.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"


class _LocustStaysOut(MetaPathFinder, Loader):
    """Locust patches the threads and sockets of whoever imports it: pytest then hangs for ever.

    Load generators import it in processes of their own.
    """

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "locust" else None

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError("Locust must not be imported by tests, only by processes they start")


sys.meta_path.insert(0, _LocustStaysOut())


@pytest.fixture(autouse=True)
def own_default_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test call with the credentials of the test before.

    boto3 keeps the session of its first client, with what that found in the environment.
    """
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def pytest_configure(config: pytest.Config) -> None:
    watch_processes()
    config.pluginmanager.register(Leftovers())
    if config.option.durations:
        config.pluginmanager.register(ProcessorTimes(config.option.durations))


def pytest_sessionstart() -> None:
    """Imports and thousands of tests to come: nothing that a collector of garbage could free."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is here stays to the end, so no test need go over it again in search of garbage."""
    gc.freeze()
    gc.enable()
    # Seldom: of what stacks and their Node.js keep for good there is nothing to collect either.
    gc.set_threshold(50_000, 20, 100)
