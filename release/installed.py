"""What of this environment a requirement brings."""

from __future__ import annotations

import importlib.metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(
    requirements: list[str], extras: frozenset[str] = frozenset()
) -> dict[str, importlib.metadata.Distribution]:
    """The installed distributions that pip would install for these, by name.

    Parameters
    ----------
    requirements
        Lines as in a wheel's metadata.
    extras
        The extras of the wheel that are wanted.
    """
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
