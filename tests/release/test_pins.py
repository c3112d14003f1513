"""What is installed is pinned with hashes, and the files name no registry."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.pinned import DEPLOY, DEVELOPMENT, IMAGE, ROOT, pins_of

FILES = (DEPLOY, DEVELOPMENT, IMAGE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_package_has_one_version_and_hashes(file):
    found = pins_of(file)
    assert found
    for name, pin in found.items():
        (version,) = pin.requirement.specifier
        assert version.operator == "==", name
        assert pin.hashes, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_stands_there_that_pip_refuses_beside_hashes(file):
    """Nor a registry's address: which one it is, is the affair of the machine."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("-")] == []
    assert [line for line in lines if "://" in line] == []


def test_both_sets_agree():
    development = pins_of(DEVELOPMENT)
    for name, pin in pins_of(DEPLOY).items():
        assert str(pin.requirement.specifier) == str(development[name].requirement.specifier)
        assert pin.hashes == development[name].hashes


def test_what_pyproject_asks_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    asked = [*project["project"]["dependencies"], *groups["deploy"]]
    assert {canonicalize_name(Requirement(line).name) for line in asked} <= set(pins_of(DEPLOY))
    asked += [line for line in groups["dev"] if isinstance(line, str)]
    names = {canonicalize_name(Requirement(line).name) for line in asked}
    assert names <= set(pins_of(DEVELOPMENT))
