"""Wheels of packages as they are installed here, for the load generator's image."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile, ZipInfo

from ..facts.load_test_fleet_rules import CLIENT_NOT_INSTALLED

_WHEEL = "Wheel-Version: 1.0\nGenerator: low-latency-endpoint\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_FILE_MODE = 0o100644 << 16


def write_wheel(distribution: str, package: str, folder: Path) -> Path:
    """Write the wheel of an installed pure-Python package into a folder and return its path.

    The same files give the same bytes, so that the CDK builds the image anew only after a change:
    nothing is compressed and no time is kept. The metadata names no requirements; the image has
    them pinned.
    """
    module = _installed(package)
    version = module.__version__
    name = f"{distribution.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    contents = dict(_files_of(module))
    contents[f"{name}.dist-info/METADATA"] = metadata.encode()
    contents[f"{name}.dist-info/WHEEL"] = _WHEEL.encode()
    contents[f"{name}.dist-info/RECORD"] = _record(contents, name).encode()
    path = folder / f"{name}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for file, content in contents.items():
            entry = ZipInfo(file)  # of 1980
            entry.external_attr = _FILE_MODE
            archive.writestr(entry, content)
    return path


def _installed(package: str) -> ModuleType:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise CLIENT_NOT_INSTALLED.error(got=str(error), allowed=f"{package} installed") from error


def _files_of(package: ModuleType) -> Iterator[tuple[str, bytes]]:
    """Return path and content of each file of a package, in a fixed order."""
    root = Path(str(package.__file__)).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root.parent).as_posix(), path.read_bytes()


def _record(contents: dict[str, bytes], name: str) -> str:
    """Return the list of all files with their hashes and sizes, as installers check them."""
    lines = []
    for file, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{file},sha256={digest},{len(content)}\n")
    lines.append(f"{name}.dist-info/RECORD,,\n")
    return "".join(lines)
