"""The command that installs an extra: by the paths of wheels, as PyPI has nothing of ours."""

import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

_LIBRARY = "cdk-low-latency-endpoint"
_CLIENT = "low-latency-client"
_CLIENT_REQUIREMENT = f"{_CLIENT}==0.1.0+unpublished"
"""As in pyproject.toml, for a folder on the path, which has no metadata."""


def install_command(extra: str) -> str:
    """Return the pip command for an extra of the wheel or the checkout that is installed.

    Where neither is there any more, the command names the packages of the extra.
    """
    path = origin()
    requirements = list(_requirements(extra))
    client = list(filter(_is_client, requirements))
    if path is None:
        packages = sorted(set(requirements) - set(client))
        return shlex.join(["pip", "install", *packages, *map(_client_wheel, client)])
    if path.is_dir():
        projects = [f"{path}[{extra}]", *(str(path / "client") for _ in client)]
        editable = [word for project in projects for word in ("-e", project)]
        return shlex.join(["pip", "install", *editable])
    wheels = [str(path.with_name(_client_wheel(requirement))) for requirement in client]
    return shlex.join(["pip", "install", f"{path}[{extra}]", *wheels])


def client_wheel() -> str:
    """Return the file name of the client's wheel that this version of the library works with."""
    requirements = filter(_is_client, _requirements("operations"))
    return _client_wheel(next(requirements, _CLIENT_REQUIREMENT))


def origin() -> Path | None:
    """Return the wheel or the checkout that this was installed from; None where it is gone."""
    from urllib.request import url2pathname  # HTTP and e-mail with it: 20 ms of each command

    installed = _installed()
    url = urlparse(
        json.loads((installed and installed.read_text("direct_url.json")) or "{}").get("url")
    )
    path = Path(url2pathname(url.path or ""))
    return path if url.scheme == "file" and path.exists() else None


def _client_wheel(requirement: str) -> str:
    """Return the file name of the wheel of ``low-latency-client==VERSION``."""
    name, _, version = requirement.partition("==")
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _is_client(requirement: str) -> bool:
    return requirement.startswith(_CLIENT)


def _installed() -> Any:
    from importlib.metadata import PackageNotFoundError, distribution

    with suppress(PackageNotFoundError):  # a folder on the path
        return distribution(_LIBRARY)


def _requirements(extra: str) -> Iterator[str]:
    """Return the requirements of an extra, with those of the extras that it includes."""
    installed = _installed()
    for requirement in (installed and installed.requires) or ():
        package, _, marker = requirement.partition(";")
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        name, _, others = package.strip().partition("[")
        if name != _LIBRARY:
            yield package.strip()
            continue
        for other in others.rstrip("]").split(","):
            yield from _requirements(other)
