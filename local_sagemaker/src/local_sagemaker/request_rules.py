"""What AWS's API references refuse of a structure that its model in botocore allows.

`request_rules.yaml` has it by the name of the structure's shape.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from .schemas import Check

Rule = dict[str, Any]

RULES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text("utf-8")
)
_CHECK = Check({}, judges_functions=True)


def problems_of_shape(name: str, value: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a structure of a shape, and the code of the refusal if a rule has one."""
    if name not in RULES:
        return
    stated = {member: item for member, item in value.items() if item is not None}
    for problem in _CHECK.problems(RULES[name], stated, where):
        yield problem, ""
    for rule in broken_rules(name, stated):
        yield f"{rule['at']}: {rule['says']}", rule.get("code", "")


def problems_of_document(name: str, text: str, where: str) -> Iterator[tuple[str, str]]:
    """Likewise of a text that is a document in JSON; of one that is none the service tells."""
    if name not in RULES or not _is_json(text):
        return
    document = json.loads(text)
    if isinstance(document, dict):
        yield from problems_of_shape(name, document, where)
    else:
        yield f"{where} is no JSON object", ""


def broken_rules(name: str, value: Mapping[str, Any]) -> Iterator[Rule]:
    """The rules of a shape that a structure breaks."""
    for rule in RULES.get(name, {}).get("rules", ()):
        if any(_is_broken(rule, part) for part in values_at(value, rule.get("of", ""))):
            yield rule


def _is_broken(rule: Rule, request: dict[str, Any]) -> bool:
    """Whether a request breaks a rule; a request that the rule is not about does not."""
    for path, values in rule.get("when", {}).items():
        stated = list(values_at(request, path)) or [None]
        is_meant = stated != [None] if values is True else any(one in values for one in stated)
        if not is_meant:
            return False
    stated = list(values_at(request, rule["at"]))
    if not stated:
        return "required" in rule
    if "once" in rule and len(stated) > 1:
        return True
    if "differ" in rule and len({str(value).lower() for value in stated}) < len(stated):
        return True
    if not all(_is_there(request, path) for path in rule.get("with", ())):
        return True
    if any(_is_there(request, path) for path in rule.get("without", ())):
        return True
    bounds = [(_HOLDS[name], rule[name]) for name in _HOLDS.keys() & rule.keys()]
    return not all(holds(value, bound) for holds, bound in bounds for value in stated)


def _is_there(request: dict[str, Any], path: str) -> bool:
    return any(True for _ in values_at(request, path))


def values_at(value: Any, path: str) -> Iterator[Any]:
    """The values at a dotted path, where null is absent.

    `*` is every item, `@` every key, and `a|b` both of these members.
    """
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
        names = first.split("|") if isinstance(value, dict) else []
        items = [value.get(name) for name in names]
    for item in items:
        yield from values_at(item, rest)


def _number(value: Any) -> float:
    """A number, also one that is written as text; not a number for all else, which keeps no bound."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _size(value: Any) -> int:
    """How many bytes a value has; a map has those of its keys and values."""
    if isinstance(value, dict):
        return sum(_size(key) + _size(item) for key, item in value.items())
    if isinstance(value, bytes):
        return len(value)
    return len((value if isinstance(value, str) else json.dumps(value)).encode())


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "least": lambda value, bound: _number(value) >= bound,
    "most": lambda value, bound: _number(value) <= bound,
    "count": lambda value, bound: len(value) <= bound,
    "bytes": lambda value, bound: _size(value) <= bound,
    "matches": lambda value, pattern: re.fullmatch(pattern, str(value), re.DOTALL) is not None,
    "never": lambda value, pattern: re.search(pattern, str(value)) is None,
    "one_of": lambda value, allowed: value in allowed,
    "json": lambda value, _: _is_json(value),
}
"""What a rule may say of every value at its path."""
