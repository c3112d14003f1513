"""The wheel holds the package, its data and types, and installs command, plugin and license."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import local_sagemaker

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, PROJECT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    assert built.name == f"local_sagemaker-{local_sagemaker.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(built)


def test_it_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    source = PROJECT / "src" / "local_sagemaker"
    expected = {
        f"local_sagemaker/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == expected
    assert {
        "local_sagemaker/py.typed",
        "local_sagemaker/resources/table.yaml",
        "local_sagemaker/schemas/resource_types.json",
        "local_sagemaker/lambda_modules/cfnresponse.py",
    } <= names


def test_it_installs_the_command_the_plugin_and_the_license(wheel: zipfile.ZipFile) -> None:
    texts = {
        name.partition(".dist-info/")[2]: wheel.read(name).decode()
        for name in wheel.namelist()
        if ".dist-info/" in name
    }
    assert "local-sagemaker = local_sagemaker.cli:main" in texts["entry_points.txt"]
    assert (
        "local_sagemaker.pytest_plugin = local_sagemaker.pytest_plugin" in texts["entry_points.txt"]
    )
    assert "Apache License" in texts["licenses/LICENSE"]
    assert "License-Expression: Apache-2.0" in texts["METADATA"]
    assert "low_latency" not in "".join(
        line for line in texts["METADATA"].splitlines() if line.startswith("Requires-Dist")
    )
