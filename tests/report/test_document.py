"""A document in each back end: none leaves out a kind of part, and a list of passing checks is a list."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from rich.console import Console

from low_latency_endpoint.operate.checking.checks import Report, Result, Status
from low_latency_endpoint.operate.checking.document import document
from low_latency_endpoint.report.charts import Chart, Line, Panel
from low_latency_endpoint.report.document import (
    Code,
    Document,
    Entry,
    Evidence,
    Finding,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
)
from low_latency_endpoint.report.markdown import as_markdown
from low_latency_endpoint.report.pages import page
from low_latency_endpoint.report.tables import Table
from low_latency_endpoint.report.terminal import drawn

SAID = "seen"
FINDING = Finding(
    "title", "id", "bad", [Row("found", SAID)], [Row("measured", SAID)], "https://a.b"
)
PARTS: dict[type, Any] = {
    str: SAID,
    Sentence: Sentence(SAID, "soft"),
    Listed: Listed([SAID, Row("word", SAID, link=True), Row("word", SAID, code=True)]),
    Entry: Entry("PASS", "good", SAID, [SAID]),
    Code: Code([(SAID, "why")]),
    Table: Table(["head"], [[SAID]]),
    Chart: Chart("a", [Panel("p", [Line("l", [0.0], [1.0], "blue", sketch=SAID)])], step=1.0),
    Finding: FINDING,
    Evidence: Section("", [FINDING, Evidence()]),
    Section: Section(SAID, [SAID]),
}


def in_terminal(shown: Document) -> str:
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        for part in drawn(shown):
            console.print(part)
    return captured.get()


@pytest.mark.parametrize("kind", get_args(Part), ids=lambda kind: kind.__name__)
def test_each_back_end_draws_each_kind_of_part(kind: type) -> None:
    shown = Document("subject", [PARTS[kind]])
    for text in (in_terminal(shown), as_markdown(shown), page(shown)):
        assert SAID in text or (kind is Chart and '<figure id="chart-a"' in text)


def test_equal_findings_have_numbers_of_their_own() -> None:
    twice = Document("subject", [Section("Findings", [FINDING, Finding(**vars(FINDING))])])
    for text in (in_terminal(twice), as_markdown(twice)):
        assert "1. title" in text
        assert "2. title" in text


def test_what_passes_is_a_list_without_gaps() -> None:
    def result(id: str, status: Status) -> Result:
        return Result(id=id, title="t", status=status, subject="", evidence="e", fix="", source="s")

    results = (result("A", Status.WARN), result("B", Status.PASS), result("C", Status.PASS))
    lines = in_terminal(document(Report("x", "1", "r", results))).splitlines()
    at = lines.index("PASS    B t")
    assert lines[at - 1 : at + 2] == ["", "PASS    B t", "PASS    C t"]
