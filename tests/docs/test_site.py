"""What ``make site`` publishes: pages, pictures and styles, nothing that Python left there."""

from __future__ import annotations

import py_compile
from pathlib import Path

from mkdocs.config import load_config
from mkdocs.structure.files import get_files, set_exclusions

ROOT = Path(__file__).parents[2]


def test_the_site_has_only_what_a_reader_opens():
    py_compile.compile(str(ROOT / "docs" / "site_pages.py"))  # as the hook's import does
    config = load_config(str(ROOT / "mkdocs.yml"))
    files = get_files(config)
    set_exclusions(files, config)
    kinds = {Path(each.src_uri).suffix for each in files if not each.inclusion.is_excluded()}
    assert kinds == {".md", ".svg", ".css", ".js"}
