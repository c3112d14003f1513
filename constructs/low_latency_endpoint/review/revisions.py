"""Two revisions of a Git repository as folders: nothing of either is run."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import rule
from .events import Event

REVISION = rule(
    "LLE980",
    "a revision of the repository cannot be read",
    fix="Run in a Git checkout, and name an existing revision with --base. In a shallow "
    "checkout, fetch it first: `git fetch --depth=1 origin REVISION`.",
    source="https://git-scm.com/docs/gitrevisions",
)
DEFAULT_BASE = "origin/main"

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CREDENTIALS = re.compile(r"://[^/@\s]*@")
_SETTINGS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


@dataclass(frozen=True)
class Repository:
    """A checkout.

    Attributes
    ----------
    root : pathlib.Path
        Its folder, without symbolic links.
    """

    root: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The checkout that a folder belongs to.

        Raises
        ------
        ConfigurationError
            ``LLE980`` outside of one, or without Git.
        """
        found = cls(folder)._git("rev-parse", "--show-toplevel")
        return cls(Path(found).resolve())

    def commit(self, revision: str) -> str:
        """The hash of the commit that a revision names.

        Raises
        ------
        ConfigurationError
            ``LLE980``.
        """
        return self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )

    def has(self, revision: str) -> bool:
        """Whether a revision is here."""
        return self._run("cat-file", "-e", f"{revision}^{{commit}}").returncode == 0

    def base(self, revision: str | None, event: Event | None) -> str:
        """The commit to compare with: what was there when the changes began.

        Parameters
        ----------
        revision : str or None
            What the user names; goes before the event's.
        event : Event or None
            What GitHub says. Of a merge that GitHub made for the pull request, it is the merge's
            first parent, even where the checkout has no history.

        Raises
        ------
        ConfigurationError
            ``LLE980``.
        """
        if revision is None and event is not None and event.base_sha:
            tip = self._fetched(self._merged_into(event) or event.base_sha)
        else:
            tip = self.commit(revision or DEFAULT_BASE)
        shared = self._run("merge-base", tip, "HEAD")  # none in a shallow checkout
        return shared.stdout.strip() if shared.returncode == 0 else tip

    @contextmanager
    def extracted(self, commit: str) -> Iterator[Path]:
        """The files of a commit in a folder of their own, as a checkout would write them."""
        with tempfile.TemporaryDirectory(prefix="low-latency-") as made:
            folder = Path(made).resolve() / "files"
            folder.mkdir()
            index = {"GIT_INDEX_FILE": str(folder.with_name("index"))}
            self._git("read-tree", commit, **index)
            self._git("checkout-index", "--all", "--quiet", f"--prefix={folder}/", **index)
            yield folder

    def _merged_into(self, event: Event) -> str | None:
        """The first parent of HEAD where HEAD merges the pull request's head."""
        text = self._git("cat-file", "commit", "HEAD")
        parents = [line[7:] for line in text.splitlines() if line.startswith("parent ")]
        return parents[0] if len(parents) == 2 and parents[1] == event.head_sha else None

    def _fetched(self, commit: str) -> str:
        """A commit that GitHub names; a shallow checkout fetches it alone."""
        if not _COMMIT.fullmatch(commit):
            raise REVISION.error(got=commit[:100], allowed="the hash of a commit")
        if not self.has(commit):
            shallow = self._git("rev-parse", "--is-shallow-repository") == "true"
            depth = ("--depth=1",) if shallow else ()
            self._git("fetch", "--quiet", "--no-tags", *depth, "origin", commit)
        return self.commit(commit)

    def _git(self, *arguments: str, **environment: str) -> str:
        done = self._run(*arguments, **environment)
        if done.returncode:
            said = _CREDENTIALS.sub("://", done.stderr.strip()).splitlines()
            raise REVISION.error(
                got=f"git {' '.join(arguments)}: {said[-1] if said else 'no such revision'}",
                allowed="a revision of this repository",
            )
        return done.stdout.strip()

    def _run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                ["git", *_SETTINGS, *arguments],
                cwd=self.root,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                check=False,
            )
        except (OSError, ValueError) as error:
            raise REVISION.error(got=str(error), allowed="a checkout with Git") from None
