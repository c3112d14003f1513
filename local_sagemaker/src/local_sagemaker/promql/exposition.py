"""Reading what a container's `/metrics` prints: Prometheus's text format.

Source: Prometheus documentation, "Exposition formats".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]  # in the order of their names, without that of the metric

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)"
    r"(?:\s+-?\d+)?\s*(?:#.*)?"
)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


@dataclass(frozen=True)
class Sample:
    """One line; its family is the name that ``# TYPE`` gives, without ``_bucket`` and so on."""

    name: str
    labels: Labels
    value: float
    type: str
    family: str


def samples_of(text: str) -> Iterator[Sample]:
    """Give the samples of a page; a line that cannot be read is left out, as scrapers do not stop.

    Examples
    --------
    >>> page = '# TYPE vllm:num_requests_waiting gauge\\nvllm:num_requests_waiting{engine="0"} 3'
    >>> (one,) = samples_of(page)
    >>> one.name, one.labels, one.value, one.type
    ('vllm:num_requests_waiting', (('engine', '0'),), 3.0, 'gauge')
    """
    types: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("#"):
            words = line.split()
            if len(words) == 4 and words[1] == "TYPE":
                types[words[2]] = words[3]
            continue
        found = _SAMPLE.fullmatch(line)
        labels = _labels(found["labels"] or "") if found else None
        if found is None or labels is None:
            continue
        name, value = found["name"], _number(found["value"])
        if value is not None:
            family = next(
                (
                    name.removesuffix(ending)
                    for ending in ("", "_bucket", "_sum", "_count")
                    if name.endswith(ending) and name.removesuffix(ending) in types
                ),
                name,
            )
            yield Sample(name, labels, value, types.get(family, "untyped"), family)


def _labels(text: str) -> Labels | None:
    found: dict[str, str] = {}
    at = 0
    text = text.strip()
    while at < len(text):
        one = _LABEL.match(text, at)
        if not one:
            return None
        found[one[1]] = re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), one[2])
        at = one.end()
    return tuple(sorted(found.items()))


def _number(text: str) -> float | None:
    try:
        return float(text.replace("Inf", "inf").replace("NaN", "nan"))
    except ValueError:
        return None


def bound_of(text: str) -> float:
    """Read the label ``le``; NaN when it is no number."""
    number = _number(text)
    return math.nan if number is None else number
