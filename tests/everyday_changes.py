"""The changes that ``docs/how-to/everyday-changes.md`` shows: what is deployed, and what comes next."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "everyday-changes.md"
SHIPPED: dict[str, Any] = yaml.safe_load((ROOT / "endpoint.yaml").read_text("utf-8"))
_BLOCKS = re.compile(r"```yaml\n(.*?)```|<!-- generated: (.*?) -->", re.DOTALL)


class Change(NamedTuple):
    """Settings that are deployed, and those that come after them."""

    before: dict[str, Any]
    after: dict[str, Any]


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the keys of a block of the page; a list takes the place of a list."""
    result = copy.deepcopy(dict(values))
    for key, value in changes.items():
        former = result.get(key)
        if isinstance(former, dict) and isinstance(value, dict):
            value = merged(former, value)
        result[key] = value
    return result


def blocks_of(page: str) -> dict[str, dict[str, Any]]:
    """The YAML block before each comparison, by the comparison's name; empty without one."""
    blocks: dict[str, dict[str, Any]] = {}
    latest: dict[str, Any] = {}
    for block, name in _BLOCKS.findall(page):
        if name:
            blocks[name] = latest
            latest = {}
        else:
            latest = yaml.safe_load(block)
    return blocks


def changes_of(page: str) -> dict[str, Change]:
    """Each change of the page, deployed over what the page says is there before."""
    blocks = blocks_of(page)
    challenger = {"variant_weight": 9, "variants": {"challenger": {"weight": 1}}}
    before = {
        "type-2": merged(SHIPPED, blocks["type-1"]),
        "weights": merged(SHIPPED, {"endpoints": {"sentiment": challenger}}),
        "zone-removed": merged(SHIPPED, blocks["zone-added"]),
        "removed": merged(SHIPPED, blocks["second"]),
    }
    changes = {}
    for name, block in blocks.items():
        former = before.get(name, SHIPPED)
        changes[name] = Change(former, merged(former, block))
    del changes["type-2"].after["endpoints"]["sentiment"]["scaling"]
    del changes["removed"].after["endpoints"]["mood"]
    return changes
