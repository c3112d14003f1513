"""The load generator's image, built from this library and its client as they are installed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from aws_cdk import aws_ecr_assets as ecr_assets
from constructs import Construct

from ..errors.frozen import dataclass
from ..hosting.images import ContainerImage
from .wheels import write_wheel

_CONTAINER = Path(__file__).parents[1] / "load_test" / "container"
_STAGING_OFF = "aws:cdk:disable-asset-staging"


@dataclass(frozen=True)
class LoadGeneratorImage(ContainerImage):
    """The tasks' image, for arm64, with this library and its client as they are installed here."""

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


def write_build_context(folder: Path) -> None:
    """Write what ``docker build`` needs: Dockerfile, pinned requirements and two wheels."""
    for name in ("Dockerfile", "requirements.txt"):
        shutil.copyfile(_CONTAINER / name, folder / name)
    write_wheel("cdk-low-latency-endpoint", "low_latency_endpoint", folder)
    write_wheel("low-latency-client", "low_latency_client", folder)
    for path in folder.iterdir():
        # Docker copies modes: readable for the tasks' user, whatever this machine's umask.
        path.chmod(0o644)
