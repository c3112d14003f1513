"""docs/images/pull-request-comment.svg shows the beginning of the comment that its page has as Markdown.

``UPDATE_DOCS=1 pytest <this file>`` renews it, after the page.
"""

from __future__ import annotations

import os
from html import unescape
from itertools import groupby
from pathlib import Path

from low_latency_endpoint.report.document import Cell, Document, Listed, Part, Sentence, Table, Tone
from tests.pictures import picture, texts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "pull-request-check.md"
PICTURE = ROOT / "docs" / "images" / "pull-request-comment.svg"
ICONS = {":x:": "✖", ":large_orange_diamond:": "◆", ":white_check_mark:": "✔"}
END = "**sentiment: the stack**"  # the resources, which the page has


def test_the_picture_shows_the_comment() -> None:
    markdown = PAGE.read_text("utf-8").partition("```markdown\n")[2].partition(END)[0]
    drawn = picture(_document(markdown))
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.write_text(drawn, "utf-8")
    shown = texts(PICTURE.read_text("utf-8"))
    assert shown == texts(drawn), f"run: UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"
    assert "endpoint.yaml" in shown


def _document(markdown: str) -> Document:
    """A comment's Markdown as GitHub lays it out: tables, lists and paragraphs."""
    subject, *lines = [_words(line) for line in markdown.splitlines() if line]
    parts: list[Part] = []
    for kind, group in groupby(lines, lambda line: line[0] if line[0] in "|-" else ""):
        block = [*group]
        if kind == "|":
            heads, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in block)
            parts.append(Table(heads, [[_cell(cell) for cell in row] for row in rows], align="l"))
        elif kind == "-":
            parts.append(Listed([line.removeprefix("- ") for line in block]))
        else:
            parts += [Sentence(line.replace("**", ""), _tone(line)) for line in block]
    return Document(subject.replace("**", ""), parts)


def _cell(text: str) -> Cell:
    return Cell(text, "careful" if ICONS[":large_orange_diamond:"] in text else "")


def _tone(line: str) -> Tone:
    if ICONS[":x:"] in line:
        return "bad"
    return "strong" if line.startswith("**") else ""


def _words(line: str) -> str:
    for name, icon in ICONS.items():
        line = line.replace(name, icon)
    return unescape(line)
