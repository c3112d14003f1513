"""What ``make site`` publishes: pages, pictures and styles, nothing that Python left there."""

from __future__ import annotations

import py_compile
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import material
from mkdocs.config import load_config
from mkdocs.structure.files import get_files, set_exclusions

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "docs" / "site_pages.py"


def test_the_site_has_only_what_a_reader_opens():
    py_compile.compile(str(HOOK))  # as the hook's import does
    config = load_config(str(ROOT / "mkdocs.yml"))
    files = get_files(config)
    set_exclusions(files, config)
    kinds = {Path(each.src_uri).suffix for each in files if not each.inclusion.is_excluded()}
    assert kinds == {".md", ".svg", ".css", ".js"}


def test_the_search_works_from_a_folder_and_asks_no_other_server():
    assert "material/offline" in load_config(str(ROOT / "mkdocs.yml"))["plugins"]
    hook = runpy.run_path(str(HOOK))
    page = SimpleNamespace(file=SimpleNamespace(dest_uri="reference/errors.html"))
    html = hook["on_post_page"](f'<script src="{hook["_SHIM"]}">', page, None)
    assert html == '<script src="../iframe-worker.js">'
    theme = Path(material.__file__).parent
    assert hook["_SHIM"] in (theme / "plugins" / "offline" / "plugin.py").read_text("utf-8")


def test_guides_stand_before_what_is_looked_up():
    ranks = runpy.run_path(str(HOOK))["_RANKS"]
    guides = min(rank for start, rank in ranks.items() if start in ("how-to/", "tutorial/"))
    assert all(rank < 1 < guides for start, rank in ranks.items() if start.startswith("reference/"))
    for start in ranks:
        inside = start.removeprefix("repository/")
        assert (ROOT / inside if inside != start else ROOT / "docs" / start).exists(), start


def test_decisions_stand_in_the_contributors_part_of_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    users, _, contributors = menu.partition("  - Contributing:\n")
    assert "decisions/" not in users
    listed = set(re.findall(r"decisions/[\w.-]+", contributors))
    assert listed == {f"decisions/{each.name}" for each in (ROOT / "docs/decisions").glob("*.md")}
