"""Both distributions built twice from a commit: the files have to be the same, byte for byte.

The two builds have nothing in common but the commit: another clone at another path, other file
times and file modes, another time zone and another order of Python's hashes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .repository import PROJECTS, Refused, clone, git

SUMS = "SHA256SUMS"


@dataclass(frozen=True)
class Surroundings:
    """What a build must not depend on.

    Parameters
    ----------
    folder
        Where the clone lies, below a temporary folder.
    umask
        Which bits the modes of new files lack.
    file_time
        When all files were changed, as seconds since 1970.
    time_zone
        The machine's time zone.
    hash_seed
        Python's order of sets.
    """

    folder: str
    umask: int
    file_time: int
    time_zone: str
    hash_seed: str


FIRST = Surroundings("first", 0o022, 1_000_000_000, "UTC", "1")
SECOND = Surroundings("second/deeper", 0o077, 1_700_000_000, "Asia/Kolkata", "2")


def build(commit: str, target: Path, surroundings: Surroundings = FIRST) -> dict[str, str]:
    """Build wheels and source distributions of a commit.

    Parameters
    ----------
    target
        Gets a folder for each distribution.

    Returns
    -------
    dict
        The SHA-256 of each file, by its path in ``target``.
    """
    time = git("show", "--no-patch", "--format=%ct", f"{commit}^{{commit}}")
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": time,
        "TZ": surroundings.time_zone,
        "PYTHONHASHSEED": surroundings.hash_seed,
    }
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        checkout = Path(folder) / surroundings.folder
        checkout.parent.mkdir(exist_ok=True)
        clone(commit, checkout)
        for path in checkout.rglob("*"):
            if ".git" not in path.parts and path.is_file():
                path.chmod((0o777 if path.stat().st_mode & 0o100 else 0o666) & ~surroundings.umask)
                os.utime(path, (surroundings.file_time, surroundings.file_time))
        for project in PROJECTS:
            output = (target / project.name).resolve()
            done = subprocess.run(
                [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output), "."],
                cwd=checkout / project.folder,
                env=environment,
                umask=surroundings.umask,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise Refused(f"{project.name} does not build:\n{done.stdout}\n{done.stderr}")
    return sums_of(target)


def sums_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of each distribution file below a folder."""
    files = sorted([*folder.glob("*/*.whl"), *folder.glob("*/*.tar.gz")])
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def build_twice(commit: str, target: Path) -> dict[str, str]:
    """Build a commit twice and keep the first build, with its ``SHA256SUMS``.

    Raises
    ------
    Refused
        When a file differs between the builds.
    """
    for old in [target / SUMS, *(target / name for name in sums_of(target))]:
        old.unlink(missing_ok=True)
    first = build(commit, target, FIRST)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        second = build(commit, Path(folder), SECOND)
    differing = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if differing:
        raise Refused(f"two builds of {commit} differ: {', '.join(differing)}")
    lines = [f"{digest}  {name}\n" for name, digest in first.items()]
    (target / SUMS).write_text("".join(lines), encoding="utf-8")
    return first
