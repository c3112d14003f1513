"""What distributions, SECURITY.md and CI say of status and versions is one thing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
#: Of each distribution that this repository publishes: the folders with a build system.
PROJECTS = [
    file
    for file in (ROOT / "pyproject.toml", *ROOT.glob("[a-z]*/pyproject.toml"))
    if "build-system" in tomllib.loads(file.read_text("utf-8"))
]
POLICY = (ROOT / "SECURITY.md").read_text("utf-8").partition("## Supported versions")[2]
CI = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))


def project(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))["project"]
    return found


def pythons_of_ci() -> list[str]:
    """The versions of CI's matrices, which are the same, the oldest first."""
    matrices = [job.get("strategy", {}).get("matrix", {}) for job in CI["jobs"].values()]
    versions, *others = [matrix["python"] for matrix in matrices if "python" in matrix]
    assert all(other == versions for other in others)
    return [str(version) for version in versions]


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_it_is_an_alpha_until_a_claim_was_seen_on_aws(file: Path) -> None:
    """Whoever has run `make accept` and written down what was seen may choose another status."""
    claims = yaml.safe_load((ROOT / "tools/acceptance/claims.yaml").read_text("utf-8"))
    status = [kind for kind in project(file)["classifiers"] if "Development Status" in kind]
    if not any(claim.get("seen") for claim in claims):
        assert status == ["Development Status :: 3 - Alpha"]


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_classifiers_name_the_pythons_that_ci_tests(file: Path) -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project(file)["classifiers"]))
    assert named == pythons_of_ci()
    assert project(file)["requires-python"] == f">={named[0]}"


def test_the_policy_names_the_versions_that_are_let_in_and_tested() -> None:
    oldest, *_, newest = pythons_of_ci()
    assert f"**Python** {oldest} to {newest}" in POLICY
    (cdk,) = (
        one for one in project(ROOT / "pyproject.toml")["dependencies"] if "aws-cdk-lib" in one
    )
    low, below = re.findall(r"[\d.]+", cdk)
    assert f"aws-cdk-lib {low} and newer, below {below}" in POLICY


def test_the_policy_is_short() -> None:
    assert len(re.findall(r"^- ", POLICY, re.M)) == 5
