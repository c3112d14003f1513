"""docs/local-aws.md says what is emulated, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from low_latency_endpoint.local_aws import resources
from low_latency_endpoint.local_aws.resources.resource_type import REGISTRY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "local-aws.md"


def test_the_table_of_types_equals_the_registry():
    resources.load()
    rows = re.findall(r"^\| `([A-Za-z0-9:]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {
        name: ", ".join(sorted(kind.properties)) if name != _CUSTOM else "all"
        for name, kind in REGISTRY.items()
    }
    assert [name for name, _ in rows] == sorted(REGISTRY)


_CUSTOM = "AWS::CloudFormation::CustomResource"


def test_every_module_of_types_is_loaded():
    folder = Path(resources.__file__).parent
    makers = {path.stem for path in folder.glob("*.py") if "@emulated" in path.read_text()}
    assert makers == set(resources.MODULES)
