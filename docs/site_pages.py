"""What ``mkdocs`` builds beside the pages of ``docs/``: a hook of ``mkdocs.yml``.

* ``reference/commands.md``: the help of every command.
* ``reference/constructs/``: the public names, a page for each room of the package.
* ``repository/``: files outside ``docs/`` to which a page links, so that a version of the site has
  the files of that version.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_ROOMS = {
    "pattern": "The whole endpoint",
    "network": "Network",
    "hosting": "Models, variants, endpoints, scaling",
    "monitoring": "Alarms and dashboard",
    "warm_up": "Warm-up",
    "load_test_fleet": "Load-test fleet",
    "options": "Options, as a settings file and Python take them",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the files outside ``docs/`` that pages link to."""
    pages = {"reference/commands.md": _commands(), **_constructs()}
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    waiting = [
        DOCS / each.src_uri for each in files.documentation_pages() if each.src_uri not in pages
    ]
    seen: set[Path] = set()
    while waiting:
        page = waiting.pop()
        for target in _LINK.finditer(page.read_text("utf-8")):
            path = (page.parent / target[1]).resolve()
            if path in seen or path.is_relative_to(DOCS) or not path.is_file():
                continue
            seen.add(path)
            files.append(File.generated(config, _repository_uri(path), abs_src_path=str(path)))
            if path.suffix == ".md":
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of ``docs/`` to the files' place in the site, and the other way round."""
    here = _source(page.file.src_uri)

    def target(link: re.Match[str]) -> str:
        path = (here.parent / link[1]).resolve()
        uri = (
            path.relative_to(DOCS).as_posix()
            if path.is_relative_to(DOCS)
            else _repository_uri(path)
        )
        if path.is_dir():
            return link[0]
        return os.path.relpath(uri, Path(page.file.src_uri).parent) + (link[2] or "")

    return _LINK.sub(target, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take the docstrings' Sphinx roles away; what they name stays as code."""
    html = re.sub(r":(?:attr|class|data|func|meth|mod): ?(?=<(?:code|autoref))", "", html)
    return re.sub(r"(?<=<code>)~[\w.]*\.(?=\w+</code>)", "", html)


def on_post_page(html: str, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's search dialog, which screen readers say when it opens."""
    return html.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def _repository_uri(path: Path) -> str:
    return f"repository/{path.relative_to(ROOT).as_posix()}"


def _source(uri: str) -> Path:
    inside = uri.removeprefix("repository/")
    return (DOCS if inside == uri else ROOT) / inside


def _commands() -> str:
    """The help of each command, as the terminal shows it."""
    import typer
    from typer.testing import CliRunner

    from low_latency_endpoint.cli.application import app

    group: Any = typer.main.get_command(app)
    parts = ["# Commands\n", "Each command prints this with `--help`.\n"]
    for name in group.commands:
        text = (
            CliRunner()
            .invoke(app, [name, "--help"], env={"COLUMNS": "88"}, prog_name="low-latency")
            .output
        )
        parts.append(f"## low-latency {name}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def _constructs() -> dict[str, str]:
    """A page for each room that has public names."""
    from low_latency_endpoint import _MODULE_OF

    pages = {}
    rooms: dict[str, list[str]] = {room: [] for room in _ROOMS}
    for name, module in _MODULE_OF.items():
        rooms[module.split(".")[0]].append(f"::: low_latency_endpoint.{module}.{name}\n")
    for room, names in rooms.items():
        uri = f"reference/constructs/{room.replace('_', '-')}.md"
        pages[uri] = f"# {_ROOMS[room]}\n\n" + "\n".join(names)
    lines = [f"- [{title}]({room.replace('_', '-')}.md)" for room, title in _ROOMS.items()]
    pages["reference/constructs/index.md"] = "# Constructs\n\n" + "\n".join(lines) + "\n"
    return pages
