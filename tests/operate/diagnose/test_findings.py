"""What findings promise: ids, sources, and keys that the settings file has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import findings as causes
from low_latency_endpoint.operate.diagnose.findings import kinds

from .faults import FAULTS, Fault

_SCHEMA = json.loads((Path(__file__).parents[3] / "endpoint.schema.json").read_text("utf-8"))


def _said(schema: Any, word: str) -> list[Any]:
    """What a schema, or any of its alternatives, says under a word."""
    while "$ref" in schema:
        schema = _SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    others = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return [
        *([schema[word]] if word in schema else ()),
        *(x for o in others for x in _said(o, word)),
    ]


def _has(key: str, schema: Any) -> bool:
    """Whether the settings file's schema has this path of keys, ``[]`` being any item."""
    groups = [schema]
    for part in key.split("."):
        name = part.removesuffix("[]")
        found = [each for group in groups for each in _said(group, "properties")]
        groups = [each[name] for each in found if name in each]
        if part.endswith("[]"):
            groups = [each for group in groups for each in _said(group, "items")]
    return bool(groups)


def _endpoint() -> Any:
    (endpoints,) = _said(_SCHEMA["properties"]["endpoints"], "patternProperties")
    return next(iter(endpoints.values()))


def test_the_check_of_keys_can_fail() -> None:
    assert _has("instances.max", _endpoint())
    assert _has("containers[].image", _endpoint())
    assert not _has("instances.most", _endpoint())
    assert not _has("containers[].picture", _endpoint())


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_changes_name_keys_of_the_settings_file(fault: Fault) -> None:
    for finding in fault.diagnosed.findings:
        assert finding.changes or finding.besides, "something to do"
        said = " ".join([finding.besides, *(f"{each.text} {each.why}" for each in finding.changes)])
        assert not re.search(r"\{[a-z_]+\}", said), "each name in braces is filled"
        assert finding.evidence
        assert finding.path
        for change in finding.changes:
            root = _SCHEMA if "stack-level" in change.why else _endpoint()
            assert change.command or _has(change.key, root), change.key


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
    """YAML itself would take the last of two."""
    text = (Path(causes.__file__).parent / "causes.yaml").read_text("utf-8")
    ids = re.findall(r"^  (LLD\d{3}):$", text, re.MULTILINE)
    assert ids == sorted(set(ids)) == list(causes.KINDS)
