"""Where what is deployed differs from what the template states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differences(stated: Any, found: Any, path: str = "") -> Iterator[str]:
    """Each stated literal that is not what was found, in words.

    References and functions of CloudFormation are no literals, and what only the service adds is
    no difference.

    >>> list(differences({"Threshold": 160000, "Dimensions": {"Ref": "X"}},
    ...                  {"Threshold": 200000.0, "Period": 60}))
    ['Threshold is 200000, the template says 160000']
    """
    if isinstance(stated, Mapping):
        if any(key == "Ref" or key.startswith("Fn::") for key in stated):
            return
        for key, value in stated.items():
            inner = found.get(key) if isinstance(found, Mapping) else None
            yield from differences(value, inner, f"{path}.{key}" if path else key)
    elif isinstance(stated, list):
        others = found if isinstance(found, list) else []
        if len(others) != len(stated):
            yield f"{path} has {len(others)} entries, the template {len(stated)}"
        else:
            for number, value in enumerate(stated):
                yield from differences(value, others[number], f"{path}[{number}]")
    elif not _same(stated, found):
        yield f"{path} is {_text(found)}, the template says {_text(stated)}"


def _same(stated: Any, found: Any) -> bool:
    if isinstance(stated, bool) or isinstance(found, bool):
        return str(stated).lower() == str(found).lower()
    try:
        return float(stated) == float(found)
    except (TypeError, ValueError):
        return bool(stated == found)


def _text(value: Any) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float) and abs(value) < 1e6
        else ("nothing" if value is None else f"{value}")
    )
