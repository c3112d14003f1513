"""What is installed is pinned with hashes, and the files name no registry."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release import pins
from release.pins import DEPLOY, DEVELOPMENT, IMAGE, ROOT, pins_of

FILES = (DEPLOY, DEVELOPMENT, IMAGE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_package_has_one_version_and_hashes(file):
    found = pins_of(file.read_text(encoding="utf-8"))
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
    deploy, development = (
        pins_of(file.read_text(encoding="utf-8")) for file in (DEPLOY, DEVELOPMENT)
    )
    for name, pin in deploy.items():
        assert str(pin.requirement.specifier) == str(development[name].requirement.specifier)
        assert pin.hashes == development[name].hashes


def test_what_pyproject_asks_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    asked = [*project["project"]["dependencies"], *groups["deploy"]]
    deploy = pins_of(DEPLOY.read_text(encoding="utf-8"))
    assert {canonicalize_name(Requirement(line).name) for line in asked} <= set(deploy)
    asked += [line for line in groups["dev"] if isinstance(line, str)]
    development = pins_of(DEVELOPMENT.read_text(encoding="utf-8"))
    assert {canonicalize_name(Requirement(line).name) for line in asked} <= set(development)


def test_the_images_packages_take_the_versions_of_the_other_tools(tmp_path, monkeypatch):
    image, tools = tmp_path / "image.txt", tmp_path / "tools.txt"
    old, new = "0" * 64, "1" * 64
    image.write_text(f"# Head.\nsix==1.0 \\\n    --hash=sha256:{old}\n", encoding="utf-8")
    tools.write_text(
        f"attrs==2.0 \\\n    --hash=sha256:{old}\nsix==1.1 \\\n    --hash=sha256:{new}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(pins, "IMAGE", image)
    monkeypatch.setattr(pins, "DEVELOPMENT", tools)
    pins.write_image_pins()
    assert image.read_text(encoding="utf-8") == (f"# Head.\nsix==1.1 \\\n    --hash=sha256:{new}\n")
