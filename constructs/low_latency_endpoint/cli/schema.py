"""``low-latency schema``."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of the settings file.

    \b
    Example:
      low-latency schema > endpoint.schema.json
    """
    typer.echo(schema_text())


def schema_text() -> str:
    """The JSON schema of the settings file, which editors complete and check by."""
    import json

    from ..settings import settings_json_schema

    return json.dumps(settings_json_schema(), indent=2, ensure_ascii=False)
