"""Who imports whom, and what an import must not load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Imports a package and every module below it, then says which top-level modules are loaded.
IMPORT_ALL = """
import importlib, json, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""

FAKE_NODE = """#!/bin/sh
: > "$0.was-started"
exit 1
"""


def _loaded(program: str, *arguments: str, node: Path | None = None) -> set[str]:
    environment = dict(os.environ)
    if node is not None:
        environment.update(PATH=str(node.parent), JSII_NODE=str(node))
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", ["low_latency_endpoint.plan", "low_latency_endpoint.operate"])
def test_planning_and_operations_start_no_node(package: str, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text(FAKE_NODE, encoding="utf-8")
    node.chmod(0o755)
    loaded = _loaded(IMPORT_ALL, package, node=node)
    assert not loaded & {"aws_cdk", "jsii", "constructs"}
    assert not Path(f"{node}.was-started").exists()


def test_the_fake_node_would_have_been_noticed(tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text(FAKE_NODE, encoding="utf-8")
    node.chmod(0o755)
    subprocess.run(
        [sys.executable, "-c", "import aws_cdk"],
        env={**os.environ, "PATH": str(tmp_path), "JSII_NODE": str(node)},
        capture_output=True,
    )
    assert Path(f"{node}.was-started").exists()


def test_planning_loads_no_aws_library() -> None:
    loaded = _loaded(IMPORT_ALL, "low_latency_endpoint.plan")
    assert not loaded & {"boto3", "botocore", "moto", "pydantic", "typer", "rich"}


def test_the_constructs_load_nothing_of_the_extras() -> None:
    program = """
import json, sys
import low_latency_endpoint
for name in low_latency_endpoint.__all__:
    getattr(low_latency_endpoint, name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
    loaded = _loaded(program)
    assert "aws_cdk" in loaded
    assert not loaded & {"moto", "flask", "boto3", "botocore", "locust", "ruamel", "typer"}


def test_the_import_rules_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
