"""Are there newer images than those of ``serving_containers.csv``? ``make newer-tags``.

AWS lists its images in sagemaker-core, its SDK. pip downloads the newest one from PyPI, nothing of it
is installed or run, and its tables are held against ours. Whoever takes over a newer tag reads the
image's release notes first, and renews the row's source and date.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from low_latency_endpoint.plan.serving_containers import ServingImage, serving_images

_FOLDER = "image_uri_config/"


def tables_of(wheel: Path) -> dict[str, Any]:
    """The SDK's tables of images, by file name without ``.json``."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            Path(name).stem: json.loads(archive.read(name))
            for name in archive.namelist()
            if _FOLDER in name and name.endswith(".json")
        }


def newer(image: ServingImage, tables: Mapping[str, Any]) -> str | None:
    """The newest version that a table lists, when it is newer than the image's; else ``None``.

    Raises
    ------
    LookupError
        When the SDK does not have the table any more.
    """
    table, _, version = image.sdk.partition(" ")
    listed = tables[table]
    newest = max(listed.get("inference", listed)["versions"], key=_number)
    return newest if _number(newest) > _number(version) else None


def _number(version: str) -> tuple[int, ...]:
    """``0.5.20`` as numbers; whatever is no number comes before all that are."""
    return tuple(int(part) if part.isdecimal() else -1 for part in version.split("."))


def report(images: tuple[ServingImage, ...], tables: Mapping[str, Any]) -> Iterator[str]:
    """A line for each image that has a newer version, or whose table is gone."""
    for image in images:
        if not image.sdk:
            continue  # kept at its version on purpose
        name = f"{image.repository}:{image.tag}"
        try:
            found = newer(image, tables)
        except LookupError:
            yield f"{name}: sagemaker-core has no table {image.sdk.partition(' ')[0]} any more"
            continue
        if found:
            yield f"{name}: {image.sdk}, sagemaker-core has {found}"


def main() -> int:
    """Download, compare, say what is newer; 1 when something is."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
             "--dest", folder, "sagemaker-core"],
            check=True,
        )  # fmt: skip
        (wheel,) = Path(folder).glob("*.whl")
        lines = list(report(serving_images(), tables_of(wheel)))
        checked = sum(bool(image.sdk) for image in serving_images())
        print("\n".join(lines) or f"No newer images: {checked} rows against {wheel.name}")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
