"""What commands print: text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ..report.visible import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

    from ..report.document import Document

_PIPED_WIDTH = 120  # where no terminal sets a width


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines; what they name, such as a file, may not act on a terminal or a runner."""
    _print_drawn(visible_lines(text), err=err, nl=nl)


def _print_drawn(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print what was drawn, in which text of others is visible already and signs of ours stay."""
    typer.echo(text, err=err, nl=nl)


def print_json(value: Mapping[str, Any]) -> None:
    from ..report.json_text import json_text

    _print_drawn(json_text(value), nl=False)


def print_document(document: Document, *, markdown: bool = False) -> None:
    """Print a document for people, or as Markdown to be pasted."""
    if markdown:
        from ..report.markdown import as_markdown

        _print_drawn(as_markdown(document), nl=False)
        return
    from ..report.terminal import drawn

    with _console_for_people() as console:
        for part in drawn(document):  # the console forgets that names and links stay whole
            no_wrap, overflow = getattr(part, "no_wrap", None), getattr(part, "overflow", None)
            console.print(part, no_wrap=no_wrap, overflow=overflow, crop=False)


@contextmanager
def _console_for_people() -> Iterator[Console]:
    """A console of the terminal's width; elsewhere without colours and padding."""
    import os

    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        yield console
        return
    if "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    with console.capture() as captured:
        yield console
    _print_drawn("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextmanager
def progress_on_terminal(title: str) -> Iterator[Callable[[str], None]]:
    """What is being done, on standard error while it lasts; nothing when that is no terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(title) as status:
        yield lambda text: status.update(Text(visible(f"{title}: {text}")))
