"""Requirements files as `make pins` writes them, and what of this environment a requirement brings."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "requirements.txt"
DEVELOPMENT = ROOT / "requirements-dev.txt"
IMAGE = ROOT / "constructs/low_latency_endpoint/load_test/container/requirements.txt"


@dataclass(frozen=True)
class Pin:
    """One package of a requirements file, with its lines."""

    text: str

    @property
    def requirement(self) -> Requirement:
        return Requirement(self.text.partition("--hash=")[0].rstrip(" \\\n"))

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def hashes(self) -> list[str]:
        return re.findall(r"--hash=sha256:([0-9a-f]{64})", self.text)


def pins_of(file: Path) -> dict[str, Pin]:
    found = re.findall(r"(?m)^[^#\s](?:.*\\\n)*.*\n", file.read_text(encoding="utf-8"))
    return {pin.name: pin for pin in map(Pin, found)}


def required(
    requirements: list[str], extras: frozenset[str] = frozenset()
) -> dict[str, importlib.metadata.Distribution]:
    """The installed distributions that pip would install for these, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()

    def add(lines: list[str], extras: frozenset[str]) -> None:
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": each}) for each in extras | {""}):
                continue
            name, wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                found[name] = importlib.metadata.distribution(name)
                add(found[name].requires or [], wanted)

    add(requirements, extras)
    return found
