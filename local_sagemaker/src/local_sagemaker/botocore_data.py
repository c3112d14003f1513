"""botocore's data files, read once while moto is imported.

moto asks for every Region with a new session, and each session reads botocore's megabytes anew: a
quarter of the time that a local AWS takes to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.loaders import JSONFileLoader


@contextmanager
def read_once() -> Iterator[None]:
    """Keep what is read of botocore's data, as long as the block lasts."""
    read = JSONFileLoader.load_file
    kept: dict[str, Any] = {}

    def remembered(self: Any, path: str) -> Any:
        if path not in kept:
            kept[path] = read(self, path)
        return kept[path]

    JSONFileLoader.load_file = remembered
    try:
        yield
    finally:
        JSONFileLoader.load_file = read
