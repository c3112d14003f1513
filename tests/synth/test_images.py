"""Where a container's image comes from, and what the model's role may pull."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets

from low_latency_endpoint import ContainerImage
from tests.refusals import refused

PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
DLC = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")
DLC_NAME = ":".join(DLC)


def served(stack, parts, template_of, image):
    """The template, the image in it, and the repositories that may be pulled from."""
    parts.serving(stack, image=image)
    template = template_of(stack)
    repositories = [
        statement["Resource"] for statement in template.model_rights if statement["Action"] == PULL
    ]
    model = template.only("AWS::SageMaker::Model")
    return template, model["PrimaryContainer"]["Image"], repositories


def in_ecr(account, repository, region=None):
    region = region or {"Ref": "AWS::Region"}
    joined = ["arn:", {"Ref": "AWS::Partition"}, ":ecr:"]
    for part in (region, ":", account, f":repository/{repository}"):
        if isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return {"Fn::Join": ["", joined]}


@pytest.mark.parametrize("version", [":7", f"@sha256:{'0' * 64}"])
def test_by_uri_in_ecr(stack, parts, template_of, version):
    uri = f"111122223333.dkr.ecr.us-east-1.amazonaws.com/team/scorer{version}"
    _, image, repositories = served(stack, parts, template_of, ContainerImage.from_uri(uri))
    assert image == uri
    assert repositories == [in_ecr("111122223333", "team/scorer", "us-east-1")]


@pytest.mark.parametrize("uri", ["registry.example.com/scorer:7", "scorer"])
def test_by_uri_elsewhere_nothing_can_be_granted(stack, parts, template_of, uri):
    _, image, repositories = served(stack, parts, template_of, ContainerImage.from_uri(uri))
    assert image == uri
    assert repositories == []


@pytest.mark.parametrize(("tag", "separator"), [("1.0", ":"), (f"sha256:{'0' * 64}", "@")])
def test_by_repository(stack, parts, template_of, tag, separator):
    repository = ecr.Repository(stack, "Images", image_tag_mutability=ecr.TagMutability.IMMUTABLE)
    image = ContainerImage.from_ecr_repository(repository, tag)
    template, uri, repositories = served(stack, parts, template_of, image)
    made = template.only_id("AWS::ECR::Repository")
    assert repositories == [{"Fn::GetAtt": [made, "Arn"]}]
    assert {"Ref": made} in uri["Fn::Join"][1]
    assert uri["Fn::Join"][1][-1] == f"{separator}{tag}"


def test_by_repository_of_another_account(stack, parts, template_of):
    repository = ecr.Repository.from_repository_arn(
        stack, "Shared", "arn:aws:ecr:us-east-1:111122223333:repository/scorer"
    )
    _, uri, repositories = served(
        stack, parts, template_of, ContainerImage.from_ecr_repository(repository, "7")
    )
    assert repositories == ["arn:aws:ecr:us-east-1:111122223333:repository/scorer"]
    assert json.dumps(uri).count("111122223333.dkr.ecr.us-east-1.") == 1


def test_by_dockerfile(stack, parts, template_of, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    image = ContainerImage.from_asset(
        str(tmp_path), build_args={"MODEL": "distilbert"}, platform=ecr_assets.Platform.LINUX_ARM64
    )
    _, uri, repositories = served(stack, parts, template_of, image)
    bootstrap = "cdk-hnb659fds-container-assets-123456789012-us-east-1"
    assert f".dkr.ecr.us-east-1.${{AWS::URLSuffix}}/{bootstrap}:" in uri["Fn::Sub"]
    assert len(repositories) == 1
    assert bootstrap in json.dumps(repositories)


def asset_manifest(stack):
    assembly = cdk.App.of(stack).synth()
    with open(f"{assembly.directory}/Serving.assets.json") as file:
        return json.load(file)


def test_by_dockerfile_as_it_is_to_be_built(stack, parts, tmp_path):
    (tmp_path / "Serve.Dockerfile").write_text("FROM scratch\n")
    image = ContainerImage.from_asset(
        str(tmp_path),
        file="Serve.Dockerfile",
        build_args={"MODEL": "distilbert"},
        platform=ecr_assets.Platform.LINUX_ARM64,
    )
    parts.serving(stack, image=image)
    (built,) = asset_manifest(stack)["dockerImages"].values()
    assert built["source"]["dockerFile"] == "Serve.Dockerfile"
    assert built["source"]["dockerBuildArgs"] == {"MODEL": "distilbert"}
    assert built["source"]["platform"] == "linux/arm64"


@pytest.mark.parametrize(
    ("type", "platform"),
    [("ml.m5.xlarge", "linux/amd64"), ("ml.c7g.xlarge", "linux/arm64"), ("ml.m99.xlarge", None)],
)
def test_by_dockerfile_for_the_architecture_of_the_instances(
    stack, parts, tmp_path, type, platform
):
    """And not for that of the machine that happens to build it."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    container = parts.container(image=ContainerImage.from_asset(str(tmp_path)))
    parts.pattern(stack, containers=[container], instance_type=type)
    (built,) = asset_manifest(stack)["dockerImages"].values()
    assert built["source"].get("platform") == platform


