"""The causes of ``causes.yaml``, and findings made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import yaml

from .findings import Confidence, Evidence, Finding, FindingKind, Remedy


def _read() -> dict[str, FindingKind]:
    text = files(__package__).joinpath("causes.yaml").read_text("utf-8")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    told = yaml.load(text, loader)
    return {each: _kind(each, told["sources"], **row) for each, row in told["causes"].items()}


def _kind(
    id: str, sources: dict[str, str], *, source: str, path: str, changes: Any = (), **row: Any
) -> FindingKind:
    return FindingKind(
        id=id,
        source=sources[source],
        path=tuple(path.split(" > ")),
        changes=tuple(Remedy(**each) for each in changes),
        **row,
    )


#: By their ids.
KINDS = _read()


def finding(
    id: str,
    *evidence: Evidence | str,
    variant: str = "",
    root: tuple[str, ...] = (),  # where the row's path begins
    confidence: Confidence | None = None,  # where it is not the row's
    first: Iterable[Remedy] = (),  # before the changes of the row
    more: Iterable[Remedy] = (),  # after them
    risk: bool = False,
    **filled: str,
) -> Finding:
    """A cause's row with what was measured; ``filled`` are the names in its changes and besides."""
    kind = KINDS[id]
    changes, besides = kind.changes, kind.besides
    if filled:
        besides = besides.format(**filled)
        changes = tuple(
            replace(each, why=each.why.format(**filled), value=each.value.format(**filled))
            for each in changes
        )
    return Finding(
        kind,
        variant,
        tuple(Evidence(each) if isinstance(each, str) else each for each in evidence),
        confidence or kind.confidence,
        (*root, *kind.path),
        (*first, *changes, *more),
        besides,
        risk,
    )


def kinds() -> Iterable[FindingKind]:
    """All causes, in the order of their ids."""
    return KINDS.values()
