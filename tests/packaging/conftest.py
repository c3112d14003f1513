"""The wheel, built once, and a Python that has it and nothing of this checkout."""

from __future__ import annotations

import email
import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.pinned import required

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def their_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a virtual environment with the wheel and its dependencies, nothing else.

    Downloading half a gigabyte of CDK again would take most of a minute, so the dependencies are
    links into the environment that runs the tests: those that the wheel's metadata asks for, and
    what these ask for in turn. One that the wheel does not declare is missing there and the test
    fails. A ``.pth`` line adds the folder of links to the path but follows no ``.pth`` file in it:
    the editable install of this checkout stays out of sight.
    """
    folder = tmp_path_factory.mktemp("theirs")
    environment, links = folder / "venv", folder / "dependencies"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",  # what is imported is compiled then
        "--disable-pip-version-check",
        "--quiet",
        wheel,
    )
    links.mkdir()
    for distribution in required(requirements_of(wheel)).values():
        link(distribution, links)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{links}\n", encoding="utf-8")
    return python


def requirements_of(wheel: Path) -> list[str]:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])


def link(distribution: importlib.metadata.Distribution, links: Path) -> None:
    site_packages = Path(str(distribution.locate_file("")))
    for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
        if not (links / top).exists() and top != "__pycache__":
            (links / top).symlink_to(site_packages / top)


def run(*command: object, cwd: Path | None = None, **more: str) -> str:
    """What a command prints that ends well."""
    # Nothing of this checkout may reach the command through the environment.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=kept | more, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
