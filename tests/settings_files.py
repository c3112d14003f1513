"""Settings files of tests: a head, and the lines of one endpoint below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.settings import Settings, load_settings


def load_with(folder: Path, head: str, *lines: str) -> Settings:
    """Load ``endpoint.yaml`` of this head and these keys of its endpoint."""
    path = folder / "endpoint.yaml"
    path.write_text(head + "".join(f"    {line}\n" for line in lines), encoding="utf-8")
    return load_settings(path)


def problems_with(folder: Path, head: str, *lines: str) -> list[tuple[int, str]]:
    """Load what has mistakes; gives the line and the code of each."""
    with pytest.raises(SettingsError) as caught:
        load_with(folder, head, *lines)
    return [(line, error.code) for line, error in caught.value.problems]
