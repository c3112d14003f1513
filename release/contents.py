"""What a wheel and a source distribution have to hold, and metadata that PyPI takes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

from packaging.metadata import Metadata

from .repository import ROOT, Project, Refused, git


def check_contents(project: Project, folder: Path, commit: str) -> list[str]:
    """Hold the files of one distribution against its commit.

    Parameters
    ----------
    folder
        Has one wheel and one source distribution.

    Returns
    -------
    list
        What holds, as lines to print.

    Raises
    ------
    Refused
        With everything that does not hold.
    """
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    problems = [
        *_wheel_problems(project, files, commit),
        *_source_problems(project, source, commit),
        *_metadata_problems(project, files),
    ]
    if problems:
        raise Refused("\n".join(f"{wheel.name}: {problem}" for problem in problems))
    return [
        f"{wheel.name}: {len(files)} files, all of the commit, nothing else; metadata is valid",
        f"{source.name}: its package is the commit's",
    ]


def _package_files(project: Project, commit: str) -> dict[str, str]:
    """The package's files in the commit, by their paths below the package's parent."""
    prefix = f"{project.folder}/{project.package}".removeprefix("./")
    parent = prefix.rpartition("/")[0]
    listed = git("ls-tree", "-r", "--name-only", commit, "--", prefix, at=ROOT).splitlines()
    return {name.removeprefix(f"{parent}/"): name for name in listed}


def _wheel_problems(project: Project, files: dict[str, bytes], commit: str) -> Iterator[str]:
    expected = set(_package_files(project, commit))
    found = {name for name in files if ".dist-info/" not in name}
    yield from (f"{name} is missing" for name in sorted(expected - found))
    yield from (f"{name} is not of the package" for name in sorted(found - expected))
    if not any(name.endswith("/py.typed") for name in found):
        yield "py.typed is missing: its types would not be used"
    if not any("/licenses/LICENSE" in name for name in files):
        yield "the licence is missing"
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    for name, digest, _size in csv.reader(io.StringIO(files[record].decode())):
        if name == record:
            continue
        actual = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode()
        if digest != f"sha256={actual.rstrip('=')}":
            yield f"RECORD has another hash of {name}"


def _source_problems(project: Project, source: Path, commit: str) -> Iterator[str]:
    with tarfile.open(source) as archive:
        top = source.name.removesuffix(".tar.gz")
        names = {member.name.removeprefix(f"{top}/") for member in archive if member.isfile()}
    parent = project.package.rpartition("/")[0]
    expected = {f"{parent}/{name}" for name in _package_files(project, commit)}
    expected |= {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
    yield from (f"{source.name} lacks {name}" for name in sorted(expected - names))
    yield from (f"{source.name} has {name}" for name in sorted(names) if name.startswith("tests/"))


def _metadata_problems(project: Project, files: dict[str, bytes]) -> Iterator[str]:
    (name,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    try:
        metadata = Metadata.from_email(files[name], validate=True)
    except ExceptionGroup as group:
        yield from (f"metadata: {error}" for error in group.exceptions)
        return
    message = message_from_bytes(files[name])
    if metadata.name != project.name:
        yield f"metadata: the name is {metadata.name}"
    if message["Description-Content-Type"] != "text/markdown":
        yield "metadata: PyPI would not show the README as Markdown"
    for field in ("License-Expression", "Requires-Python", "Summary"):
        if not message[field]:
            yield f"metadata: no {field}"
