"""Paths that settings name: within the repository, and within the folder that another path names."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

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
