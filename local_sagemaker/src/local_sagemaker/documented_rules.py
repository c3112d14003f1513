"""What AWS's API references refuse of the requests that moto answers, before moto sees them.

Every request is held against botocore's model of its operation (members, enums, lengths, patterns),
and against `documented_rules.yaml`, which has what only sentences of the references say.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from .permissions.requests import Call
from .protocols import ServiceError, check

Rule = dict[str, Any]


def check_documented(call: Call) -> None:
    """Raise the refusal of a request that AWS's documentation excludes."""
    codes = _document()["codes"].get(call.service, {})
    try:
        check(call.service, call.operation, call.request)
    except ServiceError as error:
        code = codes.get("model", "ValidationException")
        raise ServiceError(error.message, code) from None
    for rule in broken_rules(call.service, call.operation, call.request):
        code = rule.get("code") or codes.get("rules", "ValidationException")
        raise ServiceError(f"{rule['at']}: {rule['says']}", code)


def broken_rules(service: str, operation: str, request: dict[str, Any]) -> Iterator[Rule]:
    """The rules of an operation that a request breaks."""
    for rule in documented_rules().get(service, {}).get(operation, ()):
        if _is_broken(rule, request):
            yield rule


@functools.cache
def documented_rules() -> dict[str, dict[str, list[Rule]]]:
    """The rules of each operation, by its service."""
    rules: dict[str, dict[str, list[Rule]]] = {}
    for service, stated in _document()["rules"].items():
        operations = rules.setdefault(service, {})
        for names, of_names in stated.items():
            for name in names.split():
                operations.setdefault(name, []).extend(of_names)
    return rules


@functools.cache
def _document() -> dict[str, Any]:
    file = Path(__file__).with_suffix(".yaml")
    document: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return document


def _is_broken(rule: Rule, request: dict[str, Any]) -> bool:
    """Whether a request breaks a rule; a request that the rule is not about does not."""
    for path, values in rule.get("when", {}).items():
        stated = list(values_at(request, path)) or [None]
        if not any(value in values for value in stated):
            return False
    stated = list(values_at(request, rule["at"]))
    if not stated:
        return "required" in rule
    if not all(_is_there(request, path) for path in rule.get("with", ())):
        return True
    if any(_is_there(request, path) for path in rule.get("without", ())):
        return True
    bounds = [(_HOLDS[name], rule[name]) for name in _HOLDS.keys() & rule.keys()]
    return not all(holds(value, bound) for holds, bound in bounds for value in stated)


def _is_there(request: dict[str, Any], path: str) -> bool:
    return any(True for _ in values_at(request, path))


def values_at(value: Any, path: str) -> Iterator[Any]:
    """The values at a dotted path; `*` is every item, `@` every key, and what is null is absent."""
    first, _, rest = path.partition(".")
    if value is None or (path and not isinstance(value, (dict, list))):
        return
    if not path:
        yield value
        return
    if first == "*":
        items = list(value.values()) if isinstance(value, dict) else value
    elif first == "@":
        items = list(value)
    else:
        items = [value.get(first)] if isinstance(value, dict) else []
    for item in items:
        yield from values_at(item, rest)


def _size(value: Any) -> int:
    """How many bytes a value has; a map has those of its keys and values."""
    if isinstance(value, dict):
        return sum(_size(key) + _size(item) for key, item in value.items())
    if isinstance(value, bytes):
        return len(value)
    return len((value if isinstance(value, str) else json.dumps(value)).encode())


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "least": lambda value, bound: float(value) >= bound,
    "most": lambda value, bound: float(value) <= bound,
    "count": lambda value, bound: len(value) <= bound,
    "bytes": lambda value, bound: _size(value) <= bound,
    "matches": lambda value, pattern: re.fullmatch(pattern, str(value), re.DOTALL) is not None,
    "never": lambda value, pattern: re.search(pattern, str(value)) is None,
    "one_of": lambda value, allowed: value in allowed,
}
"""What a rule may say of every value at its path."""
