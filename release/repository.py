"""The repository as a release sees it: its two distributions, its commits and tags."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Refused(Exception):
    """This cannot be released, and why."""


@dataclass(frozen=True)
class Project:
    """One distribution of this repository.

    Parameters
    ----------
    name
        Its name on PyPI.
    folder
        Where its ``pyproject.toml`` is, from the repository's top.
    package
        Its package, from there.
    """

    name: str
    folder: str
    package: str

    def sources(self, checkout: Path) -> Path:
        """The package's folder in a checkout."""
        return checkout / self.folder / self.package

    def version(self, checkout: Path) -> str:
        """The version that its package states."""
        text = (self.sources(checkout) / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
        if not found:
            raise Refused(f"{self.sources(checkout)}/__init__.py states no __version__")
        return found[1]


LIBRARY = Project("cdk-low-latency-endpoint", ".", "constructs/low_latency_endpoint")
LOCAL_AWS = Project("local-sagemaker", "local_sagemaker", "src/local_sagemaker")
PROJECTS = (LIBRARY, LOCAL_AWS)


def git(*arguments: str, at: Path = ROOT) -> str:
    """What git answers.

    Raises
    ------
    Refused
        With git's own words, when it fails.
    """
    done = subprocess.run(
        ["git", "-C", str(at), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Refused(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def clone(commit: str, folder: Path) -> None:
    """Check a commit out into a new folder."""
    git("clone", "--quiet", "--no-checkout", str(ROOT), str(folder))
    git("-c", "advice.detachedHead=false", "checkout", "--quiet", commit, at=folder)


def tag_before(commit: str) -> str | None:
    """The last tag of a release before this commit; None before the first release."""
    tags = git("tag", "--list", "v*", "--merged", commit, "--sort=-v:refname").split()
    here = set(git("tag", "--points-at", commit).split())
    return next((tag for tag in tags if tag not in here), None)


def version_of_release(checkout: Path) -> str:
    """The version that both distributions state.

    Raises
    ------
    Refused
        When they differ: one tag releases both.
    """
    versions = {project.name: project.version(checkout) for project in PROJECTS}
    if len(set(versions.values())) > 1:
        said = ", ".join(f"{name} {version}" for name, version in versions.items())
        raise Refused(f"one tag releases both distributions, but they say: {said}")
    return versions[LIBRARY.name]
