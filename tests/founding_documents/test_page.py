"""The page and the tests agree, and what the page names exists."""

from __future__ import annotations

import re

import pytest
import typer

from low_latency_endpoint.cli.application import app
from low_latency_endpoint.cli.errors import all_codes

from .statements import PAGE, ROOT, Row, named, rows

ROWS, NAMED = rows(), list(named())
TEXT = PAGE.read_text("utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")


def test_each_document_has_its_rows_in_order() -> None:
    documents = list(dict.fromkeys(row.document for row in ROWS))
    assert documents == ["high_latency", "routing_strategies", "privatelink", "load_testing"]
    for document in documents:
        numbers = [row.number for row in ROWS if row.document == document]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_ours], ids=str)
def test_a_row_is_tried_by_a_test(row: Row) -> None:
    assert (row.document, row.number) in {(document, number) for document, number, _ in NAMED}


def test_each_test_quotes_the_row_that_it_names() -> None:
    of = {(row.document, row.number): row for row in ROWS}
    for document, number, words in NAMED:
        assert words in of[document, number].statement, (document, number)
        assert of[document, number].is_ours, (document, number)


@pytest.mark.parametrize("verdict", ["Not ours: ", "Changed: "])
def test_a_verdict_has_a_reason(verdict: str) -> None:
    reasons = [row.here.partition(verdict)[2] for row in ROWS if verdict.strip() in row.here]
    assert reasons
    assert min(len(reason.split()) for reason in reasons) >= 5


def test_findings_and_checks_exist() -> None:
    assert {*re.findall(r"LL[A-Z]\d{3}", TEXT)} <= {known.code for known in all_codes()}


def test_commands_and_their_options_exist() -> None:
    for line in re.findall(r"`low-latency ([^`]+)`", TEXT):
        name, *words = line.split()
        options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, line


def test_settings_exist() -> None:
    headed = re.findall(r"^## `(.+?)`$(.*?)(?=^## |\Z)", SETTINGS, re.MULTILINE | re.DOTALL)
    known = {
        f"{heading}.{key}"
        for heading, section in headed
        for key in re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    }
    for path in re.findall(r"`([a-z_]+(?:\[\])?(?:\.[a-z_]+)+)`", TEXT):
        assert path == "endpoint.yaml" or any(f".{key}".endswith(f".{path}") for key in known)


def test_links_lead_to_pages_and_headings() -> None:
    for path, anchor in re.findall(r"\]\((?!https:)([^)#]*)(#[^)]*)?\)", TEXT):
        target = (PAGE.parent / path).resolve() if path else PAGE
        assert target.is_file(), path
        headings = re.findall(r"^#+ (.+)", target.read_text("utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}
        assert anchor.removeprefix("#") in {*slugs, ""}, path + anchor


def test_it_is_in_the_menu_and_the_index() -> None:
    for file in ("mkdocs.yml", "docs/index.md"):
        assert "explanation/aws-documents.md" in (ROOT / file).read_text("utf-8")
