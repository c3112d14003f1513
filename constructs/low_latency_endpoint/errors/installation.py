"""Commands that install what is missing, for this installation: whichever way it came.

They name files and other projects' packages. PyPI has nothing of ours yet: whoever registers our
names there first would run code on every machine that installs by them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse
from urllib.request import url2pathname

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_NAME = "cdk-low-latency-endpoint"


def install_command(extra: str) -> str:
    """With pip: the extra of the wheel or the checkout; its packages where that is gone."""
    path = origin()
    named = [f"{path}[{extra}]"] if path else sorted(set(_packages(extra)))
    return pip_install(named) if named else f"the packages of its extra {extra}"


def pip_install(what: Sequence[str]) -> str:
    """A line for a shell. A folder is a checkout, and stays one."""
    edits = any(Path(each.partition("[")[0]).is_dir() for each in what)
    return shlex.join(["pip", "install", *(["-e"] if edits else []), *what])


def origin() -> Path | None:
    """The wheel or the checkout that this was installed from, where it is still there."""
    found = _installed()
    stated = json.loads((found and found.read_text("direct_url.json")) or "{}")
    url = urlparse(stated.get("url", ""))
    path = Path(url2pathname(url.path))
    return path if url.scheme == "file" and path.exists() else None


def _installed() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(PackageNotFoundError):  # a folder on the path
        return distribution(_NAME)
    return None


def _packages(extra: str) -> Iterator[str]:
    found = _installed()
    for requirement in (found and found.requires) or ():
        package, _, marker = requirement.partition(";")
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        if package.startswith(_NAME):
            for other in re.findall(r"[\w-]+", package.removeprefix(_NAME)):
                yield from _packages(other)
        else:
            yield package.strip()
