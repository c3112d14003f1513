"""Wheels as files: their metadata, and their packages where Python finds them."""

from __future__ import annotations

import zipfile
from pathlib import Path


def metadata_of(wheel: Path) -> bytes:
    """The text of a wheel's ``METADATA``."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name)


def unpack(wheel: Path, folder: Path) -> Path:
    """Lay a wheel's packages into a folder for ``PYTHONPATH``; ours have no compiled parts."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder
