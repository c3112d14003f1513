"""What the site has beside the pages of ``docs/``: a hook of ``mkdocs.yml``.

Files outside ``docs/`` to which a page links are copied to ``repository/``, so that a version of the
site has the files of that version.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_SHIM = "https://unpkg.com/iframe-worker/shim"  # of the theme's plugin `offline`
#: How far ahead a page stands in the search; guides answer a reader's words, the rest is looked up
#: by its name, and the local AWS has docs of its own (0: left out). The first that a page's path begins with counts.
_RANKS = {
    "how-to/": 4,
    "tutorial/": 2,
    "explanation/": 2,
    "reference/errors.md": 0.1,
    "reference/settings.md": 0.5,
    "reference/seen-on-aws.md": 0.2,
    "reference/client.md": 0.3,
    "reference/commands.md": 0.3,
    "reference/constructs/": 0.3,
    "reference/python/": 0.1,
    "reference/deploying-role.md": 0.3,
    "reference/rights-in-your-account.md": 0.3,
    "decisions/": 0.1,
    "repository/local_sagemaker/": 0.0,
    "repository/": 0.1,
}
CONTRIBUTING = ROOT / "CONTRIBUTING.md"  # a page of the menu
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside ``docs/`` that pages link to."""
    waiting = [DOCS / each.src_uri for each in files.documentation_pages()]
    files.append(_copied(CONTRIBUTING, config))
    waiting.append(CONTRIBUTING)
    seen = {CONTRIBUTING}
    while waiting:
        page = waiting.pop()
        for target in _LINK.finditer(page.read_text("utf-8")):
            path = (page.parent / target[1]).resolve()
            if path in seen or path.is_relative_to(DOCS) or not path.is_file():
                continue
            seen.add(path)
            files.append(_copied(path, config))
            if path.suffix == ".md":
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of ``docs/`` to the files' place in the site, and the other way round."""
    here = _source(page.file.src_uri)
    ranks = (rank for start, rank in _RANKS.items() if page.file.src_uri.startswith(start))
    rank = next(ranks, 1)
    page.meta["search"] = {"boost": rank, "exclude": not rank}

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


def on_post_page(html: str, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's search dialog for screen readers; load nothing from another server."""
    html = html.replace(_SHIM, os.path.relpath("iframe-worker.js", Path(page.file.dest_uri).parent))
    return html.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def _copied(path: Path, config: MkDocsConfig) -> File:
    return File.generated(config, _repository_uri(path), abs_src_path=str(path))


def _repository_uri(path: Path) -> str:
    return f"repository/{path.relative_to(ROOT).as_posix()}"


def _source(uri: str) -> Path:
    inside = uri.removeprefix("repository/")
    return (DOCS if inside == uri else ROOT) / inside
