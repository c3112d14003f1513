"""Whoever judges by what an endpoint has knows that an update may be changing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import low_latency_endpoint

_ROOT = Path(low_latency_endpoint.__file__).parent
_READS = {"describe_endpoint", "read_endpoint", "existing_endpoint"}
_READERS = "account/endpoints.py"

#: Functions that read an endpoint and do not ask for its update, and why they need not.
APART = {
    "account/deployed_endpoints.py:meant_endpoint": "asks whether a name is an endpoint's",
    "account/deployed_endpoints.py:meant_stack": "asks whose the endpoint is",
    "account/deployed_endpoints.py:_listed": "gives the description on; ListedEndpoint.update asks",
    "account/drift.py:configuration_drifts": "compares nothing unless the endpoint is InService",
    "cli/canary_adoption.py:_overhead": "takes medians of a week, of which an update is minutes",
    "operate/preflight/update_checks.py:_current": "gives the description on; LLP602 judges it",
    "operate/preflight/update_checks.py:_busy": "waits as long as the endpoint is being changed",
    "operate/verify/context.py:VerifiedEndpoint.read": "gives the description on; LLV401 judges it",
    "operate/verify/fleet_checks.py:_described": "asks what serves, by configuration_drifts",
    "load_test/compare/sides.py:read_sides": "read_fleet asks before, and check_one_fleet refuses",
    "synthesis/custom_resource_functions/check_endpoint.py:settled": "waits until nothing is updated",
}


def _functions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Functions of a module with the names of their classes; the inner ones within them."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            yield from ((f"{node.name}.{each.name}", each) for each in methods)


def _reads(function: ast.AST) -> bool:
    """Whether a function reads an endpoint: by name, by method, or by the operation's name."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in _READS:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "describe_endpoint":
            return True
        if isinstance(node, ast.Constant) and node.value == "describe_endpoint":
            return True
    return False


def _asks(function: ast.AST) -> bool:
    """Whether it reads ``.update``, and not a mapping's method of that name."""
    called = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    attributes = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    return any(node.attr == "update" and id(node) not in called for node in attributes)


def _passes_on(function: ast.AST) -> bool:
    """Whether it gives the endpoint to a function that asks."""
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = {node.id for node in calls if isinstance(node, ast.Name)}
    names |= {node.attr for node in calls if isinstance(node, ast.Attribute)}
    return bool(names & {"_update", "check_one_fleet", "settled"})


def _readers() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(_ROOT.rglob("*.py")):
        name = path.relative_to(_ROOT).as_posix()
        for function, node in _functions(path) if name != _READERS else ():
            if _reads(node):
                yield f"{name}:{function}", node


_FOUND = dict(_readers())


def test_the_search_finds_readers() -> None:
    assert "operate/diagnose/reading.py:diagnose" in _FOUND
    assert "load_test/search/serving.py:read_fleet" in _FOUND
    assert APART.keys() <= _FOUND.keys(), "no reason for what reads nothing"


@pytest.mark.parametrize("name", sorted(_FOUND))
def test_each_reader_asks_for_the_update_or_says_why_not(name: str) -> None:
    asks = _asks(_FOUND[name]) or _passes_on(_FOUND[name])
    assert asks or name in APART, f"{name} judges by an endpoint: does an update matter to it?"
