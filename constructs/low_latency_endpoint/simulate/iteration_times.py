"""Measured times of an iteration that ship, and those that a person writes.

``iteration_times.csv`` holds medians of Microsoft's Vidur (github.com/microsoft/vidur at 7d47513,
MIT licence, ``data/profiling/compute/<device>/<model>/mlp.csv``): each operation's median, all but
the embedding, summed and taken times the layers. It leaves out what Vidur keeps elsewhere or adds:
attention, the output head, all-reduce between accelerators, and the processor's work between two
iterations. The time of a cached token is added by arithmetic: bytes of its keys and values on one
accelerator (16 bits each) divided by the memory's bandwidth in NVIDIA's data sheets (A100 80 GB
2,039 GB/s, H100 3,350 GB/s, A40 696 GB/s).
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

from ..errors import rule
from .token_serving import ITERATION_TIMES, IterationTime

PROFILE = rule(
    "LLS142",
    "there is no such profile of iteration times",
    fix="Choose one that ships, or give times of your own: --iteration-ms 1=10,64=11,2048=140.",
)
_FILE = Path(__file__).parent / "iteration_times.csv"


@lru_cache(maxsize=1)
def iteration_profiles() -> dict[str, IterationTime]:
    """The profiles that ship, by name: device/model/tensor parallelism.

    Examples
    --------
    >>> round(1e3 * iteration_profiles()["a100/llama-3-8b/tp1"].seconds(1), 1)
    9.7
    """
    points: dict[str, list[tuple[int, float]]] = {}
    cached: dict[str, float] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            name = line["profile"]
            points.setdefault(name, []).append(
                (int(line["tokens"]), float(line["milliseconds"]) / 1e3)
            )
            cached[name] = float(line["nanoseconds_per_cached_token"]) * 1e-9
    return {
        name: IterationTime(points=tuple(each), seconds_per_cached_token=cached[name])
        for name, each in points.items()
    }


def iteration_profile(name: str) -> IterationTime:
    """One of the profiles that ship.

    Raises
    ------
    ConfigurationError
        ``LLS142`` for a name that is not there.
    """
    if name not in iteration_profiles():
        raise PROFILE.error(got=repr(name), allowed=", ".join(iteration_profiles()))
    return iteration_profiles()[name]


def parse_iteration_times(text: str, cached_microseconds: float = 0.0) -> IterationTime:
    """Times as a person writes them: tokens in the batch and milliseconds.

    Parameters
    ----------
    text : str
        Such as ``1=23.9,128=30.3,2048=259``.
    cached_microseconds : float
        Of each token that an iteration reads from the KV cache. By default 0.

    Raises
    ------
    ConfigurationError
        ``LLS136`` for what is not such a text, or does not rise.

    Examples
    --------
    >>> parse_iteration_times("1=24, 128=32").points
    ((1, 0.024), (128, 0.032))
    """
    points = []
    for part in text.split(","):
        tokens, _, milliseconds = part.partition("=")
        try:
            points.append((int(tokens), float(milliseconds) / 1e3))
        except ValueError:
            raise ITERATION_TIMES.error(
                got=repr(part.strip()), allowed="tokens=milliseconds, such as 128=30.3"
            ) from None
    return IterationTime(points=tuple(points), seconds_per_cached_token=cached_microseconds * 1e-6)
