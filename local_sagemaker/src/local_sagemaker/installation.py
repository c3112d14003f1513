"""The command that installs what the local AWS needs, by the names of other projects' packages.

Not by its own name, which is no project on PyPI yet.
"""

from __future__ import annotations

import shlex
from importlib.metadata import requires


def install_command() -> str:
    """All packages: which of them brings a module, its name does not tell."""
    packages = requires("local-sagemaker") or ()
    return shlex.join(["pip", "install", *packages])
