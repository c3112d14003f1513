"""What a model server of a process of its own writes: kept in a file, and told by lines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

_LARGEST_FILE = 4 * 2**20
"""Bytes; beyond it the file becomes the former one (`.1`), and the one before goes."""
_LONGEST_LINE = 64 * 1024
_ENDING = 4096


class ServerOutput:
    """The output of one instance's server, of all processes that it has been."""

    def __init__(self, path: Path, tell: Callable[[list[str]], None]) -> None:
        self.path = path
        self._tell = tell
        self._reader: threading.Thread | None = None
        path.parent.mkdir(parents=True, exist_ok=True)

    def follow(self, pipe: IO[bytes]) -> None:
        """Keep what comes through a pipe, until it ends."""
        self._reader = threading.Thread(
            target=self._read, args=[pipe], name=f"output {self.path.stem}", daemon=True
        )
        self._reader.start()

    def settle(self) -> None:
        """Wait until everything that an ended process wrote is here."""
        if self._reader is not None:
            self._reader.join(2)

    def _read(self, pipe: IO[bytes]) -> None:
        rest = b""
        with pipe, contextlib.ExitStack() as stack:
            file = stack.enter_context(self.path.open("ab"))
            while data := pipe.read1(65536):  # type: ignore[attr-defined]
                # A full disk, or a folder that a stopping local AWS has removed, must not block
                # the server on its pipe.
                with contextlib.suppress(OSError):
                    file.write(data)
                    file.flush()
                    if file.tell() > _LARGEST_FILE:
                        file.close()
                        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                        file = stack.enter_context(self.path.open("ab"))
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                self._pass_on(lines)
            self._pass_on([rest] if rest else [])

    def _pass_on(self, lines: list[bytes]) -> None:
        texts = [line.decode("utf-8", "replace").rstrip("\r") for line in lines]
        with contextlib.suppress(Exception):  # logs are not worth failing for
            if found := [text[:_LONGEST_LINE] for text in texts if text]:
                self._tell(found)

    def ending(self, longest: int) -> str:
        """Give the last lines, with so many characters at most."""
        try:
            with self.path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - _ENDING))
                text = file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""
        if len(text) <= longest:
            return text
        return "..." + text[3 - longest :]
