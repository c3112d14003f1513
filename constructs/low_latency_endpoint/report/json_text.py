"""What programs read: of every command that prints or writes a result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from .visible import visible_lines

FORMAT_VERSION = 1
"""Of all of them together; another one may rename or drop keys, the same one only adds."""


def json_text(content: Mapping[str, Any]) -> str:
    """A result as JSON, with the version of its format before all else."""
    versioned = {"format_version": FORMAT_VERSION, **content}
    text = json.dumps(versioned, indent=2, ensure_ascii=False, allow_nan=False)
    return visible_lines(text) + "\n"


def json_safe(of: Any) -> dict[str, Any]:
    """A dataclass' fields, its times as text."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(of).items()
    }
