"""The SBOM is valid CycloneDX, and names what the wheel needs by version and hash."""

from __future__ import annotations

import json

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.pins import DEVELOPMENT, pins_of
from release.repository import PROJECTS
from release.sbom import write_sbom


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_it_names_what_the_wheel_needs(project, dist, tmp_path):
    (wheel,) = (dist / project.name).glob("*.whl")
    target = tmp_path / "sbom.json"
    number = write_sbom(project, wheel, target)
    text = target.read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None

    sbom = json.loads(text)
    assert sbom["metadata"]["component"]["name"] == project.name
    components = {each["name"]: each for each in sbom["components"]}
    assert len(components) == number
    (boto3,) = (each for name, each in components.items() if name == "boto3")
    pin = pins_of(DEVELOPMENT.read_text(encoding="utf-8"))["boto3"]
    assert f"=={boto3['version']}" == str(pin.requirement.specifier)
    hashes = {each["content"] for ref in boto3["externalReferences"] for each in ref["hashes"]}
    assert hashes == set(pin.hashes)
    # What boto3 needs in turn, and nothing that only tests need.
    assert "botocore" in components
    assert not {"hypothesis", "mypy", "ruff"} & set(components)
    assert write_sbom(project, wheel, target) == number
    assert target.read_text(encoding="utf-8") == text
