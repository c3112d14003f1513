"""The load generator's image, built from the package as it is installed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from aws_cdk import aws_ecr_assets as ecr_assets
from constructs import Construct

from ..errors.frozen import dataclass
from ..hosting.images import ContainerImage

_PACKAGE = Path(__file__).parents[1]
_PARTS = (
    "__init__.py",
    "account",
    "client",
    "errors",
    "facts",
    "load_test",
    "operate",
    "options",
    "plan",
    "report",
    "settings",
    "simulate",
    "py.typed",
)
"""Of the package, what a load generator imports: no constructs, no local AWS, no command line."""

_STAGING_OFF = "aws:cdk:disable-asset-staging"


def write_build_context(folder: Path) -> None:
    """Write what ``docker build`` needs: Dockerfile, pinned requirements, the library."""
    container = _PACKAGE / "load_test" / "container"
    for name in ("Dockerfile", "requirements.txt"):
        shutil.copyfile(container / name, folder / name)
    library = folder / _PACKAGE.name
    library.mkdir()
    for part in _PARTS:
        source = _PACKAGE / part
        if source.is_dir():
            shutil.copytree(
                source, library / part, ignore=shutil.ignore_patterns("__pycache__", "container")
            )
        else:
            shutil.copyfile(source, library / part)
    for path in folder.rglob("*"):
        # The tasks' user must be able to read them, whatever this machine's umask.
        path.chmod(0o755 if path.is_dir() else 0o644)


@dataclass(frozen=True)
class LoadGeneratorImage(ContainerImage):
    """The tasks' image, for arm64, with this library as it is installed here."""

    @property
    def reference(self) -> str:
        return ""

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        folder = Path(tempfile.mkdtemp(prefix="load-generator-"))
        write_build_context(folder)
        image = ContainerImage.from_asset(
            str(folder), platform=ecr_assets.Platform.LINUX_ARM64
        ).bind(scope)
        if not scope.node.try_get_context(_STAGING_OFF):
            shutil.rmtree(folder)  # the CDK has its copy
        return image
