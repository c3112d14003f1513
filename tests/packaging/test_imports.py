"""Who imports whom, and what an import must not load."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import run

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


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A Node.js that only leaves a trace."""
    path = tmp_path / "node"
    path.write_text(FAKE_NODE, encoding="utf-8")
    path.chmod(0o755)
    return path


def _loaded(program: str, *arguments: str, **environment: str) -> set[str]:
    return set(json.loads(run(sys.executable, "-c", program, *arguments, **environment)))


@pytest.mark.parametrize("room", ["facts", "options", "plan", "operate"])
def test_planning_and_operations_start_no_node(room: str, node: Path) -> None:
    package = f"low_latency_endpoint.{room}"
    loaded = _loaded(IMPORT_ALL, package, PATH=str(node.parent), JSII_NODE=str(node))
    assert not loaded & {"aws_cdk", "jsii", "constructs"}
    assert not Path(f"{node}.was-started").exists()


def test_the_fake_node_would_have_been_noticed(node: Path) -> None:
    environment = {**os.environ, "PATH": str(node.parent), "JSII_NODE": str(node)}
    subprocess.run([sys.executable, "-c", "import aws_cdk"], env=environment, capture_output=True)
    assert Path(f"{node}.was-started").exists()


@pytest.mark.parametrize("room", ["facts", "options", "plan"])
def test_planning_loads_no_aws_library(room: str) -> None:
    loaded = _loaded(IMPORT_ALL, f"low_latency_endpoint.{room}")
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
    run(Path(sys.executable).parent / "lint-imports", "--no-cache", cwd=ROOT)


LISTED = """
import importlib, json, pkgutil
listed = {}
for root in ("low_latency_endpoint", "local_sagemaker"):
    package = importlib.import_module(root)
    inner = pkgutil.iter_modules(package.__path__, root + ".")
    for name in [root, *(module.name for module in inner if module.ispkg)]:
        module = importlib.import_module(name)  # an attribute of its package from now on
        if "__getattr__" in vars(module):
            listed[name] = module
print(json.dumps({name: module.__dir__() for name, module in listed.items()}))
"""


def test_what_is_imported_on_first_use_is_listed_alone_and_once() -> None:
    """`dir()` of each package that does so: what its users import, whatever has been imported."""
    listed = json.loads(run(sys.executable, "-c", LISTED))
    assert {"low_latency_endpoint", "low_latency_endpoint.simulate", "local_sagemaker"} <= {*listed}
    for package, names in listed.items():
        stub = ast.parse(Path(importlib.import_module(package).__file__ or "").read_text("utf-8"))
        stated = [
            alias.asname or alias.name
            for block in ast.walk(stub)
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for line in block.body
            if isinstance(line, ast.ImportFrom) and line.level
            for alias in line.names
        ]
        own = {"main"} if package.endswith(".cli") else set()
        assert sorted(names) == sorted({*stated} | own), package
