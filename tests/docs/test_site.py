"""What ``make site`` publishes: pages, pictures and styles, nothing that Python left there."""

from __future__ import annotations

import dataclasses
import py_compile
import runpy
from pathlib import Path

import griffe
from mkdocs.config import load_config
from mkdocs.structure.files import get_files, set_exclusions

import low_latency_endpoint

ROOT = Path(__file__).parents[2]


def test_the_site_has_only_what_a_reader_opens():
    py_compile.compile(str(ROOT / "docs" / "site_pages.py"))  # as the hook's import does
    config = load_config(str(ROOT / "mkdocs.yml"))
    files = get_files(config)
    set_exclusions(files, config)
    kinds = {Path(each.src_uri).suffix for each in files if not each.inclusion.is_excluded()}
    assert kinds == {".md", ".svg", ".css", ".js"}


def test_every_public_name_has_a_place_on_a_page_of_the_menu():
    pages = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))["_constructs"]()
    menu = (ROOT / "mkdocs.yml").read_text()
    shown = [
        line for text in pages.values() for line in text.splitlines() if line.startswith(":::")
    ]
    assert {each.rpartition(".")[2] for each in shown} == set(low_latency_endpoint.__all__)
    assert [uri for uri in pages if uri not in menu] == []


def test_a_group_of_options_shows_each_of_its_fields():
    extension = runpy.run_path(str(ROOT / "docs" / "frozen_dataclasses.py"))["FrozenDataclasses"]
    package = griffe.load(
        "low_latency_endpoint",
        search_paths=[str(ROOT / "constructs")],
        extensions=griffe.load_extensions(extension),
    )
    groups = {
        name: [field.name for field in dataclasses.fields(made) if field.init]
        for name in low_latency_endpoint.__all__
        if dataclasses.is_dataclass(made := getattr(low_latency_endpoint, name))
    }
    assert len(groups) > 20
    for name, fields in groups.items():
        path = f"{low_latency_endpoint._MODULE_OF[name]}.{name}"
        shown = {each.name for each in package[path].parameters} - {"self"}
        assert shown == set(fields), name
