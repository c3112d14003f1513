"""The settings' JSON schema, from which editors complete and check the file."""

from __future__ import annotations

from typing import Any


def settings_json_schema() -> dict[str, Any]:
    """The JSON schema of a settings file."""
    from .stack import Settings

    return Settings.model_json_schema()
