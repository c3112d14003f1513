"""Revisions of a Git repository as folders: read from Git's objects, and nothing of them is run."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from ...errors import rule
from ...errors.frozen import dataclass

REVISION = rule(
    "LLE980",
    "a revision of the repository cannot be read",
    fix="Run in a Git checkout, and name an existing revision, such as origin/main, or a "
    ".yaml file. In a shallow checkout, first run `git fetch --depth=1 origin "
    "REVISION`.",
    source="https://git-scm.com/docs/gitrevisions",
)
_CREDENTIALS = re.compile(r"://[^/@\s]*@")
_SETTINGS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_PART = 1 << 20  # bytes read at once
_LINK, _MODULE = "120000", "160000"  # modes of a symbolic link, and of another repository's commit


def is_file_name(against: str) -> bool:
    """Whether ``--against`` names a settings file; no revision of Git looks like one.

    A file that happens to be there decides nothing: a pull request could add one that is called
    as the revision.
    """
    return against.endswith((".yaml", ".yml")) or against.startswith(("/", "."))


class _Entry(NamedTuple):
    mode: str
    name: str  # of the object
    path: Path


@dataclass(frozen=True)
class Repository:
    """A checkout."""

    root: Path  # the checkout's folder, without symbolic links

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The checkout that a folder belongs to."""
        return cls(Path(cls(folder)._git("rev-parse", "--show-toplevel")).resolve())

    def commits(self, against: str) -> tuple[str, str | None]:
        """The commit before, and the one after; ``None`` where that is the working tree.

        Parameters
        ----------
        against : str
            A revision, for the working tree against it; ``BASE...HEAD`` for HEAD against the commit
            at which it left BASE, as in ``git diff``. In a shallow checkout, which does not know
            that commit, it is BASE.

        Raises
        ------
        ConfigurationError
            ``LLE980``.
        """
        base, of_both, head = against.partition("...")
        before = self._commit(base or "HEAD")
        if not of_both:
            return before, None
        after = self._commit(head or "HEAD")
        shared = self._run("merge-base", before, after)
        return shared.stdout.strip() if shared.returncode == 0 else before, after

    @contextmanager
    def extracted(self, commit: str) -> Iterator[Path]:
        """The files of a commit in a folder of their own, byte for byte as Git holds them.

        No attribute or filter applies, which in a checkout are the other revision's.
        """
        with tempfile.TemporaryDirectory(prefix="low-latency-") as made:
            folder = Path(made).resolve() / "files"
            folder.mkdir()
            try:
                self._write(list(self._entries(commit)), folder)
            except OSError as error:
                raise REVISION.error(
                    got=f"{commit[:10]}: {error.strerror or error}", allowed="files that fit here"
                ) from None
            yield folder

    def _entries(self, commit: str) -> Iterator[_Entry]:
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            if line:
                facts, _, path = line.partition("\t")
                mode, _, name = facts.split(" ")
                parts = path.split("/")
                if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
                    raise REVISION.error(
                        got=f"{commit[:10]}: {path!r}", allowed="names that a checkout would write"
                    )
                yield _Entry(mode, name, Path(*parts))

    def _write(self, entries: list[_Entry], folder: Path) -> None:
        """Links come last, so that no file is written through one."""
        blobs = [entry for entry in entries if entry.mode != _MODULE]
        blobs.sort(key=lambda each: each.mode == _LINK)
        with self._started("cat-file", "--batch") as git:
            assert git.stdin
            assert git.stdout
            for mode, name, path in blobs:
                git.stdin.write(f"{name}\n".encode())
                git.stdin.flush()
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                size = _size(git.stdout.readline())
                if mode == _LINK:
                    target.symlink_to(os.fsdecode(git.stdout.read(size)))
                else:
                    with target.open("xb") as file:
                        _copy(git.stdout, file, size)
                git.stdout.read(1)  # the line's end after each object
            git.stdin.close()

    def _commit(self, revision: str) -> str:
        return self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )

    def _git(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            said = _CREDENTIALS.sub("://", done.stderr.strip()).splitlines()
            raise REVISION.error(
                got=f"git {' '.join(arguments)}: {said[-1] if said else 'no such revision'}",
                allowed="a revision of this repository",
            )
        return done.stdout.strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self._started(*arguments) as git:
            out, said = (os.fsdecode(each) for each in git.communicate())
        return subprocess.CompletedProcess(git.args, git.returncode, out, said)

    def _started(self, *arguments: str) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                ["git", *_SETTINGS, *arguments],
                cwd=self.root,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            raise REVISION.error(got=str(error), allowed="a checkout with Git") from None


def _size(line: bytes) -> int:
    """Of an object, as ``git cat-file --batch`` announces it."""
    words = line.decode(errors="replace").split()
    if len(words) != 3 or words[1] != "blob":
        raise REVISION.error(got=" ".join(words) or "no answer", allowed="a file of the revision")
    return int(words[2])


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    while size:
        part = source.read(min(size, _PART))
        if not part:
            raise REVISION.error(got="the end of a file is missing", allowed="a whole repository")
        target.write(part)
        size -= len(part)
