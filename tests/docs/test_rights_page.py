"""The page of what runs in an account is in step with the default stack's template."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.make_rights_page import default_rights_tables
from docs.make_settings_tables import rewrite

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rights-in-your-account.md"


@pytest.fixture(scope="module")
def tables() -> str:
    return default_rights_tables()


def test_the_page_is_in_step(tables: str, tmp_path: Path) -> None:
    copy = tmp_path / PAGE.name
    copy.write_bytes(PAGE.read_bytes())
    rewrite(copy, tables)
    assert copy.read_text("utf-8") == PAGE.read_text("utf-8"), "run: make docs"


def test_the_page_keeps_its_word(tables: str) -> None:
    """No right over roles; a function's role stands below, and each link leads to its heading."""
    assert "`iam:" not in tables
    headings = [
        "".join(filter(str.isalnum, title.lower()))
        for title in re.findall(r"^### (.*)$", tables, re.M)
    ]
    links = re.findall(r"\]\(#(\w+)\)", tables)
    assert len(links) > 3
    assert set(links) <= set(headings)
    assert len(headings) == len(set(headings)), "two roles of one heading"
