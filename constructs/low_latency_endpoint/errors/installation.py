"""What installs an extra, by files and others' packages: PyPI has nothing of ours, and the names are free."""

import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

_NAME = "cdk-low-latency-endpoint"


def install_command(extra: str) -> str:
    """With pip: the extra of the wheel or the checkout; its packages where that is gone."""
    if path := origin():
        edits = ["-e"] if path.is_dir() else []
        return shlex.join(["pip", "install", *edits, f"{path}[{extra}]"])
    return shlex.join(["pip", "install", *sorted(set(_packages(extra)))])


def origin() -> Path | None:
    """The wheel or the checkout that this was installed from, where it is still there."""
    from urllib.request import url2pathname  # HTTP and e-mail with it: 20 ms of each command

    installed = _installed()
    url = urlparse(
        json.loads((installed and installed.read_text("direct_url.json")) or "{}").get("url")
    )
    path = Path(url2pathname(url.path or ""))
    return path if url.scheme == "file" and path.exists() else None


def _installed() -> Any:
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(PackageNotFoundError):  # a folder on the path
        return distribution(_NAME)


def _packages(extra: str) -> Iterator[str]:
    installed = _installed()
    for requirement in (installed and installed.requires) or ():
        package, _, marker = requirement.partition(";")
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        name, _, others = package.strip().partition("[")
        if name != _NAME:
            yield package.strip()
        for other in others.rstrip("]").split(",") if name == _NAME else ():
            yield from _packages(other)
