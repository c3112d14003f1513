"""botocore's data files, read once in a process.

moto asks for every Region with a new session, and each session reads botocore's megabytes anew: a
third of the time that a local AWS takes to start.
"""

from __future__ import annotations

import functools
from typing import Any

from botocore.loaders import JSONFileLoader

_read = JSONFileLoader.load_file


@functools.cache
def _kept(path: str) -> Any:
    return _read(JSONFileLoader(), path)


def read_once() -> None:
    """Keep what is read of botocore's data from now on."""
    JSONFileLoader.load_file = lambda loader, path: _kept(path)
