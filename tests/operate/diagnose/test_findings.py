"""What findings promise: ids, sources, and keys, commands and pages that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.cli.application import COMMANDS
from low_latency_endpoint.operate.diagnose import findings as causes
from low_latency_endpoint.operate.diagnose.findings import KINDS

from .test_faults import SCHEMA, endpoint_schema, has_key

_PACKAGE = Path(causes.__file__).parent
_DOCS = Path(__file__).parents[3]
#: The commands that answer what a diagnosis asks next.
_ANSWERS = {
    "compare-routing",
    "load-test",
    "optimize",
    "preflight",
    "prices",
    "recommend",
    "verify",
}


@pytest.mark.parametrize("made", list(KINDS.values()), ids=lambda made: made.id)
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


@pytest.mark.parametrize("kind", list(KINDS.values()), ids=lambda kind: kind.id)
def test_advice_of_no_case_has_what_is_known_without_one(kind: Any) -> None:
    """`low-latency errors` shows it: each setting, and nothing that a case would fill in."""
    assert not re.search(r"\{\w+\}", kind.advice)
    for change in kind.changes:
        assert change.key in kind.advice
    if not re.search(r"\{\w+\}", kind.besides):
        assert kind.besides in kind.advice


def test_advice_names_what_to_resume() -> None:
    assert "DynamicScalingOutSuspended=false" in KINDS["LLD106"].advice
    assert "endpoint/ENDPOINT/variant/VARIANT" in KINDS["LLD106"].advice


def test_an_id_is_taken_once() -> None:
    """YAML itself would take the last of two."""
    text = (Path(causes.__file__).parent / "causes.yaml").read_text("utf-8")
    ids = re.findall(r"^  (LLD\d{3}):$", text, re.MULTILINE)
    assert ids == sorted(set(ids)) == list(causes.KINDS)


def _texts(id: str) -> str:
    kind = KINDS[id]
    return " ".join([kind.besides, *(change.why for change in kind.changes)])


def test_the_commands_named_are_there_and_those_that_answer_are_named() -> None:
    sources = [*_PACKAGE.rglob("*.py"), _PACKAGE / "causes.yaml"]
    text = " ".join(source.read_text("utf-8") for source in sources)
    named = set(re.findall(r"`low-latency\s+([a-z-]+)", text))
    assert named <= set(COMMANDS)
    assert named >= _ANSWERS


@pytest.mark.parametrize("id", KINDS)
def test_the_settings_of_each_row_are_there(id: str) -> None:
    for change in KINDS[id].changes:
        root = SCHEMA if "stack-level" in change.why else endpoint_schema()
        assert change.command or has_key(change.key, root), change.key
    for key in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", _texts(id)):
        assert has_key(key, endpoint_schema()) or has_key(key, SCHEMA), key
    for name in re.findall(r"`([a-z_]+)`", _texts(id)):
        assert f"'{name}': " in str(SCHEMA), name


@pytest.mark.parametrize("id", KINDS)
def test_the_pages_of_each_row_are_there(id: str) -> None:
    for page, heading in re.findall(r'(docs/[\w/.-]+\.md), "([^"]+)"', _texts(id)):
        assert f"## {heading}\n" in (_DOCS / page).read_text("utf-8")


@pytest.mark.parametrize("id", KINDS)
def test_who_changes_the_routing_is_told_how_to_measure_it(id: str) -> None:
    if "least_outstanding_requests" in {change.value for change in KINDS[id].changes}:
        assert "low-latency compare-routing" in _texts(id)
