"""The fenced blocks of every page that users read, by their language."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from .console_blocks import PAGES, ROOT

#: With those of the local AWS, which is a project of its own.
ALL_PAGES = [
    *PAGES,
    ROOT / "local_sagemaker" / "README.md",
    *sorted((ROOT / "local_sagemaker" / "docs").rglob("*.md")),
]
_FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    """Path below the repository."""
    number: int
    """Among the page's blocks of its language, from 1."""
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def blocks(*languages: str) -> Iterator[Block]:
    """The blocks in one of these languages, page by page."""
    for path in ALL_PAGES:
        page = path.relative_to(ROOT).as_posix()
        count = 0
        for _, language, text in _FENCE.findall(path.read_text("utf-8")):
            if language in languages:
                count += 1
                yield Block(page, count, language, textwrap.dedent(text))


def parameters(*languages: str) -> list[object]:
    """The same as parameters of a test, with readable names."""
    return [pytest.param(block, id=str(block)) for block in blocks(*languages)]
