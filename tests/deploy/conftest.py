"""One local AWS for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_sagemaker import LocalAws, RuntimeOptions
from tests.deploy.small_stacks import REGION, REGISTRY
from tests.deploy.watched_rights import Watch, watching


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS in a thread of the test process."""
    # What outlives endpoints has tests of its own (test_drained_interfaces.py); here nobody waits.
    options = RuntimeOptions(interfaces_stay=0)
    with LocalAws.in_process(region="us-east-1", runtime=options) as running:
        yield running


@pytest.fixture
def clean_aws(request: pytest.FixtureRequest) -> Iterator[LocalAws]:
    """One that has nothing but images, for each test, and leaves nothing; a test may add options."""
    options = RuntimeOptions(interfaces_stay=0, **getattr(request, "param", {}))
    with LocalAws.in_process(region=REGION, runtime=options) as running:
        running.reset()
        for number in range(4):
            running.add_image(f"{REGISTRY}/server:{number}")
        yield running
        running.reset()


@pytest.fixture(scope="module")
def own_aws() -> Iterator[LocalAws]:
    """One that has nothing but what the module makes, and leaves nothing."""
    with LocalAws.in_process(region="us-east-1") as running:
        running.reset()
        yield running
        running.reset()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """All decisions about roles: functions run elsewhere, but are judged in this process."""
    with watching() as looking:
        yield looking
