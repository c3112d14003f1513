"""The docs site's branch: each release adds its version, and the workflow's job pushes it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from release import site
from release.repository import ROOT, clone, git
from release.site import BRANCH, BUNDLE, write_site_bundle

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))


@pytest.mark.realtime  # builds the site twice: half a minute
def test_a_release_is_shown_beside_the_one_before(
    commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = tmp_path / "published.git"
    git("init", "--quiet", "--bare", str(published))
    repository = tmp_path / "repository"
    clone(commit, repository)
    git("remote", "set-url", "origin", str(published), at=repository)
    monkeypatch.setattr(site, "ROOT", repository)

    dist = tmp_path / "dist"
    dist.mkdir()
    assert write_site_bundle(commit, dist / BUNDLE) == "0.1"
    _push_as_the_workflow_does(tmp_path, published)
    git("fetch", "--quiet", "origin", f"{BRANCH}:refs/remotes/origin/{BRANCH}", at=repository)

    monkeypatch.setattr(site, "version_of_release", lambda _: "0.2.0")
    assert write_site_bundle(commit, dist / BUNDLE) == "0.2"
    _push_as_the_workflow_does(tmp_path, published)
    shown = json.loads(git("show", f"{BRANCH}:versions.json", at=published))
    assert [(each["version"], each["aliases"]) for each in shown] == [
        ("0.2", ["latest"]),
        ("0.1", []),
    ]
    for version in ("0.1", "0.2"):
        assert "fifteen minutes" in git(
            "show", f"{BRANCH}:{version}/tutorial/first-endpoint.html", at=published
        )


def _push_as_the_workflow_does(folder: Path, to: Path) -> None:
    """The job's own script, with GitHub's address leading to another repository."""
    (script,) = (step["run"] for step in WORKFLOW["jobs"]["site"]["steps"] if "run" in step)
    subprocess.run(["rm", "-rf", "site"], cwd=folder, check=True)
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={
            **os.environ,
            "GH_TOKEN": "token",
            "GITHUB_REPOSITORY": "owner/name",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{to}.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://x-access-token:token@github.com/owner/name.git",
        },
        check=True,
    )
