"""The fact tables under ``data/``: CSV with a comment head that names each column's source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent / "data"


def rows(table: str) -> Iterator[dict[str, str]]:
    """The rows of ``data/<table>.csv`` as dictionaries of text; an empty value is unknown."""
    from csv import DictReader  # with the first table, and not with the package

    with (DATA / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        yield from DictReader(line for line in file if not line.startswith("#"))


def number(text: str) -> float | None:
    """The number that a cell holds; ``None`` when it is empty."""
    return float(text) if text else None


def whole(text: str) -> int | None:
    """The whole number that a cell holds; ``None`` when it is empty."""
    return int(text) if text else None
