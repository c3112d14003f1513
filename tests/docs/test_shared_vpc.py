"""Both stacks of docs/how-to/shared-vpc.md, as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .console_blocks import ROOT

TEXT = (ROOT / "docs/how-to/shared-vpc.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The templates by the names of their stacks."""
    found = {}
    for block in BLOCKS:
        names: dict[str, Any] = {}
        folder = tmp_path_factory.mktemp("assembly")
        exec(block.replace("App()", f"App(outdir={str(folder)!r})"), names)
        for path in Path(folder).glob("*.template.json"):
            found[path.name.partition(".")[0]] = json.loads(path.read_text("utf-8"))
    return found


def types(template: dict[str, Any]) -> set[str]:
    return {resource["Type"] for resource in template["Resources"].values()}


def test_the_owner_makes_what_only_the_owner_may(templates):
    owner, participant = templates["SharedNetwork"], templates["Ranking"]
    assert {"AWS::EC2::VPCEndpoint", "AWS::RAM::ResourceShare"} <= types(owner)
    theirs = {"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::VPCEndpoint"}
    assert not (theirs | {"AWS::EC2::SecurityGroupIngress"}) & types(participant)
    assert "AWS::SageMaker::Endpoint" in types(participant)


def test_each_names_the_others_account(templates):
    [policy] = [
        resource["Properties"]["PolicyDocument"]
        for resource in templates["SharedNetwork"]["Resources"].values()
        if resource["Type"] == "AWS::EC2::VPCEndpoint" and "Link" in json.dumps(resource)
    ]
    assert "123456789012" in json.dumps(policy)
    assert ":210987654321:subnet/subnet-0123456789abcdef0" in json.dumps(templates["Ranking"])


def test_zones_are_named_by_their_ids(templates):
    assert "use1-az1" in json.dumps(templates["SharedNetwork"])
