"""What a container serves, and with what: images and model data."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import App, CfnParameter
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from low_latency_endpoint import Container, ContainerImage, ModelData
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused

from .conftest import by_action

PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
DLC = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")
DLC_NAME = ":".join(DLC)


def served_image(stack, parts, template_of, image):
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
    _, image, repositories = served_image(stack, parts, template_of, ContainerImage.from_uri(uri))
    assert image == uri
    assert repositories == [in_ecr("111122223333", "team/scorer", "us-east-1")]


@pytest.mark.parametrize("uri", ["registry.example.com/scorer:7", "scorer"])
def test_by_uri_elsewhere_nothing_can_be_granted(stack, parts, template_of, uri):
    _, image, repositories = served_image(stack, parts, template_of, ContainerImage.from_uri(uri))
    assert image == uri
    assert repositories == []


@pytest.mark.parametrize(("tag", "separator"), [("1.0", ":"), (f"sha256:{'0' * 64}", "@")])
def test_by_repository(stack, parts, template_of, tag, separator):
    repository = ecr.Repository(stack, "Images", image_tag_mutability=ecr.TagMutability.IMMUTABLE)
    image = ContainerImage.from_ecr_repository(repository, tag)
    template, uri, repositories = served_image(stack, parts, template_of, image)
    made = template.only_id("AWS::ECR::Repository")
    assert repositories == [{"Fn::GetAtt": [made, "Arn"]}]
    assert {"Ref": made} in uri["Fn::Join"][1]
    assert uri["Fn::Join"][1][-1] == f"{separator}{tag}"


def test_by_repository_of_another_account(stack, parts, template_of):
    repository = ecr.Repository.from_repository_arn(
        stack, "Shared", "arn:aws:ecr:us-east-1:111122223333:repository/scorer"
    )
    _, uri, repositories = served_image(
        stack, parts, template_of, ContainerImage.from_ecr_repository(repository, "7")
    )
    assert repositories == ["arn:aws:ecr:us-east-1:111122223333:repository/scorer"]
    assert json.dumps(uri).count("111122223333.dkr.ecr.us-east-1.") == 1


def test_by_dockerfile(stack, parts, template_of, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    image = ContainerImage.from_asset(
        str(tmp_path), build_args={"MODEL": "distilbert"}, platform=ecr_assets.Platform.LINUX_ARM64
    )
    _, uri, repositories = served_image(stack, parts, template_of, image)
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
    _, uri, repositories = served_image(stack, parts, template_of, ContainerImage.from_dlc(*DLC))
    region_and_suffix = [{"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}]
    assert uri == {"Fn::Join": ["", [f"{account}.dkr.ecr.", *region_and_suffix, f"/{DLC_NAME}"]]}
    assert repositories == [in_ecr(account, DLC[0])]


def test_deep_learning_container_where_the_region_is_open(new_stack, parts, template_of):
    stack = new_stack(region=None)
    template, uri, repositories = served_image(
        stack, parts, template_of, ContainerImage.from_dlc(*DLC)
    )
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
    _, uri, repositories = served_image(stack, parts, template_of, image)
    assert uri["Fn::Join"][1][0] == "111122223333.dkr.ecr."
    assert repositories == [in_ecr("111122223333", DLC[0])]


def test_deep_learning_container_where_aws_has_none(new_stack, parts):
    stack = new_stack(region="xx-north-1")
    with refused("LLE328", "il-central-1", got="xx-north-1"):
        parts.model(stack)


def served_data(stack, parts, template_of, data, **given):
    """The template, the container in it, and the statements on S3."""
    parts.serving(stack, data=data, **given)
    template = template_of(stack)
    statements = [
        statement
        for statement in template.model_rights
        if str(statement["Action"]).startswith("s3:")
    ]
    return template, template.container, statements


def in_s3(tail):
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{tail}"]]}


def get(tail):
    return {"Action": "s3:GetObject", "Effect": "Allow", "Resource": in_s3(tail)}


def test_an_archive_by_uri(stack, parts, template_of):
    uri = "s3://models/distilbert/model.tar.gz"
    _, container, statements = served_data(stack, parts, template_of, ModelData.from_uri(uri))
    assert container["ModelDataUrl"] == uri
    assert "ModelDataSource" not in container
    assert statements == [get("models/distilbert/model.tar.gz")]


def test_an_uncompressed_prefix_by_uri(stack, parts, template_of):
    data = ModelData.from_uri("s3://models/llama/")
    _, container, statements = served_data(stack, parts, template_of, data)
    assert "ModelDataUrl" not in container
    assert container["ModelDataSource"] == {
        "S3DataSource": {
            "S3Uri": "s3://models/llama/",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
        }
    }
    assert statements == [
        get("models/llama/*"),
        {
            "Action": "s3:ListBucket",
            "Effect": "Allow",
            "Resource": in_s3("models"),
            "Condition": {"StringLike": {"s3:prefix": "llama/*"}},
        },
    ]


@pytest.mark.parametrize(
    ("tail", "kind", "compression"),
    [("llama/", "S3Prefix", "None"), ("llama/model.tar.gz", "S3Object", "Gzip")],
)
def test_an_agreement_that_is_accepted(stack, parts, template_of, tail, kind, compression):
    uri = f"s3://jumpstart-private-cache-prod-us-east-1/{tail}"
    data = ModelData.from_uri(uri, accept_eula=True)
    _, container, statements = served_data(stack, parts, template_of, data)
    assert "ModelDataUrl" not in container  # which has no place for it
    assert container["ModelDataSource"]["S3DataSource"] == {
        "S3Uri": uri,
        "S3DataType": kind,
        "CompressionType": compression,
        "ModelAccessConfig": {"AcceptEula": True},
    }
    assert [each["Action"] for each in statements] == (
        ["s3:GetObject", "s3:ListBucket"] if kind == "S3Prefix" else ["s3:GetObject"]
    )


def test_an_agreement_for_data_of_a_bucket(stack, parts, template_of):
    bucket = s3.Bucket.from_bucket_name(stack, "Models", "models")
    data = ModelData.from_s3(bucket, "llama/", accept_eula=True)
    _, container, _ = served_data(stack, parts, template_of, data)
    source = container["ModelDataSource"]["S3DataSource"]
    assert source["ModelAccessConfig"] == {"AcceptEula": True}


@pytest.mark.parametrize(
    "given", [{"multi_model": True}, {"model_package": "fraud"}], ids=["many", "package"]
)
def test_an_agreement_that_would_be_lost_is_refused(given):
    data = ModelData.from_uri("s3://models/tenants/", accept_eula=True)
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1")
    with pytest.raises(ConfigurationError, match="LLE318"):
        Container(image=image, data=data, **given)


def test_a_multi_model_prefix(stack, parts, template_of):
    data = ModelData.from_uri("s3://models/tenants/")
    _, container, statements = served_data(stack, parts, template_of, data, multi_model=True)
    assert container["Mode"] == "MultiModel"
    assert container["ModelDataUrl"] == "s3://models/tenants/"
    assert "ModelDataSource" not in container  # which AWS refuses with multi-model
    assert [statement["Action"] for statement in statements] == ["s3:GetObject", "s3:ListBucket"]


def test_an_object_over_https_is_for_the_bucket_to_allow(stack, parts, template_of):
    uri = "https://models.s3.us-east-1.amazonaws.com/model.tar.gz"
    _, container, statements = served_data(stack, parts, template_of, ModelData.from_uri(uri))
    assert container["ModelDataUrl"] == uri
    assert statements == []


@pytest.mark.parametrize("key", ["distilbert/model.tar.gz", "/distilbert/model.tar.gz"])
def test_an_object_of_a_bucket(stack, parts, template_of, key):
    bucket = s3.Bucket.from_bucket_name(stack, "Models", "models")
    data = ModelData.from_s3(bucket, key)
    _, container, statements = served_data(stack, parts, template_of, data)
    assert container["ModelDataUrl"] == "s3://models/distilbert/model.tar.gz"
    assert [statement["Action"] for statement in statements] == ["s3:GetObject"]
    assert "models/distilbert/model.tar.gz" in json.dumps(statements)


def test_a_prefix_of_an_encrypted_bucket_made_in_the_app(stack, parts, template_of):
    key = kms.Key(stack, "Key")
    bucket = s3.Bucket(stack, "Models", encryption_key=key, enforce_ssl=True)
    data = ModelData.from_s3(bucket, "llama/")
    parts.serving(stack, data=data)
    template = template_of(stack)
    container = template.container
    made = template.only_id("AWS::S3::Bucket")
    source = container["ModelDataSource"]["S3DataSource"]
    assert source["S3Uri"] == {"Fn::Join": ["", ["s3://", {"Ref": made}, "/llama/"]]}
    # The role's permission to decrypt exists before the model does, too.
    rights = by_action(template.model_rights)
    for action, resource in {
        "s3:GetObject": {"Fn::Join": ["", [{"Fn::GetAtt": [made, "Arn"]}, "/llama/*"]]},
        "s3:ListBucket": {"Fn::GetAtt": [made, "Arn"]},
        "kms:Decrypt": {"Fn::GetAtt": [template.only_id("AWS::KMS::Key"), "Arn"]},
    }.items():
        assert rights[action]["Resource"] == resource


def test_an_encrypted_bucket_and_a_role_of_the_users(stack, parts, template_of):
    bucket = s3.Bucket(
        stack, "Models", encryption_key=kms.Key(stack, "Key", enable_key_rotation=True)
    )
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    data = ModelData.from_s3(bucket, "model.tar.gz")
    parts.model(stack, role=role, containers=[parts.container(data=data)])
    template = template_of(stack)
    policies = template.model_policies.values()
    assert [policy["Roles"] for policy in policies] == [["hosting"]] * 5
    assert "kms:Decrypt" in json.dumps(template.model_rights)


KEY = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000"
DECRYPTING = {"Action": "kms:Decrypt", "Effect": "Allow", "Resource": KEY}


@pytest.mark.parametrize("uri", ["s3://models/distilbert/model.tar.gz", "s3://models/llama/"])
@pytest.mark.parametrize("stated_role", [False, True])
def test_data_by_uri_that_a_key_of_the_users_encrypts(stack, parts, template_of, uri, stated_role):
    data = ModelData.from_uri(uri, key=kms.Key.from_key_arn(stack, "Key", KEY))
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    parts.model(
        stack, containers=[parts.container(data=data)], **({"role": role} if stated_role else {})
    )
    rights = template_of(stack).model_rights
    assert [each for each in rights if "kms:" in json.dumps(each)] == [DECRYPTING]


def test_data_at_a_place_known_at_deployment_only_is_decrypted_too(stack, parts, template_of):
    somewhere = CfnParameter(stack, "Somewhere").value_as_string
    data = ModelData.from_uri(somewhere, key=kms.Key.from_key_arn(stack, "Key", KEY))
    parts.serving(stack, data=data)
    assert DECRYPTING in template_of(stack).model_rights


def test_without_a_key_nothing_is_decrypted(stack, parts, template_of):
    data = ModelData.from_uri("s3://models/distilbert/model.tar.gz")
    parts.serving(stack, data=data)
    assert "kms:" not in json.dumps(template_of(stack).model_rights)


def test_an_archive_in_a_bootstrap_bucket_with_a_key_of_the_users(
    stack, parts, template_of, tmp_path
):
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(b"not unpacked here")
    arn = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000"
    key = kms.Key.from_key_arn(stack, "Key", arn)
    data = ModelData.from_asset(str(archive), key=key)
    parts.serving(stack, data=data)
    rights = template_of(stack).model_rights
    assert [each["Resource"] for each in rights if each["Action"] == "kms:Decrypt"] == [arn]


def test_an_archive_on_this_machine(stack, parts, tmp_path):
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(b"not unpacked here")
    parts.serving(stack, data=ModelData.from_asset(str(archive)))
    assembly = App.of(stack).synth()
    template = json.loads((tmp_path / assembly.directory / "Serving.template.json").read_text())
    (model,) = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::SageMaker::Model"
    ]
    # ModelDataUrl wants a name that ends with .tar.gz, and the CDK uploads <hash>.gz.
    assert "ModelDataUrl" not in model["PrimaryContainer"]
    source = model["PrimaryContainer"]["ModelDataSource"]["S3DataSource"]
    assert source["S3Uri"].startswith("s3://cdk-hnb659fds-assets-123456789012-us-east-1/")
    assert (source["S3DataType"], source["CompressionType"]) == ("S3Object", "Gzip")
    manifest = json.loads((tmp_path / assembly.directory / "Serving.assets.json").read_text())
    packagings = [file["source"]["packaging"] for file in manifest["files"].values()]
    assert "zip" not in packagings


def test_no_data_needs_no_permission(stack, parts, template_of):
    _, container, statements = served_data(stack, parts, template_of, None)
    assert set(container) == {"Image"}
    assert statements == []
