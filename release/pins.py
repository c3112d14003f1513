"""Requirements files as `make pins` writes them: each package once, with version and hashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "requirements.txt"
DEVELOPMENT = ROOT / "requirements-dev.txt"
#: What the load generator's image installs.
IMAGE = ROOT / "constructs/low_latency_endpoint/load_test/container/requirements.txt"

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """One package of a requirements file.

    Parameters
    ----------
    text
        Its lines in the file: the version, the marker, and a hash for each of its files.
    """

    text: str

    @cached_property
    def requirement(self) -> Requirement:
        """Name, version and marker."""
        return Requirement(self.text.partition("--hash=")[0].rstrip(" \\\n"))

    @property
    def name(self) -> str:
        """The package's name in its normal form."""
        return canonicalize_name(self.requirement.name)

    @property
    def hashes(self) -> list[str]:
        """The SHA-256 of each file that may be installed."""
        return _HASH.findall(self.text)


def head_of(text: str) -> str:
    """The comment that a requirements file begins with.

    Examples
    --------
    >>> head_of("# Fully pinned.\\nsix==1.17.0 \\\\\\n    --hash=sha256:00\\n")
    '# Fully pinned.\\n'
    """
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))


def pins_of(text: str) -> dict[str, Pin]:
    """The packages of a requirements file by name.

    Examples
    --------
    >>> text = "six==1.17.0 ; python_version < '4' \\\\\\n    --hash=sha256:" + "0" * 64 + "\\n"
    >>> pins = pins_of(text)
    >>> str(pins["six"].requirement), len(pins["six"].hashes)
    ('six==1.17.0; python_version < "4"', 1)
    """
    lines = "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("#")
    ).replace("\\\n", "\\\0")
    found = [
        Pin(line.replace("\\\0", "\\\n") + "\n") for line in lines.splitlines() if line.strip()
    ]
    return {pin.name: pin for pin in found}


def write_image_pins() -> None:
    """Give the packages of the load generator's image the versions and hashes of the other tools."""
    text = IMAGE.read_text(encoding="utf-8")
    pinned = pins_of(DEVELOPMENT.read_text(encoding="utf-8"))
    lines = [pinned[name].text for name in pins_of(text)]
    IMAGE.write_text(head_of(text) + "".join(lines), encoding="utf-8")
