"""Paths that settings name: within the repository, and within the folder that another path names."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from ..errors import rule

OUTSIDE = rule(
    "LLE983",
    "the settings name a file outside of the repository or of its folder, or a symbolic link or "
    "submodule of a commit",
    fix="Name a file inside the repository, not through a symbolic link or a submodule, and a "
    "Dockerfile by its path below its folder.",
)


def check_below(file: str, where: str = "") -> None:
    """Raise unless a path stays in the folder from which it is taken, by its text alone."""
    names = (PurePosixPath(file), PureWindowsPath(file))
    if any(name.anchor or ".." in name.parts for name in names):
        raise OUTSIDE.error(got=file, allowed="a path below the folder, without ..", where=where)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, its symbolic links followed, is in a folder, and not in Git's own files."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # links that go round in circles
        return False
    return target.is_relative_to(folder) and ".git" not in target.relative_to(folder).parts
