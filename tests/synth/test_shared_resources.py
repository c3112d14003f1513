"""What endpoints share: the plan's table against what is deployed, and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint import LowLatencyEndpointStack
from low_latency_endpoint.cli import app
from low_latency_endpoint.settings import Settings, load_settings, shared_resources

ENDPOINT = {
    "containers": [{"image": {"uri": "registry.example.com/scorer:1"}}],
    "instance_type": "ml.m5.large",
    "latency": {"p99": "200ms"},
    "throughput": {
        "peak_tps": 1000,
        "tps_per_instance": 200,
        "safety_factor": 0.65,
        "rise_tps_per_minute": 10,
    },
}


def settings_of(tmp_path: Path, count: int, *others: dict[str, Any], **shared: Any) -> Settings:
    """So many endpoints with 16 instances at most, and further ones."""
    path = tmp_path / "endpoint.yaml"
    endpoints = [ENDPOINT] * count + [{**ENDPOINT, **each} for each in others]
    content = {
        "client_zones": {"ids": ["use1-az1", "use1-az2"]},
        **shared,
        "endpoints": {f"scorer{number}": each for number, each in enumerate(endpoints)},
    }
    path.write_text(yaml.safe_dump(json.loads(json.dumps(content))), encoding="utf-8")
    return load_settings(path)


@pytest.mark.parametrize(
    ("count", "length"),
    [
        (1, 24),  # 16 instances: 64 + 22 = 86 addresses, but no smaller than a /24
        (3, 24),  # 48: 192 + 22 = 214
        (4, 23),  # 64: 256 + 22 = 278
        (7, 23),  # 112: 448 + 22 = 470 of 512
    ],
)
def test_the_plan_shows_the_subnets_that_are_deployed(
    tmp_path: Path, template_of: Any, count: int, length: int
) -> None:
    settings = settings_of(tmp_path, count)
    stack = LowLatencyEndpointStack(
        cdk.App(analytics_reporting=False),
        "Serving",
        settings=settings,
        env=cdk.Environment(account="123456789012", region="us-east-1"),
    )
    deployed = [
        each["Properties"]["CidrBlock"]
        for each in template_of(stack)["Resources"].values()
        if each["Type"] == "AWS::EC2::Subnet"
    ]
    shared = shared_resources(settings)
    assert sorted(shared.blocks.values()) == sorted(deployed)
    assert all(block.endswith(f"/{length}") for block in deployed)
    assert shared.prefix_length == length
    assert shared.addresses_per_subnet == count * 16 * 2 * 2 + 5 + 1 + 16


def test_quotas_are_summed_by_type_with_the_second_fleets(tmp_path: Path) -> None:
    other = {"instance_type": "ml.c5.xlarge"}
    rolling = {**other, "deployment": {"rolling": {"batch_percent": 25}}}
    shared = shared_resources(settings_of(tmp_path, 2, other, rolling))
    assert [tuple(each) for each in shared.quotas] == [
        ("ml.c5.xlarge", 32, 32 + 20),  # blue/green twice 16; a rolling update 16 and a batch of 4
        ("ml.m5.large", 32, 64),
    ]
    assert shared.connections == 4 * 200  # 1,000 a second, 200 ms each
    assert shared.interface_endpoints == 1


def test_what_is_not_known_or_not_made(tmp_path: Path) -> None:
    shared = shared_resources(
        settings_of(tmp_path, 1, {"throughput": None}, private_link={"sagemaker_api": True})
    )
    assert shared.connections is None
    assert shared.interface_endpoints == 2
    assert "In flight" not in dict(shared.lines())


def test_the_command_says_it_once_for_the_whole_file(tmp_path: Path) -> None:
    settings_of(tmp_path, 7)
    path = str(tmp_path / "endpoint.yaml")
    done = CliRunner().invoke(app, ["plan", path])
    assert done.exit_code == 0, done.output
    assert done.output.count("10.0.0.0/23") == 1
    assert "/24" not in done.output
    whole = json.loads(CliRunner().invoke(app, ["plan", path, "--json"]).output)
    assert whole["shared"]["subnets"]["use1-az1"] == "10.0.0.0/23"
    for each in whole["endpoints"].values():
        assert not {"subnets", "subnet_size", "addresses_per_subnet"} & {
            decision["name"] for decision in each["decisions"]
        }
