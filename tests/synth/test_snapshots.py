"""Templates of whole stacks, as they were agreed on; `make snapshots` accepts those of today."""

from __future__ import annotations

import re
from typing import Any

import pytest
from syrupy.extensions.json import JSONSnapshotExtension

from .conftest import WHOLE_STACKS

#: All but what another one has as well: a pattern makes its network by zone IDs, and two patterns
#: are it twice (what they share: test_shared_resources.py, test_composition.py).
SNAPSHOTS = [name for name in WHOLE_STACKS if name not in ("two-patterns", "network-by-zone-id")]
ASSET_HASH = re.compile(r"[0-9a-f]{64}")


@pytest.fixture
def snapshot(snapshot):
    """One file for each template, so that a change shows up as a diff of that template."""
    return snapshot.use_extension(JSONSnapshotExtension)


def without_hashes(value: Any) -> Any:
    """The template without what changes with the contents of assets, not with our code."""
    if isinstance(value, dict):
        return {key: without_hashes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_hashes(item) for item in value]
    return ASSET_HASH.sub("<asset hash>", value) if isinstance(value, str) else value


def with_defaults(template: dict[str, Any]) -> dict[str, Any]:
    """The template with what older releases of CDK leave to CloudWatch: metrics return data."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            for metric in resource["Properties"].get("Metrics", ()):
                metric.setdefault("ReturnData", True)
    return template


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_template(stack, fill, template_of, name, snapshot):
    fill(stack, name)
    template = with_defaults(without_hashes(dict(template_of(stack))))
    # CDK's own, the same in every stack: which bootstrap version it needs.
    del template["Parameters"]["BootstrapVersion"], template["Rules"]["CheckBootstrapVersion"]
    assert template == snapshot


def test_hashes_of_assets_are_left_out():
    template = {"Code": {"S3Key": "0" * 64 + ".zip"}, "Layers": [f"s3://b/{'a' * 64}"]}
    assert without_hashes(template) == {
        "Code": {"S3Key": "<asset hash>.zip"},
        "Layers": ["s3://b/<asset hash>"],
    }
