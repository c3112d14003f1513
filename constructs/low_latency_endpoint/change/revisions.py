"""Revisions of a Git repository as folders: read from Git's objects, and nothing of them is run."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import IO, cast

from ..errors import ConfigurationError, rule
from ..errors.frozen import dataclass
from ..facts.paths import is_within

REVISION = rule(
    "LLE980",
    "a revision of the repository cannot be read",
    fix="Run in a Git checkout, and name an existing revision, such as origin/main, or a "
    ".yaml file. In a shallow checkout, first run `git fetch --depth=1 origin "
    "REVISION`.",
    source="https://git-scm.com/docs/gitrevisions",
)
CHECKED_OUT = rule(
    "LLE998",
    "a checkout of the commit would have other bytes of a file than Git has",
    fix="In .gitattributes, take working-tree-encoding, filter, ident and eol=crlf from the "
    "settings and from the files that they name.",
    source="https://git-scm.com/docs/gitattributes",
)
_CREDENTIALS = re.compile(r"://[^/@\s]*@")
_SETTINGS = (
    *("--no-replace-objects", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false", "-c", f"core.attributesFile={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),
)
_OF_GIT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # stronger than what any configuration allows
    "LC_ALL": "C",
}
_PART = 1 << 20  # bytes read at once
_MOST_BYTES = 1 << 30  # of all files that the settings of a revision name
_MOST_FILES = 1_000_000  # in a revision
_MOST_LISTED = 1 << 27  # bytes of the paths of its files
_MOST_IN_PATH = 4096  # bytes: Linux opens no longer one
_MOST_DEEP = 200  # folders, one in another: Python reads and deletes them by recursion
_ATTRIBUTES = ".gitattributes"
_REWRITING = ("working-tree-encoding", "filter", "ident", "eol")  # attributes
_NO_NAME = re.compile(r"(?:^|/)(?:\.{0,2}|\.git)(?:/|$)", re.IGNORECASE)
_AFTER_SLASH = chr(ord("/") + 1)
_LINK, _MODULE = "120000", "160000"  # modes of a symbolic link, and of another repository's commit


def is_file_name(against: str) -> bool:
    """Whether ``--against`` names a settings file; no revision of Git looks like one.

    A file that happens to be there decides nothing: a pull request could add one that is called
    as the revision.
    """
    return against.endswith((".yaml", ".yml")) or against.startswith(("/", "."))


@dataclass(frozen=True)
class Repository:
    """A checkout."""

    root: Path  # the checkout's folder, without symbolic links

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The checkout that a folder belongs to.

        Git takes a folder with HEAD, refs and objects for a repository too, and does what its
        config says. A checkout can bring such a folder, but nothing that is called .git.

        Raises
        ------
        ConfigurationError
            ``LLE980`` where Git's folder is not the checkout's own .git.
        """
        asked = cls(folder)
        found = Path(asked._git("rev-parse", "--absolute-git-dir"))
        root = Path(asked._git("rev-parse", "--show-toplevel")).resolve()
        if found.resolve() != _named_by(root / ".git"):
            raise REVISION.error(
                got=f"{found}, which Git takes for the repository of {root}",
                allowed=f"{root / '.git'}",
            )
        return cls(root)

    def commits(self, against: str) -> tuple[str, str | None]:
        """The commit before, and the one after; ``None`` where that is the working tree.

        Parameters
        ----------
        against : str
            A revision, for the working tree against it; ``BASE...HEAD`` for HEAD against the commit
            at which it left BASE, as in ``git diff``. In a shallow checkout, which does not know
            that commit, it is BASE. ``BASE..HEAD`` for HEAD against BASE itself.

        Raises
        ------
        ConfigurationError
            ``LLE980``.
        """
        dots = "..." if "..." in against else ".."
        base, of_both, head = against.partition(dots)
        before = self._commit(base or "HEAD")
        if not of_both:
            return before, None
        after = self._commit(head or "HEAD")
        return before if dots == ".." else self._merge_base(before, after), after

    def _merge_base(self, before: str, after: str) -> str:
        """The commit at which one left the other; the former where Git does not know any.

        With several, none of them is what a merge would change: Git merges them too.
        """
        shared = self._run("merge-base", "--all", before, after)
        bases = shared.stdout.split()
        if len(bases) > 1:
            short = ", ".join(base[:10] for base in bases[:3])
            raise REVISION.error(
                got=f"{len(bases)} merge bases of {before[:10]} and {after[:10]}: {short}",
                allowed="one: merge the base branch into yours; or BASE..HEAD, with two dots, "
                "compares HEAD with BASE itself",
            )
        return bases[0] if bases else before

    @contextmanager
    def files_of(self, commit: str) -> Iterator[CommitFiles]:
        """The files of a commit, byte for byte as Git holds them, in a folder of their own.

        No attribute or filter applies, which in a checkout are the other revision's. A file that
        the commit's own would change is refused when it is asked for.
        """
        blobs, links = self._listed(commit)
        paths = sorted([*blobs, *links], key=_as_folder)
        for path, following in pairwise(paths):
            if following.startswith(_as_folder(path)):
                raise REVISION.error(
                    got=f"{commit[:10]}: {path!r} is a folder and a file or link",
                    allowed="each name once",
                )
        with tempfile.TemporaryDirectory(prefix="low-latency-") as made:
            folder = Path(made).resolve() / "files"
            folder.mkdir()
            yield CommitFiles(folder, self, commit, blobs, links, paths)

    def _listed(self, commit: str) -> tuple[dict[str, str], dict[str, str]]:
        """The objects of a commit's files, and the modes of what else it has, by path."""
        blobs: dict[str, str] = {}
        links: dict[str, str] = {}
        listed = 0
        for mode, name, path in self._entries(commit):
            listed += len(path)
            got = f"{commit[:10]}: {path!r}"
            if _NO_NAME.search(path):
                raise REVISION.error(got=got, allowed="names that a checkout would write")
            if path in blobs or path in links:
                raise REVISION.error(got=f"{got} is there twice", allowed="each name once")
            if mode in (_LINK, _MODULE):
                links[path] = mode
            else:
                blobs[path] = name
            if len(blobs) + len(links) > _MOST_FILES:
                raise REVISION.error(
                    got=f"{commit[:10]}: more files", allowed=f"at most {_MOST_FILES:,} files"
                )
            if listed > _MOST_LISTED:
                raise REVISION.error(
                    got=f"{commit[:10]}: the paths of its files are longer together",
                    allowed=f"at most {_MOST_LISTED:,} characters",
                )
        return blobs, links

    def _entries(self, commit: str) -> Iterator[tuple[str, str, str]]:
        """Mode, object and path of each file, link and submodule, while Git goes on listing.

        A tree of few objects can list more files, and longer paths, than fit into memory.
        """
        arguments = ("ls-tree", "-r", "-z", "--full-tree", commit)
        with self.started(*arguments, stderr=subprocess.DEVNULL) as git:
            listing = cast(IO[bytes], git.stdout)
            rest = b""
            while part := listing.read(_PART):
                *lines, rest = (rest + part).split(b"\0")
                for line in [*lines, rest]:
                    if len(line.partition(b"\t")[2]) > _MOST_IN_PATH:
                        raise REVISION.error(
                            got=f"{commit[:10]}: a path of more bytes",
                            allowed=f"at most {_MOST_IN_PATH:,} bytes",
                        )
                for line in lines:
                    facts, _, path = os.fsdecode(line).partition("\t")
                    mode, _, name = facts.split(" ")
                    yield mode, name, path
        if git.returncode:
            raise REVISION.error(
                got=f"{commit[:10]}: Git does not list its files", allowed="a whole repository"
            )

    def _commit(self, revision: str) -> str:
        return self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )

    def _git(
        self,
        *arguments: str,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        index: Path | None = None,
    ) -> str:
        done = self._run(*arguments, stdin=stdin, index=index)
        if done.returncode:
            said = _CREDENTIALS.sub("://", done.stderr.strip()).splitlines()
            raise REVISION.error(
                got=f"git {' '.join(arguments)}: {said[-1] if said else 'no such revision'}",
                allowed="a revision of this repository",
            )
        return done.stdout.removesuffix("\n")

    def attributes_of(
        self, commit: str, paths: Iterable[str], index: Path
    ) -> Iterator[tuple[str, str, str]]:
        """Path, name and value of each attribute that can change bytes, as the commit states it.

        Parameters
        ----------
        commit : str
            Its files are listed in the index, where Git looks for attributes in a checkout.
        paths : Iterable[str]
            Files of the commit.
        index : Path
            A file that is made here.
        """
        self._git("read-tree", commit, index=index)
        with tempfile.TemporaryFile() as names:
            names.write(b"".join(os.fsencode(path) + b"\0" for path in paths))
            names.seek(0)
            asked = ("check-attr", "--cached", "--stdin", "-z", *_REWRITING)
            words = self._git(*asked, stdin=names, index=index).split("\0")[:-1]
        yield from zip(words[::3], words[1::3], words[2::3], strict=True)

    def _run(
        self,
        *arguments: str,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        index: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        with self.started(*arguments, stdin=stdin, index=index) as git:
            out, said = (os.fsdecode(text) for text in git.communicate())
        return subprocess.CompletedProcess(git.args, git.returncode, out, said)

    def started(
        self,
        *arguments: str,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        stderr: int = subprocess.PIPE,
        index: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Git with these arguments, which runs no hook, fetches nothing and asks for no password.

        Objects are those that their hashes name: ``refs/replace`` puts no others in their place.
        One that is missing stays so, as whoever wrote a promisor's configuration chose its command.
        """
        own = {"GIT_INDEX_FILE": str(index)} if index else {}
        try:
            return subprocess.Popen(
                ["git", *_SETTINGS, *arguments],
                cwd=self.root,
                env={**os.environ, **_OF_GIT, **own},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        except (OSError, ValueError) as error:
            raise REVISION.error(got=str(error), allowed="a checkout with Git") from None


@dataclass(frozen=True)
class WorkingTree:
    """The files of a checkout as they are."""

    folder: Path  # without symbolic links

    def matching(self, pattern: str) -> list[str]:
        """The files that a pattern such as ``endpoints/*.yaml`` means, from the folder."""
        paths = [path for path in sorted(self.folder.glob(pattern)) if not path.is_dir()]
        return [str(path.relative_to(self.folder)) for path in paths]

    def holds(self, path: Path) -> bool:
        """Whether a path may be read: links that stay in the repository are followed."""
        return is_within(path, self.folder)


@dataclass(frozen=True)
class CommitFiles:
    """Files of a commit, of which only those come into the folder that are asked for.

    No link is ever made there, so that nothing can be written through one.
    """

    folder: Path  # without symbolic links
    repository: Repository
    commit: str
    blobs: Mapping[str, str]  # the objects of files, by path
    links: Mapping[str, str]  # the modes of symbolic links and submodules, by path
    paths: Sequence[str]  # of both, so that those in a folder come one after another
    written: dict[str, int] = field(default_factory=dict)  # bytes of what is there, by path

    def matching(self, pattern: str) -> list[str]:
        """The files and links that a pattern means, as :meth:`pathlib.Path.glob` reads it."""
        wanted = Path(pattern).parts
        links = [path for path, mode in self.links.items() if mode == _LINK]
        return [path for path in sorted([*self.blobs, *links]) if _matches(path.split("/"), wanted)]

    def holds(self, path: Path) -> bool:
        """Whether a path may be read; if so, what the commit has there is in the folder now.

        No symbolic link or submodule is followed: a path that is one, leads through one, or is a
        folder with one in it may not be read.

        Raises
        ------
        ConfigurationError
            ``LLE980`` where Git does not have what the commit names, or the disk no room for it.
        """
        try:
            return path.is_relative_to(self.folder) and self._hold(path)
        except OSError as error:
            raise self._error(error.strerror or str(error), "files that fit here") from None

    def _hold(self, path: Path) -> bool:
        place: list[str] = []
        for part in path.relative_to(self.folder).parts:
            if part != "..":
                place.append(part)
            elif place:
                place.pop()
            else:
                return False
            name = "/".join(place)
            if name in self.links:
                return False
            if self._below(name):  # for a path that leaves it again
                self._make_folder(self.folder / name)
        return self._bring("/".join(place))

    def _bring(self, name: str) -> bool:
        """Write a file, or all of a folder; no link is in it, or none of it is written."""
        wanted = self._below(name) or [path for path in (name,) if path in self.blobs]
        if any(path in self.links for path in wanted):
            return False
        self._write([path for path in wanted if path not in self.written])
        return True

    def _below(self, name: str) -> Sequence[str]:
        """What lies in a folder; nothing where the name is that of a file, or of nothing."""
        if not name:
            return self.paths
        first = bisect_right(self.paths, _as_folder(name), key=_as_folder)
        end = bisect_left(self.paths, f"{name}{_AFTER_SLASH}", key=_as_folder)
        return self.paths[first:end]

    def _write(self, paths: list[str]) -> None:
        """Read all of them in one go: Git gets the names from a file, and nobody waits for it."""
        if not paths:
            return
        self._check_attributes(paths)
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{self.blobs[path]}\n" for path in paths).encode())
            names.seek(0)
            arguments = ("cat-file", "--batch", "--buffer")
            with self.repository.started(*arguments, stdin=names, stderr=subprocess.DEVNULL) as git:
                contents = cast(IO[bytes], git.stdout)
                left = _MOST_BYTES - sum(self.written.values())
                for path in paths:
                    self._write_one(path, contents, left)
                    left -= self.written[path]

    def _check_attributes(self, paths: list[str]) -> None:
        """Refuse files that a checkout, and so a deployment, has with other bytes."""
        every = [*self.blobs, *self.links]
        if not any(path.rpartition("/")[2] == _ATTRIBUTES for path in every):
            return
        index = self.folder.parent / "index"
        for path, name, value in self.repository.attributes_of(self.commit, paths, index):
            if value in ("unspecified", "unset") or (name, value) == ("eol", "lf"):
                continue
            raise CHECKED_OUT.error(
                got=f"{path}: {name}{'' if value == 'set' else f'={value}'}",
                allowed="no attribute of Git that changes bytes",
            )

    def _write_one(self, path: str, git: IO[bytes], left: int) -> None:
        size = _size(git.readline())
        if size > left:
            raise self._error(
                f"the files that the settings name have more bytes, up to {path!r}",
                f"at most {_MOST_BYTES:,} bytes",
            )
        target = self.folder / path
        if target.relative_to(self.folder).parts != tuple(path.split("/")):
            raise self._error(repr(path), "names that a checkout would write")
        self._make_folder(target.parent)
        with target.open("xb") as file:
            _copy(git, file, size)
        git.read(1)  # the line's end after each object
        self.written[path] = size

    def _make_folder(self, path: Path) -> None:
        depth = len(path.relative_to(self.folder).parts)
        if depth > _MOST_DEEP:
            raise self._error(
                f"a path {depth:,} folders deep", f"at most {_MOST_DEEP} folders, one in another"
            )
        path.mkdir(parents=True, exist_ok=True)

    def _error(self, got: str, allowed: str) -> ConfigurationError:
        return REVISION.error(got=f"{self.commit[:10]}: {got}", allowed=allowed)


Revision = WorkingTree | CommitFiles


def _named_by(path: Path) -> Path:
    """The folder that is a checkout's .git, or that the file of this name in a worktree means."""
    try:
        if path.is_file():
            text = os.fsdecode(path.read_bytes())
            path = path.parent / text.removeprefix("gitdir:").strip()
        return path.resolve()
    except (OSError, ValueError) as error:
        raise REVISION.error(got=f"{path}: {error}", allowed="a checkout's .git") from None


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path's parts are what a pattern's parts mean; ``**`` means any folders.

    Recursion would end in an error where a commit has folders a thousand deep.
    """
    places = _past_any_folders({0}, pattern)  # how much of the pattern may have been read
    for part in parts:
        if not places:
            return False
        after = {place for place in places if place < len(pattern) and pattern[place] == "**"}
        for place in places - after:
            if place < len(pattern) and fnmatchcase(part, pattern[place]):
                after.add(place + 1)
        places = _past_any_folders(after, pattern)
    return len(pattern) in places and pattern[-1] != "**"


def _past_any_folders(places: set[int], pattern: Sequence[str]) -> set[int]:
    """The places, and those after each ``**``, which means no folder too."""
    reached = set(places)
    for place in sorted(places):
        while place < len(pattern) and pattern[place] == "**":
            place += 1
            reached.add(place)
    return reached


def _as_folder(path: str) -> str:
    """The path with the slash by which Git sorts a folder: what lies in it follows at once."""
    return f"{path}/"


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
