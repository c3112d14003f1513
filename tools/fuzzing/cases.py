"""Settings files that come near to right ones, made from the schema and from files that hold.

Every choice is asked of a ``random.Random``, or of Hypothesis in its place, which then finds the
smallest case that fails.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

from low_latency_endpoint.settings import settings_json_schema

ROOT = Path(__file__).parents[2]
SCHEMA = settings_json_schema()
Place = tuple[str | int, ...]

#: Files beside the settings file.
FILES = {
    "model.tar.gz": b"packed",
    "container/Dockerfile": b"FROM scratch\n",
    "container/Other": b"FROM scratch\n",
    "no-dockerfile/readme": b"",
    "payload.json": b"{}",
    "folder.tar.gz/readme": b"",
}

_VALUES: dict[str, Any] = yaml.safe_load(
    (ROOT / "tools" / "fuzzing" / "values.yaml").read_text("utf-8")
)
_LONGEST = "x" * 63
TEXTS: dict[str, list[str]] = _VALUES["texts"]
TEXTS["endpoint_name"].append(_LONGEST)
TEXTS["stack_name"].append("x-" * 64)
KEYS: dict[str, list[str]] = _VALUES["keys"]
KEYS["endpoints"].append(_LONGEST)
#: Values that are wrong nearly everywhere, or at the edge of being right.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10,
    1000,
    10**6,
    10**18,
    0.5,
    1.5,
    1e-9,
    1e300,
    "",
    "a",
    "no",
    "x" * 2000,
    [],
    {},
    [None],
    {"a": 1},
    "${Token[TOKEN.12]}",
    "#{Token[TOKEN.7]}",
    "٢٠٠ms",
    "٣",
    "a\nb",
    "a\x00b",
    "\ud800",
    "a\u2028b",
    "é",
    "s3://b/x",
    "s3://UPPER/x",
    "s3://a..b/x",
    "${AWS::Region}",
    "{{resolve:ssm:x}}",
    "../..",
    "10.0.0.0/255.255.0.0",
    "0.0.0.0/33",
    "use1-az1",
    "us-west-2a",
    "ml.t2.medium",
    "ml.inf1.xlarge",
    "Direct",
    "Serial",
    "concurrency",
    "Tree",
    "CDKMetadata",
    "1e5",
    "010",
    "1:30",
    "200 ms",
    "1.5m",
    "100h",
    "999999999999h",
)


def bases() -> list[Any]:
    """Settings that hold: the shipped files, the documentation's, and one for each kind."""
    return [copy.deepcopy(each) for each in [*_shipped(), *_kinds()]]


def _shipped() -> Iterator[Any]:
    texts = [path.read_text() for path in (ROOT / "endpoint.yaml", *ROOT.glob("examples/*.yaml"))]
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        texts += re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)
    for text in texts:
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(values, dict) and {"client_zones", "endpoints"} <= set(values):
            yield values


def _kinds() -> Iterator[Any]:
    for each in _VALUES["kinds"]:
        yield {
            "client_zones": {"ids": ["use1-az1", "use1-az2"]},
            **{name: value for name, value in each.items() if name != "scorer"},
            "endpoints": {
                "scorer": {
                    "containers": [{"image": {"uri": "registry.example.com/scorer:1"}}],
                    "instance_type": "ml.m5.large",
                    "latency": {"p99": "200ms"},
                    **each.get("scorer", {}),
                }
            },
        }


def settings_values(random: Random) -> Any:
    """A case: settings that hold, with a few changes."""
    values = random.choice(bases())
    for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8))):
        values = _changed(values, random)
    return values


def _changed(values: Any, random: Random) -> Any:
    change: Callable[[Any, Random], Any] = random.choice(
        (_add,) * 8 + (_replace,) * 3 + (_odd, _remove, _repeat, _rename)
    )
    return change(values, random)


def _add(values: Any, random: Random) -> Any:
    """A setting that the schema has and the file has not."""
    groups = [(node, group) for _, node, group in _nodes(values, SCHEMA) if isinstance(node, dict)]
    if not groups:
        return values
    node, group = random.choice(groups)
    missing = [name for name in group.get("properties", ()) if name not in node]
    if missing:
        name = random.choice(missing)
        node[name] = right_value(group["properties"][name], name, random)
    elif "patternProperties" in group or "additionalProperties" in group:
        name = random.choice(("environment", "tags", "endpoints"))
        below: dict[str, Any] = next(iter(group.get("patternProperties", {}).values()), {})
        node[random.choice(KEYS[name])] = right_value(below, name, random)
    return values


def _replace(values: Any, random: Random) -> Any:
    """Another right value in place of one."""
    place, _, group = random.choice(list(_nodes(values, SCHEMA)))
    return _put(values, place, right_value(group, _name(place), random))


def _odd(values: Any, random: Random) -> Any:
    place, node, _ = random.choice(list(_nodes(values, SCHEMA)))
    if isinstance(node, str) and random.random() < 0.4:
        at = random.randint(0, len(node))
        odd = random.choice(("${Token[TOKEN.12]}", "\x00", "\ud800", "٣", "/", " ", "A", "\n", "é"))
        return _put(values, place, node[:at] + odd + node[at:])
    return _put(values, place, copy.deepcopy(random.choice(ODD)))


