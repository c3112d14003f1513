"""The docs site's branch: each release adds its version, and the workflow's job pushes it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BRANCH = "gh-pages"
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))


@pytest.mark.realtime  # builds the site twice: half a minute
def test_a_release_is_shown_beside_the_one_before(tmp_path: Path) -> None:
    published, repository = tmp_path / "published.git", tmp_path / "repository"
    git("init", "--quiet", "--bare", str(published))
    git("clone", "--quiet", str(ROOT), str(repository))
    git("remote", "set-url", "origin", str(published), at=repository)
    for version in ("0.1.0", "0.2.0"):
        variables = (f"VERSION={version}", f"DIST={tmp_path / 'dist'}")
        subprocess.run(["make", "release-site", *variables], cwd=repository, check=True)
        _push_as_the_workflow_does(tmp_path, published)
        git("fetch", "--quiet", "origin", f"{BRANCH}:refs/remotes/origin/{BRANCH}", at=repository)
    shown = json.loads(git("show", f"{BRANCH}:versions.json", at=published))
    assert [(each["version"], each["aliases"]) for each in shown] == [
        ("0.2", ["latest"]),
        ("0.1", []),
    ]
    for version in ("0.1", "0.2"):
        assert "fifteen minutes" in git(
            "show", f"{BRANCH}:{version}/tutorial/first-endpoint.html", at=published
        )


def git(*arguments: str, at: Path = ROOT) -> str:
    command = ["git", "-C", str(at), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


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
