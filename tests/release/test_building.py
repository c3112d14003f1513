"""What `make` builds of a commit: the same bytes each time, with metadata that PyPI takes; notes."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import zipfile
from datetime import date
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("cdk-low-latency-endpoint", "local-sagemaker", "low-latency-client")
FOLDERS = (ROOT, ROOT / "client", ROOT / "local_sagemaker")


def made(folder: Path, umask: int, **environment: str) -> dict[str, bytes]:
    subprocess.run(
        ["make", "--silent", "distributions", f"OUT={folder}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        umask=umask,
        check=True,
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("*/*")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("dist")
    return folder, made(folder, 0o022, TZ="UTC", PYTHONHASHSEED="1")


@pytest.fixture
def dist(built: tuple[Path, dict[str, bytes]]) -> Path:
    return built[0]


@pytest.mark.nightly
def test_two_builds_are_the_same_bytes(built, tmp_path):
    _, first = built
    assert len(first) == 6
    assert made(tmp_path / "again", 0o077, TZ="Asia/Kolkata", PYTHONHASHSEED="2") == first


@pytest.mark.parametrize("name", NAMES)
def test_pypi_takes_the_metadata_and_shows_the_readme(dist, name):
    (wheel,) = (dist / name).glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (path,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(archive.read(path), validate=True)
    assert metadata.name == name
    assert metadata.description_content_type == "text/markdown"
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.requires_python
    assert metadata.summary


@pytest.mark.parametrize("name", NAMES)
def test_a_source_distribution_has_what_the_wheel_is_built_from_and_no_tests(dist, name):
    """The wheel is built from it, and has the whole package: see the tests of the wheels."""
    (source,) = (dist / name).glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive}
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
    assert not [each for each in names if each.startswith("tests/")]


@pytest.mark.parametrize("folder", FOLDERS[1:], ids=lambda folder: folder.name)
def test_every_distribution_has_the_same_licence(folder):
    """A file in each: a link out of the folder would lead nowhere in its sdist."""
    theirs = folder / "LICENSE"
    assert not theirs.is_symlink()
    assert theirs.read_bytes() == (ROOT / "LICENSE").read_bytes()


CHANGELOG = """# Changelog

## Unreleased

### Fixed

- A crash.

## 0.2.0 - 2026-12-24

### Changed

- A name.
"""


def notes(folder: Path, *tag: str, of: str = ".") -> subprocess.CompletedProcess[str]:
    (folder / of).mkdir(exist_ok=True)
    (folder / of / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    command = [
        "make",
        "--silent",
        "--no-print-directory",
        "-f",
        ROOT / "Makefile",
        "release-notes",
        *tag,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_notes_are_the_changelogs_section(tmp_path):
    assert notes(tmp_path, "TAG=v0.2.0").stdout.strip() == "### Changed\n\n- A name."
    assert notes(tmp_path).stdout.strip() == "### Fixed\n\n- A crash."
    refused = notes(tmp_path, "TAG=v0.3.0")
    assert refused.returncode != 0
    assert "says nothing below '## 0.3.0'" in refused.stderr


@pytest.mark.parametrize(
    ("tag", "folder"),
    [("low-latency-client-v0.2.0", "client"), ("local-sagemaker-v0.2.0", "local_sagemaker")],
)
def test_the_tag_of_a_distribution_takes_the_notes_of_its_changelog(tmp_path, tag, folder):
    done = notes(tmp_path, f"TAG={tag}", of=folder)
    assert (done.stdout.strip(), done.stderr) == ("### Changed\n\n- A name.", "")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_changelog_is_in_the_form_of_keep_a_changelog(folder):
    """https://keepachangelog.com/en/1.1.0/: versions with their days, the newest first."""
    text = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert headings
    assert "Unreleased" not in headings[1:]
    released = [heading.split(" - ") for heading in headings if heading != "Unreleased"]
    versions = [(Version(version), date.fromisoformat(day)) for version, day in released]
    assert versions == sorted(set(versions), reverse=True)
    for section in re.split(r"(?m)^## ", text)[1:]:
        kinds = re.findall(r"(?m)^### (.*)$", section)
        assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        assert len(kinds) == len(set(kinds)), section.partition("\n")[0]
