"""``low-latency schema``."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of the settings file.

    \b
    Example:
      low-latency schema > endpoint.schema.json
    """
    import json

    from ..settings import settings_json_schema

    typer.echo(json.dumps(settings_json_schema(), indent=2, ensure_ascii=False))
