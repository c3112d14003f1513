"""What endpoints of a stack share, and what each has: functions, tags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import Tags
from aws_cdk.assertions import Template
from typer.testing import CliRunner

from low_latency_endpoint import (
    EndpointOptions,
    FurtherVariant,
    LowLatencyEndpointStack,
    RuntimePrivateLink,
)
from low_latency_endpoint.change.resource_changes import ResourceEffect, changes_of
from low_latency_endpoint.cli import app
from low_latency_endpoint.settings import Settings, load_settings, shared_resources

from .team_apps import an_app, serve, stack_of

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
    done = CliRunner().invoke(app, ["plan", "--settings", path])
    assert done.exit_code == 0, done.output
    assert done.output.count("10.0.0.0/23") == 1
    assert "/24" not in done.output
    whole = json.loads(CliRunner().invoke(app, ["plan", "--settings", path, "--json"]).output)
    assert whole["shared"]["subnets"]["use1-az1"] == "10.0.0.0/23"
    for each in whole["endpoints"].values():
        assert not {"subnets", "subnet_size", "addresses_per_subnet"} & {
            decision["name"] for decision in each["decisions"]
        }


NEWEST = {"python3.14", "arm64"}
ELSEWHERE = {"python3.13", "x86_64"}
PARTITIONS = [
    ("us-east-1", NEWEST),
    ("eu-central-1", NEWEST),
    (None, NEWEST),
    ("cn-north-1", ELSEWHERE),
    ("cn-northwest-1", ELSEWHERE),
    ("us-gov-west-1", ELSEWHERE),
]


@pytest.mark.parametrize(("region", "wanted"), PARTITIONS)
def test_a_function_has_what_its_partition_has(new_stack, parts, template_of, region, wanted):
    stack = new_stack(region=region)
    parts.model(stack)
    functions = template_of(stack).of_type("AWS::Lambda::Function")
    assert len(functions) == 3  # of the default group, the interfaces, and the former names
    for function in functions.values():
        assert {function["Runtime"], *function["Architectures"]} == wanted


# The interface endpoint's service has another name in China, the S3 gateway has not: as CDK's own
# tables have them (InterfaceVpcEndpointAwsService, GatewayVpcEndpointAwsService of 2.275.0).
@pytest.mark.parametrize(
    ("region", "prefix"),
    [
        ("us-east-1", "com.amazonaws"),
        ("cn-north-1", "cn.com.amazonaws"),
        ("cn-northwest-1", "cn.com.amazonaws"),
        ("us-gov-west-1", "com.amazonaws"),
    ],
)
def test_the_services_are_called_as_they_are_there(new_stack, parts, template_of, region, prefix):
    stack = new_stack(region=region)
    model = parts.model(stack)
    RuntimePrivateLink(stack, "Link", network=model.network)
    endpoints = template_of(stack).of_type("AWS::EC2::VPCEndpoint").values()
    names = {each["VpcEndpointType"]: each["ServiceName"] for each in endpoints}
    assert names == {
        "Interface": f"{prefix}.{region}.sagemaker.runtime",
        "Gateway": {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]},
    }


HOSTED = {"AWS::SageMaker::Model", "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint"}


def template_with(tags, own, *, others=None):
    """The template of the pattern with a model of its own for a variant, or for a shadow."""
    stack = stack_of(an_app(), "Ml")
    pattern = serve(stack, endpoint=EndpointOptions(endpoint_name="sentiment", tags=tags), **own)
    for key, value in (others or {}).items():
        Tags.of(pattern).add(key, value)
    return Template.from_stack(stack).to_json()


def tags_of_hosted(template):
    """Type and tags of each, in the order of the template."""
    return [
        (each["Type"], {tag["Key"]: tag["Value"] for tag in each["Properties"].get("Tags", ())})
        for each in template["Resources"].values()
        if each["Type"] in HOSTED
    ]


@pytest.fixture(params=["variants", "shadow"])
def own(request, parts):
    """A second model."""
    further = FurtherVariant(name="b", containers=[parts.container()])
    return {request.param: [further] if request.param == "variants" else further}


def test_tags_of_the_endpoint_are_those_of_configuration_and_models_too(own):
    found = tags_of_hosted(template_with({"team": "search", "cost-centre": "42"}, own))
    assert {kind for kind, _ in found} == HOSTED
    assert len(found) == 4  # two models
    assert all(tags == {"team": "search", "cost-centre": "42"} for _, tags in found)


def test_without_tags_there_are_none(own):
    assert all(not tags for _, tags in tags_of_hosted(template_with({}, own)))


def test_aspects_add_tags_and_win(own):
    others = {"team": "platform", "tier": "1"}
    found = tags_of_hosted(
        template_with({"team": "search", "cost-centre": "42"}, own, others=others)
    )
    wanted = {"team": "platform", "tier": "1", "cost-centre": "42"}
    assert [tags for _, tags in found] == [wanted] * 4


@pytest.mark.parametrize("before", [{}, {"team": "search"}], ids=["first tags", "other tags"])
def test_other_tags_replace_nothing(own, before):
    changes = changes_of(template_with(before, own), template_with({"team": "nlp"}, own))
    updated = those(changes, ResourceEffect.UPDATED)
    assert set(updated.values()) == HOSTED
    assert len(updated) == 4
    assert all(changes[name].properties == {"Tags"} for name in updated)
    assert len(those(changes, ResourceEffect.LEFT)) == len(changes) - 4


@pytest.mark.parametrize(
    ("part", "kind"),
    [("model", "AWS::SageMaker::Model"), ("configuration", "AWS::SageMaker::EndpointConfig")],
)
def test_a_part_alone(stack, parts, template_of, part, kind):
    getattr(parts, part)(stack, tags={"team": "search"})
    assert template_of(stack).only(kind)["Tags"] == [{"Key": "team", "Value": "search"}]


def those(changes, *effects):
    """Logical IDs and types of what has one of the effects."""
    return {name: change.kind for name, change in changes.items() if change.effect in effects}
