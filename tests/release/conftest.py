"""One build of this commit's distributions, for the tests that look into them."""

from __future__ import annotations

import pytest

from release.building import FIRST, build
from release.repository import ROOT, git


@pytest.fixture(scope="session")
def commit() -> str:
    """HEAD; tests of what is built see what is committed."""
    return git("rev-parse", "HEAD", at=ROOT)


@pytest.fixture(scope="session")
def dist(commit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build(commit, folder, FIRST)
    return folder
