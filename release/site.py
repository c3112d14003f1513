"""The docs site's branch with one more version in it, as a bundle that a workflow can push.

Building runs the repository's code, pushing needs the right to write: two jobs, of which the second
has nothing but the bundle.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .repository import ROOT, Refused, clone, git, version_of_release

BRANCH = "gh-pages"
BUNDLE = "site.bundle"


def write_site_bundle(commit: str, target: Path) -> str:
    """Build the site of a commit beside the versions that the branch has already.

    A patch release takes the place of its minor version: 0.1.3 is shown as 0.1.

    Parameters
    ----------
    target
        The bundle; ``git clone -b gh-pages site.bundle`` unpacks it.

    Returns
    -------
    str
        The version under which the site shows it, also as ``latest``.

    Raises
    ------
    Refused
        When MkDocs finds anything to warn of.
    """
    with tempfile.TemporaryDirectory(prefix="site-") as name:
        checkout = Path(name) / "checkout"
        clone(commit, checkout)
        shown = ".".join(version_of_release(checkout).split(".")[:2])
        for ref in (f"refs/heads/{BRANCH}", f"refs/remotes/origin/{BRANCH}"):
            if git("for-each-ref", ref, at=ROOT):
                git("fetch", "--quiet", str(ROOT), f"+{ref}:refs/heads/{BRANCH}", at=checkout)
        _mike(checkout, "deploy", "--update-aliases", shown, "latest")
        _mike(checkout, "set-default", "latest")
        git("bundle", "create", "--quiet", str(target.absolute()), BRANCH, at=checkout)
    return shown


def _mike(checkout: Path, *arguments: str) -> None:
    who = {
        f"GIT_{role}_{what}": "release"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        [str(Path(sys.executable).with_name("mike")), *arguments, "--branch", BRANCH],
        cwd=checkout,
        env={**os.environ, **who, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"mike {' '.join(arguments)}: {done.stderr.strip()}")
