"""The page of the four AWS documents as data: its rows, and the tests that name them.

A test says which statement it tries: ``@pytest.mark.says(17, "An overused endpoint might cause")``,
with the row's number in its document and words of the row. The name of its file begins with the
document's: ``test_high_latency.py`` for the heading "High latency".
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "aws-documents.md"
_ROW = re.compile(r"\| (\d+) \| (.+?) \| (.+) \|")


@dataclass(frozen=True)
class Row:
    """One statement: what the document says, and what answers it here."""

    document: str
    number: int
    statement: str
    here: str

    def __str__(self) -> str:
        return f"{self.document}-{self.number}"

    @property
    def is_ours(self) -> bool:
        """Whether a test has to try it."""
        return not self.here.startswith("Not ours:")


def rows() -> list[Row]:
    """All rows of the page; a heading above them names their document."""
    table, document = [], ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            document = line.removeprefix("## ").lower().replace(" ", "_")
        if row := _ROW.fullmatch(line):
            table.append(Row(document, int(row[1]), row[2].strip("`"), row[3]))
    return table


def named() -> Iterator[tuple[str, int, str]]:
    """Document, number and words of each statement that a test names."""
    for document in {row.document for row in rows()}:
        for path in Path(__file__).parent.glob(f"test_{document}*.py"):
            module = importlib.import_module(f"tests.founding_documents.{path.stem}")
            for mark in _marks(module):
                yield (document, *mark.args)


def _marks(module: ModuleType) -> Iterator[Any]:
    """The marks of a module's tests, and those of their parameters."""
    for name, value in vars(module).items():
        marks = getattr(value, "pytestmark", []) if name.startswith("test_") else []
        cases = [case for mark in marks if mark.name == "parametrize" for case in mark.args[1]]
        of_cases = [mark for case in cases for mark in getattr(case, "marks", ())]
        yield from (mark for mark in (*marks, *of_cases) if mark.name == "says")
