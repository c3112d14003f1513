"""The settings' JSON schema, from which editors complete and check the file."""

from __future__ import annotations

from typing import Any

from ..options.compound_kinds import GroupKind, all_kinds
from .stack import Settings


def settings_json_schema() -> dict[str, Any]:
    """The JSON schema of a settings file, as ``endpoint.schema.json`` holds it.

    It carries the description, an example and the limits of every setting. What must hold between
    several settings is checked by :func:`load_settings` alone, but for "exactly one of".
    """
    settings = GroupKind(Settings)
    definitions: dict[str, Any] = {}
    for kind in all_kinds(settings):
        if isinstance(kind, GroupKind) and kind.group is not Settings:
            definitions[kind.group.__name__] = kind.definition()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of low-latency-endpoint",
        **settings.definition(),
        "$defs": dict(sorted(definitions.items())),
    }
