"""What a command shows on standard error while it runs; standard output holds the answer alone."""

from __future__ import annotations

import sys
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from ..report.document import Document, Part
from ..report.terminal import drawn
from ..report.visible import visible_lines


class LiveDisplay:
    """Parts that are drawn anew in a terminal; lines where nobody looks, none when quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._live = (
            Live(console=self._console, refresh_per_second=4, transient=True)
            if self._console.is_terminal and not quiet
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _draw(self, parts: list[Part], now: RenderableType) -> None:
        """The parts, and below them what is being done."""
        if self._live is not None:
            self._live.update(Group(*drawn(Document("", parts)), Spinner("dots", now)))

    def _line(self, text: str, *, always: bool = False) -> None:
        """A line where nothing is drawn."""
        if self._live is None and (always or not self._quiet):
            print(visible_lines(text), file=sys.stderr, flush=True)
