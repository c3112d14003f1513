"""What findings promise: ids, sources, and keys that the settings file has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.findings import kind, kinds

from .faults import FAULTS, Fault

_SCHEMA = json.loads((Path(__file__).parents[3] / "endpoint.schema.json").read_text("utf-8"))


def _has(key: str, schema: Any) -> bool:
    """Whether the settings file's schema has this path of keys, ``[]`` being any item."""
    schema = _resolved(schema)
    if not key:
        return True
    first, _, rest = key.partition(".")
    name = first.removesuffix("[]")
    for each in _alternatives(schema):
        inside = each.get("properties", {}).get(name)
        if inside is None:
            continue
        if first.endswith("[]"):
            items = [a["items"] for a in _alternatives(_resolved(inside)) if "items" in a]
            if any(_has(rest, item) for item in items):
                return True
        elif _has(rest, inside):
            return True
    return False


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = _SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def _alternatives(schema: Any) -> list[Any]:
    schema = _resolved(schema)
    found = [schema]
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found += _alternatives(each)
    return found


def _endpoint() -> Any:
    endpoints = _resolved(_SCHEMA["properties"]["endpoints"])
    return endpoints.get("additionalProperties") or next(
        iter(endpoints["patternProperties"].values())
    )


def test_the_check_of_keys_can_fail() -> None:
    assert _has("instances.max", _endpoint())
    assert _has("containers[].image", _endpoint())
    assert not _has("instances.most", _endpoint())
    assert not _has("containers[].picture", _endpoint())


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_changes_name_keys_of_the_settings_file(fault: Fault) -> None:
    for finding in fault.diagnosed.findings:
        assert finding.changes or finding.besides, "something to do"
        assert finding.evidence
        assert finding.path
        for change in finding.changes:
            root = _SCHEMA if "stack-level" in change.why else _endpoint()
            assert _has(change.key, root), change.key


@pytest.mark.parametrize("made", list(kinds()), ids=lambda made: made.id)
def test_a_kind_of_finding_is_complete(made: Any) -> None:
    assert re.fullmatch(r"LLD[1-8]\d\d", made.id)
    assert made.source.startswith(
        (
            "https://docs.aws.amazon.com/",
            "https://repost.aws/",
            "https://aws.amazon.com/blogs/",
            "https://docs.vllm.ai/",
        )
    )
    assert not made.title.endswith(".")


def test_an_id_is_taken_once() -> None:
    with pytest.raises(ValueError, match="LLD102 is already registered"):
        kind("LLD102", "again", "", "")
