"""botocore's data files, read once.

moto asks for every Region with a new session, and each session reads botocore's megabytes anew: a
quarter of the time that a local AWS takes to start.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.loaders import JSONFileLoader


@contextmanager
def read_once() -> Iterator[None]:
    """Keep what is read of botocore's data, as long as the block lasts."""
    read = JSONFileLoader.load_file
    kept = functools.cache(functools.partial(read, JSONFileLoader()))
    JSONFileLoader.load_file = lambda loader, path: kept(path)
    try:
        yield
    finally:
        JSONFileLoader.load_file = read
