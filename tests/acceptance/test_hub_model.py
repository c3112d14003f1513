"""Two commits of a model of the Hub, pinned by the run itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.hugging_face.lock_file import pinned_model
from tests.hub_of_files import FakeHub
from tools.acceptance.hub_model import HubModel, NotPinned
from tools.acceptance.steps import NEEDED, NotReached, Run, StepFailed
from tools.acceptance.world import World

from .conftest import HUB_MODEL, two_commits


def of(hub: FakeHub, folder: Path, *revisions: str) -> HubModel:
    first, second = revisions
    return HubModel(HUB_MODEL, (first, second), hub.endpoint, str(folder / "locks"))


def test_each_commit_has_a_lock_file_of_its_own(hub: FakeHub, tmp_path: Path) -> None:
    first, second = two_commits(hub)
    model = of(hub, tmp_path, first, "main")
    assert model.pin("0a1b2c3d") == [first, second]
    pinned = [pinned_model(model.lock("0a1b2c3d", number), HUB_MODEL) for number in (1, 2)]
    assert [each.commit for each in pinned] == [first, second]
    assert pinned[0].files != pinned[1].files


def test_one_commit_by_two_names_is_no_update(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(NotPinned, match="one commit"):
        of(hub, tmp_path, "main", two_commits(hub)[1]).pin("0a1b2c3d")


def test_a_revision_that_the_hub_lacks_ends_the_run_before_it_deploys(
    hub: FakeHub, world: World, tmp_path: Path
) -> None:
    run = Run(world, of(hub, tmp_path, two_commits(hub)[0], "no-such-branch"), "0a1b2c3d")
    *_, deploy = NEEDED
    with pytest.raises(StepFailed, match="no-such-branch"):
        run.do(deploy)
    with pytest.raises(NotReached, match="the step pin failed"):
        run.do(deploy)
