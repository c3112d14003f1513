"""What is emulated: docs/local-aws.md says so, no more and no less, and each type has its test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from local_sagemaker import resources
from local_sagemaker.resources.resource_type import REGISTRY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "local-aws.md"


def test_the_table_of_types_equals_the_registry():
    resources.load()
    rows = re.findall(r"^\| `([A-Za-z0-9:]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {
        name: ", ".join(sorted(kind.properties)) if name != _CUSTOM else "all"
        for name, kind in REGISTRY.items()
    }
    assert [name for name, _ in rows] == sorted(REGISTRY)


_CUSTOM = "AWS::CloudFormation::CustomResource"


def test_every_module_of_types_is_loaded():
    folder = Path(resources.__file__).parent
    makers = {path.stem for path in folder.glob("*.py") if "@emulated" in path.read_text()}
    assert makers == set(resources.MODULES)


# Modules that name types without making resources of them.
_NOT_MADE = {Path(__file__).name, "test_refusals.py", "test_schemas.py"}


def test_every_type_is_deployed_by_a_test_of_this_folder():
    """The tests of a type create, change and delete it; here it is only that none is forgotten."""
    resources.load()
    named = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name not in _NOT_MADE:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named.add(node.value)
    assert sorted(set(REGISTRY) - named) == []