def _remove(values: Any, random: Random) -> Any:
    place, _, _ = random.choice(list(_nodes(values, SCHEMA)))
    if place:
        parent = _at(values, place[:-1])
        del parent[place[-1]]
    return values


def _repeat(values: Any, random: Random) -> Any:
    """An entry of a list or a mapping once more, or many times."""
    several = [
        node
        for _, node, group in _nodes(values, SCHEMA)
        if node and (isinstance(node, list) or _is_free(node, group))
    ]
    if several:
        node = random.choice(several)
        for number in range(random.choice((1, 1, 2, 14, 40))):
            if isinstance(node, list):
                node.append(copy.deepcopy(random.choice(node)))
            else:
                key = random.choice(list(node))
                node[f"{key}-{number}"] = copy.deepcopy(node[key])
    return values


def _rename(values: Any, random: Random) -> Any:
    mappings = [
        node
        for _, node, group in _nodes(values, SCHEMA)
        if node and (_is_free(node, group) or (isinstance(node, dict) and random.random() < 0.1))
    ]
    if mappings:
        node = random.choice(mappings)
        key = random.choice(list(node))
        name = random.choice(random.choice(list(KEYS.values())))
        node[random.choice((name, f"{key}x", "${Token[TOKEN.3]}", "Network", "a\x00"))] = node.pop(
            key
        )
    return values


def _is_free(node: Any, group: dict[str, Any]) -> bool:
    """Whether it is a mapping whose keys are the user's choice."""
    return isinstance(node, dict) and not group.get("properties")


def right_value(group: dict[str, Any], name: str, random: Random) -> Any:
    """A value that the schema of one setting allows."""
    if "$ref" in group:
        return right_value(SCHEMA["$defs"][group["$ref"].removeprefix("#/$defs/")], name, random)
    for several in ("anyOf", "oneOf"):
        if several in group and "properties" not in group:
            return right_value(random.choice(group[several]), name, random)
    if "enum" in group:
        return random.choice(group["enum"])
    if "properties" in group or "patternProperties" in group:
        return _mapping(group, name, random)
    kind = group.get("type")
    if isinstance(kind, list):
        kind = random.choice(kind)
    if kind == "object":
        return {random.choice(KEYS.get(name, ["a"])): "1"}
    if kind == "array":
        return [
            right_value(group["items"], name, random) for _ in range(random.choice((0, 1, 2, 2, 3)))
        ]
    if kind == "boolean":
        return random.random() < 0.5
    if kind in ("integer", "number"):
        return _number(group, kind, random)
    if kind == "string":
        if r"(?:ms|s|m|h)$" in group.get("pattern", ""):
            return random.choice(_VALUES["durations"])
        return random.choice(TEXTS.get(name, ["a", "B-1", "some text"]))
    return copy.deepcopy(random.choice(({"inputs": "x"}, [1, 2.5], "x", 7, True)))


def _mapping(group: dict[str, Any], name: str, random: Random) -> dict[str, Any]:
    one_of = [each["required"][0] for each in group.get("oneOf", ())]
    wanted = {*group.get("required", ()), *([random.choice(one_of)] if one_of else ())}
    made = {
        key: right_value(below, key, random)
        for key, below in group.get("properties", {}).items()
        if key in wanted or (key not in one_of and random.random() < 0.2)
    }
    for below in group.get("patternProperties", {}).values():
        for _ in range(random.choice((0, 1, 1, 2))):
            made[random.choice(KEYS.get(name, ["a", "b"]))] = right_value(below, name, random)
    return made


def _number(group: dict[str, Any], kind: str, random: Random) -> int | float:
    low, high = group.get("minimum", 0), group.get("maximum", 10**9)
    if kind == "integer":
        near = (low, low + 1, low + 2, 4, 16, 24, 60, 1000, high - 1, high)
        return int(random.choice([each for each in near if low <= each <= high]))
    numbers = (low, low * 1.5, 0.01, 0.5, 1, 1.5, 20, 90, 200, 1000, high / 2, high)
    return random.choice([each for each in numbers if low <= each <= high])


def _nodes(
    values: Any, group: dict[str, Any], place: Place = ()
) -> Iterator[tuple[Place, Any, dict[str, Any]]]:
    """Every value with its place and what the schema says of it."""
    if "$ref" in group:
        group = {**SCHEMA["$defs"][group["$ref"].removeprefix("#/$defs/")]}
    if "oneOf" in group and "properties" not in group and isinstance(values, dict):
        group = next((each for each in group["oneOf"] if "$ref" in each), {})
        yield from _nodes(values, group, place)
        return
    yield place, values, group
    if isinstance(values, dict):
        others: dict[str, Any] = next(iter(group.get("patternProperties", {}).values()), {})
        for key, value in values.items():
            yield from _nodes(value, group.get("properties", {}).get(key, others), (*place, key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _nodes(value, group.get("items", {}), (*place, index))


def _name(place: Place) -> str:
    return next((part for part in reversed(place) if isinstance(part, str)), "")


def _at(values: Any, place: Place) -> Any:
    for part in place:
        values = values[part]
    return values


def _put(values: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    _at(values, place[:-1])[place[-1]] = value
    return values
