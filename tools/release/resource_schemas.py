"""What AWS's schemas fix of the resource types that the library makes, as the change review needs it.

    python -m tools.release.resource_schemas    # writes change/resource_types.json

The schemas are those that cfn-lint brings. ``name`` is the property that names a resource for good:
``Name``, or the end of its type with ``Name`` behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint.change.resource_types import WORDS

FILE = Path("constructs/low_latency_endpoint/change/resource_types.json")


def fixed_by_schema(kinds: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """The properties of each type that cannot change, may not, and name it; those that there are."""
    rows = {}
    for kind in sorted(kinds):
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
        create_only = _paths(schema, "createOnlyProperties")
        names = [path for path in create_only if _is_name(kind, path)]
        row = {
            "create_only": create_only,
            "conditional": _paths(schema, "conditionalCreateOnlyProperties"),
            "name": names,
        }
        rows[kind] = {key: paths for key, paths in row.items() if paths}
    return rows


def _paths(schema: dict[str, Any], key: str) -> list[str]:
    return sorted(path.removeprefix("/properties/") for path in schema.get(key, []))


def _is_name(kind: str, path: str) -> bool:
    own = kind.rpartition("::")[2].lower()
    return path.endswith("Name") and own.endswith(path.removesuffix("Name").lower())


def main() -> None:
    """Write the file."""
    text = json.dumps(fixed_by_schema(WORDS), indent=1)
    FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
