"""The reference of commands and Python names: as the code has it, whole, and each thing once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module

import pytest
from docs.make_reference_pages import MODULES, _of_owner, outdated, reference_pages
from docs.public_api import Package
from docs.reference_markdown import Page

import low_latency_endpoint
from low_latency_endpoint.cli.application import app

from .console_blocks import ROOT

REFERENCE = ROOT / "docs" / "reference"
INDEX = "reference/constructs/index.md"
#: A description that is another's: "As for X", "See X.".
_ELSEWHERE = re.compile(r"^(?:Required\. )?(?:As (?:for|in|of)|See) \S+[.;]?$")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages()


def test_the_pages_are_those_of_the_code(pages: dict[str, str]) -> None:
    assert outdated(pages) == [], "run: make docs"


def test_every_public_name_is_in_the_index_and_on_a_page(pages: dict[str, str]) -> None:
    linked = dict(re.findall(r"^\| \[`(\w+)`\]\(([^)]+)\) \|", pages[INDEX], re.MULTILINE))
    assert set(linked) == set(low_latency_endpoint.__all__)
    for name, target in linked.items():
        file = target.partition("#")[0]
        assert re.search(rf"^##? {name}$", pages[f"reference/constructs/{file}"], re.MULTILINE)


@pytest.mark.parametrize("file", MODULES)
def test_every_public_name_of_a_module_is_on_its_page(file: str, pages: dict[str, str]) -> None:
    headings = re.findall(r"^## (\w+)$", pages[f"reference/{file}.md"], re.MULTILINE)
    module = import_module(MODULES[file][0])
    assert sorted(headings) == sorted(name for name in dir(module) if name[0] != "_")


def test_every_command_is_on_the_page(pages: dict[str, str]) -> None:
    import typer

    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for name in group.commands:
        assert f"## low-latency {name}\n" in pages["reference/commands.md"]


def _rows(text: str) -> Iterator[list[str]]:
    for table in re.findall(r"^\| (?:Argument|Attribute) .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        for line in table.splitlines():
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_argument_has_a_type_and_a_description_of_its_own(pages: dict[str, str]) -> None:
    rows = [(path, row) for path, text in pages.items() for row in _rows(text)]
    assert len(rows) > 1000
    assert [(path, row) for path, row in rows if len(row) != 3 or not row[2]] == []
    assert [(path, row) for path, row in rows if _ELSEWHERE.match(row[2])] == []


def test_an_optional_argument_says_what_happens_without_it(pages: dict[str, str]) -> None:
    for path, text in pages.items():
        for table in re.findall(r"^\| Argument .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE):
            for line in table.splitlines():
                name, _, said = (cell.strip() for cell in line.strip("|").split("|"))
                known = name in ("`scope`", "`id`") or name.startswith("`*")
                assert known or re.search(r"^Required\.|default", said, re.IGNORECASE), (path, line)


def test_no_paragraph_stands_twice_on_a_page(pages: dict[str, str]) -> None:
    for path, text in pages.items():
        prose = re.sub(r"^```.*?^```|^\|.*$|^<.*$|^Raises .*$", "", text, flags=re.M | re.S)
        paragraphs = [" ".join(part.split()) for part in prose.split("\n\n")]
        counted = Counter(part for part in paragraphs if len(part.split()) > 6)
        assert [part for part, times in counted.items() if times > 1] == [], path


def test_no_mark_of_sphinx_is_left(pages: dict[str, str]) -> None:
    for path, text in pages.items():
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r":(?:class|meth|func|attr|mod):|``|`_|^>>>|^-{4}", prose, re.M), path


def test_links_lead_to_headings(pages: dict[str, str]) -> None:
    anchors = {}
    for path in [*pages, "reference/errors.md"]:
        text = pages.get(path) or (ROOT / "docs" / path).read_text("utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        anchors[path] = {
            re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in headings
        }
    for path, text in pages.items():
        here = (ROOT / "docs" / path).parent
        for target, anchor in re.findall(r"\]\((?!https:)([^)#]*)#?([^)]*)\)", text):
            file = (here / target).resolve() if target else ROOT / "docs" / path
            assert file.is_file(), (path, target)
            known = anchors.get(file.relative_to(ROOT / "docs").as_posix(), {anchor})
            assert not anchor or anchor in known, (path, target, anchor)


def test_every_page_is_in_the_menu(pages: dict[str, str]) -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [path for path in pages if f"- {path}\n" not in menu] == []


def test_the_errors_of_the_library_are_not_the_clients(pages: dict[str, str]) -> None:
    for path, text in pages.items():
        if path != "reference/client.md":
            assert "client.md#configurationerror" not in text, path


def test_no_link_is_empty(pages: dict[str, str]) -> None:
    assert [path for path, text in pages.items() if "]()" in text] == []


PAGE = Page("reference/client.md", "pack", {"pack:A": "x.md#a", "A": "x.md#a"})


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        ("A | None", "[`A`](../x.md#a)"),
        ("Annotated[Sequence[A] | str | None, Option(1)]", "[`Sequence[A]`](../x.md#a) or `str`"),
        ("Literal['a', 'b']", '`"a"` or `"b"`'),
        ("dict of str to A", "[`dict[str, A]`](../x.md#a)"),
        ("{'a', 'b'}", '`"a"` or `"b"`'),
        ("None", "`None`"),
        ("", ""),
    ],
)
def test_a_type_is_shown_as_its_alternatives(annotation: str, shown: str) -> None:
    assert PAGE.kind(annotation) == shown


def test_a_doctest_becomes_python_that_imports_what_it_uses() -> None:
    (block,) = PAGE.blocks(">>> import os\n>>> A(1)  # doctest: +SKIP\n'x'\n")
    assert block == "```python\nimport os\nfrom pack import A\n\nA(1)\n# 'x'\n```"


def test_sphinx_roles_become_links() -> None:
    said = PAGE.prose(":class:`~pack.some.A` and :meth:`.B.c`, ``LLC101`` (:func:`d`)")
    assert said == "[`A`](../x.md#a) and `c`, [LLC101](errors.md#llc101) (`d`)"


def test_arguments_of_a_class_are_read_from_bases_and_comments() -> None:
    shape = Package("low_latency_endpoint.simulate").entry("Shape")
    said = {each.name: each.text for each in shape.arguments}
    assert said["deploy_at"] == "when a new version is deployed, in seconds"


@pytest.mark.parametrize(
    ("owner", "said"),
    [("A", "A size. Default: 1."), ("B", "A size.\n\nA :class:`B` has 5 by default.")],
)
def test_what_is_said_of_another_class_is_left_out(owner: str, said: str) -> None:
    text = "A size. Default: 1.\n\nA :class:`B` has 5 by default."
    assert _of_owner(text, owner) == said