def platform_warnings(configuration):
    return [entry for entry in configuration.node.metadata if "imagePlatform" in str(entry.data)]


@pytest.mark.parametrize(("given", "doubtful"), [({}, True), ({"architecture": "x86_64"}, False)])
def test_by_dockerfile_where_the_machine_that_builds_decides(
    stack, parts, tmp_path, given, doubtful
):
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    container = parts.container(image=ContainerImage.from_asset(str(tmp_path)))
    model = parts.model(stack, containers=[container], **given)
    configuration = parts.configuration(stack, variants=[parts.variant(stack, model=model)])
    assert bool(platform_warnings(configuration)) == doubtful


# us-east-1 and eu-south-1 stand in CDK's table of registries, the others do not.
@pytest.mark.parametrize(
    ("region", "account"),
    [
        ("us-east-1", "763104351884"),
        ("eu-south-1", "692866216735"),
        ("il-central-1", "780543022126"),
        ("af-south-1", "626614931356"),
        ("mx-central-1", "637423239942"),
    ],
)
def test_deep_learning_container_of_the_region(new_stack, parts, template_of, region, account):
    stack = new_stack(region=region)
    _, uri, repositories = served(stack, parts, template_of, ContainerImage.from_dlc(*DLC))
    region_and_suffix = [{"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}]
    assert uri == {"Fn::Join": ["", [f"{account}.dkr.ecr.", *region_and_suffix, f"/{DLC_NAME}"]]}
    assert repositories == [in_ecr(account, DLC[0])]


def test_deep_learning_container_where_the_region_is_open(new_stack, parts, template_of):
    stack = new_stack(region=None)
    template, uri, repositories = served(stack, parts, template_of, ContainerImage.from_dlc(*DLC))
    ((name, accounts),) = template["Mappings"].items()
    assert accounts["us-east-1"] == {"account": "763104351884"}
    assert accounts["il-central-1"] == {"account": "780543022126"}
    find = {"Fn::FindInMap": [name, {"Ref": "AWS::Region"}, "account"]}
    assert find in uri["Fn::Join"][1]
    assert repositories == [in_ecr(find, DLC[0])]


def test_two_models_share_the_mapping(new_stack, parts, template_of):
    stack = new_stack(region=None)
    for name in ("First", "Second"):
        parts.model(stack, name)
    assert len(template_of(stack)["Mappings"]) == 1


def test_deep_learning_container_of_another_account(stack, parts, template_of):
    image = ContainerImage.from_dlc(*DLC, account="111122223333")
    _, uri, repositories = served(stack, parts, template_of, image)
    assert uri["Fn::Join"][1][0] == "111122223333.dkr.ecr."
    assert repositories == [in_ecr("111122223333", DLC[0])]


def test_deep_learning_container_where_aws_has_none(new_stack, parts):
    stack = new_stack(region="xx-north-1")
    with refused("LLE328", "il-central-1", got="xx-north-1"):
        parts.model(stack)
