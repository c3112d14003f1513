"""Python of README and docs: it parses, imports what is there, and passes arguments that exist.

test_python_runs.py runs them; this is quick, and reads generated pages too.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import low_latency_endpoint

from .console_blocks import PAGES, ROOT

OURS = ("low_latency_endpoint", "low_latency_client")
#: Importing Locust patches the process that does (tests/conftest.py).
NEED_LOCUST = ("SageMakerUser",)
BLOCKS = [
    pytest.param(page, block, id=f"{page.relative_to(ROOT).as_posix()}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^ *```python[^\n]*\n(.*?)^ *```", page.read_text("utf-8"), re.S | re.M), 1
    )
]


def _names(tree: ast.AST) -> dict[str, Any]:
    """What the block's names are: those that it imports from us, else the library's public ones."""
    found = {name: getattr(low_latency_endpoint, name) for name in low_latency_endpoint.__all__}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            module = importlib.import_module(node.module or "")
            for each in node.names:
                if each.name in NEED_LOCUST:
                    assert each.name in Path(module.__file__ or "").read_text("utf-8")
                elif each.name != "*":
                    found[each.asname or each.name] = getattr(module, each.name)
    return found


def _called(function: ast.expr, names: dict[str, Any]) -> Any:
    """The function or class of ours that a call means; None for others."""
    if isinstance(function, ast.Name):
        return names.get(function.id)
    if isinstance(function, ast.Attribute):
        owner = _called(function.value, names)
        return getattr(owner, function.attr) if inspect.isclass(owner) else None
    return None


def _wrong_keywords(tree: ast.AST) -> Iterator[str]:
    names = _names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not (meant := _called(node.func, names)):
            continue
        parameters = inspect.signature(meant).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            continue
        known = {each.name for each in parameters}
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in known:
                yield f"{ast.unparse(node.func)} takes no {keyword.arg}"


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_names_and_arguments_are_there(page: Path, block: str) -> None:
    # A call that leaves arguments out says so with `...`, which Python takes in front alone.
    code = re.sub(r",\s*\.\.\.(?=[,)])", "", textwrap.dedent(block))
    assert list(_wrong_keywords(ast.parse(code))) == []


def test_pages_have_python_and_mistakes_are_found() -> None:
    assert len(BLOCKS) > 40
    wrong = "LatencyTarget(p99=1, p42=2); EndpointOptions(endpoint_name='a')"
    assert list(_wrong_keywords(ast.parse(wrong))) == ["LatencyTarget takes no p42"]


def _variants(text: str) -> Iterator[ast.Call]:
    """The production variants that a sample makes, but for those whose arguments are elided."""
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ProductionVariant"
        if named and not any(_is_elided(value) for value in node.args):
            yield node


def _is_elided(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is ...


def _docstring_samples() -> Iterator[Any]:
    """The examples in the docstrings of the library."""
    for path in sorted((ROOT / "constructs").rglob("*.py")):
        text = path.read_text("utf-8")
        nodes = ast.walk(ast.parse(text)) if "ProductionVariant(" in text else ()
        documented = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        docstrings = [ast.get_docstring(node) or "" for node in documented]
        for example in doctest.DocTestParser().get_examples("\n\n".join(docstrings)):
            yield pytest.param(example.source, id=f"{path.stem}-{example.lineno}")


SAMPLES = [
    *(pytest.param(each.values[1], id=each.id) for each in BLOCKS),
    *(
        pytest.param(path.read_text("utf-8"), id=path.name)
        for path in sorted((ROOT / "examples").glob("*.py"))
    ),
    *_docstring_samples(),
]


@pytest.mark.parametrize(
    "sample", [each for each in SAMPLES if "ProductionVariant(" in each.values[0]]
)
def test_a_variant_of_a_sample_states_its_routing(sample: str) -> None:
    """Without it SageMaker routes at random, which is not what this library's pages advise."""
    for variant in _variants(sample):
        assert "routing" in [keyword.arg for keyword in variant.keywords], ast.unparse(variant)
