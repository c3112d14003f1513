"""``make newer-tags`` finds what is newer, and nothing else; here without the network."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from low_latency_endpoint.plan.serving_containers import serving_images

from .newer_tags import newer, report, tables_of

VLLM = next(image for image in serving_images() if image.server == "vllm")
PINNED = VLLM.sdk.split()[1]


def wheel(folder: Path, *versions: str) -> Path:
    path = folder / "sagemaker_core-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        table = {
            "inference": {"versions": {version: {"repository": "vllm"} for version in versions}}
        }
        archive.writestr("sagemaker/core/image_uri_config/vllm.json", json.dumps(table))
        archive.writestr("sagemaker/core/other.json", "no JSON")
    return path


def test_a_newer_version_is_named_whatever_its_place_in_the_table(tmp_path: Path) -> None:
    tables = tables_of(wheel(tmp_path, "0.100.0", PINNED, "0.9.9"))
    assert newer(VLLM, tables) == "0.100.0"
    (line,) = report((VLLM,), tables)
    assert VLLM.tag in line
    assert "0.100.0" in line


def test_the_same_and_older_versions_are_not_news(tmp_path: Path) -> None:
    tables = tables_of(wheel(tmp_path, "0.4.2", PINNED, "latest"))
    assert newer(VLLM, tables) is None
    assert list(report((VLLM,), tables)) == []


def test_a_table_that_is_gone_is_said(tmp_path: Path) -> None:
    (line,) = report((VLLM._replace(sdk="gone 1.0"),), tables_of(wheel(tmp_path, PINNED)))
    assert "no table gone" in line


def test_a_row_without_a_table_is_kept_as_it_is(tmp_path: Path) -> None:
    assert list(report((VLLM._replace(sdk=""),), {})) == []
    # Only the old image whose pipelines are gone from newer ones.
    kept = {image.tag for image in serving_images() if not image.sdk}
    assert kept
    assert all("transformers4.51.3" in tag for tag in kept)
