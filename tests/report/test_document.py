"""A document in each back end: none leaves out a kind of part, and a list of passing checks is a list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from low_latency_endpoint.operate.checking.checks import Report, Result, Status
from low_latency_endpoint.operate.checking.document import document
from low_latency_endpoint.report.charts import Chart, Line, Panel
from low_latency_endpoint.report.document import (
    Cell,
    Code,
    Document,
    Entry,
    EvidencePart,
    FindingPart,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from low_latency_endpoint.report.markdown import MOST_CHARACTERS, as_markdown
from low_latency_endpoint.report.pages import page
from low_latency_endpoint.report.terminal import drawn
from tests.browser import needs_chromium, opened

SAID = "seen"
FINDING = FindingPart(
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
    FindingPart: FINDING,
    EvidencePart: Section("", [FINDING, EvidencePart()]),
    Section: Section(SAID, [SAID]),
}
FURTHER: dict[str, Part] = {
    "aligned": Listed([Row("word", SAID, tone="bad")], aligned=True),
    "stacked": Table(["a", "b"], [["", Cell("AWS", link=f"https://{SAID}.example")]], stacked=True),
    "folded": Section("title", [SAID], folded=True),
}


@needs_chromium
@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_every_part_is_accessible_on_a_phone_and_a_desktop_in_light_and_dark(
    width: int, dark: bool, tmp_path: Path
) -> None:
    """Each inside a folded section that somebody has opened, too."""
    tones = [Sentence(SAID, tone) for tone in get_args(Tone)]
    cells = Table([*"abcdefg"], [[Cell(SAID, tone) for tone in get_args(Tone)]])
    told = [*PARTS.values(), *FURTHER.values(), *tones, cells]
    sections = [Section("found", [FINDING]), Section("folded", told, folded=True)]
    file = tmp_path / "page.html"
    file.write_text(page(Document("made", [*tones, cells, *sections], verdict=SAID)), "utf-8")
    opening = "document.querySelectorAll('details').forEach(each => each.open = true);"
    seen = opened(file, tmp_path, width, opening, dark=dark)
    assert (seen.errors, seen.inaccessible, seen.overflow) == ([], [], 0)


def in_terminal(shown: Document) -> str:
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        for part in drawn(shown):
            console.print(part)
    return captured.get()


@pytest.mark.parametrize("part", FURTHER.values(), ids=FURTHER)
def test_each_back_end_draws_each_form_of_a_part(part: Part) -> None:
    shown = Document("subject", [part])
    terminal, markdown, html = in_terminal(shown), as_markdown(shown), page(shown)
    assert all(SAID in text for text in (terminal, markdown, html))
    links = isinstance(part, Table)
    assert (f"[AWS](https://{SAID}.example)" in markdown) == links
    assert (f'<a href="https://{SAID}.example">AWS</a>' in html) == links
    folded = isinstance(part, Section)
    assert [text.count("<details") for text in (markdown, html)] == [folded, folded]
    assert [text.count("</details>") for text in (markdown, html)] == [folded, folded]


def test_words_of_aligned_lines_have_a_column() -> None:
    lines = in_terminal(Document("", [Listed([Row("a", "b " * 50)], aligned=True)])).splitlines()
    assert {line.index("b") for line in lines} == {13}
    assert all(len(line) <= 80 for line in lines)


def test_a_comment_is_cut_between_lines_and_says_so() -> None:
    table = Table(["a"], [["x" * 100]] * 1000)
    text = as_markdown(Document("", [Section("t", [table], folded=True), "end"]))
    assert len(text) <= MOST_CHARACTERS
    assert text.count("<details") == text.count("</details>") == 1
    [missing] = map(int, re.findall(r"(\d+) of \d+ lines are missing", text))
    assert 0 <= missing - (1000 - text.count("| xxx")) < 5  # and what stood below the table


@pytest.mark.parametrize("foreign", ["@", "x", "\u202e", "a b ", "`@`", "<"])
def test_the_verdict_stays_whatever_is_cut(foreign: str) -> None:
    long = foreign * 20_000
    parts = [Sentence("The check fails."), Listed([Row("mistakes", long)] * 20)]
    shown = Document(f"plan {long}", parts, f"under {long}", f"Mistakes in {long}", "bad")
    text = as_markdown(shown)
    assert len(text) <= MOST_CHARACTERS
    for said in ("**plan ", ": under ", "**:x: Mistakes in ", "The check fails", "Cut to what"):
        assert said in text


@pytest.mark.parametrize("kind", get_args(Part), ids=lambda kind: kind.__name__)
def test_each_back_end_draws_each_kind_of_part(kind: type) -> None:
    shown = Document("subject", [PARTS[kind]])
    for text in (in_terminal(shown), as_markdown(shown), page(shown)):
        assert SAID in text or (kind is Chart and '<figure id="chart-a"' in text)


def test_equal_findings_have_numbers_of_their_own() -> None:
    twice = Document("subject", [Section("Findings", [FINDING, FindingPart(**vars(FINDING))])])
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
