"""Models of the Hub: how they are served and staged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

from low_latency_endpoint import (
    Container,
    ContainerImage,
    EndpointConfiguration,
    FurtherVariant,
    HuggingFaceModel,
    InstancePool,
    InstanceType,
    LowLatencyEndpoint,
    LowLatencyEndpointStack,
    Model,
    ModelData,
    ModelOptions,
    ProductionVariant,
    Safeguards,
    StagedModel,
    VariantOptions,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.pinned_model import GB, PinnedFile, PinnedModel, staging_calls
from tests.pinned_models import EMBEDDER, LLAMA, QWEN, written_lock
from tests.refusals import refused

ZONES = ["use1-az1", "use1-az2"]


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return str(written_lock(tmp_path, QWEN, LLAMA, EMBEDDER))


@pytest.fixture
def qwen(lock: str) -> Container:
    return Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock)


def endpoint(stack, container: Container, **given: Any) -> LowLatencyEndpoint:
    arguments = {"client_zones": ZONES, "instance_type": "ml.g6.2xlarge", **given}
    return LowLatencyEndpoint(stack, "Chat", containers=[container], **arguments)


def test_one_line_gives_image_files_environment_isolation_and_time_outs(stack, template_of, qwen):
    made = endpoint(stack, qwen)
    template = template_of(stack)
    model = template.only("AWS::SageMaker::Model")
    assert model["EnableNetworkIsolation"] is True
    container = model["PrimaryContainer"]
    assert "/vllm:" in json.dumps(container["Image"])
    assert container["Environment"]["HF_HUB_OFFLINE"] == "1"
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"
    source = container["ModelDataSource"]["S3DataSource"]
    assert (source["S3DataType"], source["CompressionType"]) == ("S3Prefix", "None")
    assert json.dumps(source["S3Uri"]).count(f"hub/Qwen/Qwen3-8B/{'9' * 40}/") == 1
    variant = template.variant
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert variant["ModelDataDownloadTimeoutInSeconds"] == 600  # of 16 GB: the least that is asked
    assert made.plan.request.serving.hub is not None


def test_the_model_waits_until_all_files_are_there(stack, template_of, qwen):
    endpoint(stack, qwen)
    template = template_of(stack)
    [check] = template.of_type("Custom::HubModelCheck")
    assert check in json.dumps(template.container)


def test_time_outs_follow_the_size_unless_they_are_stated(new_stack, template_of, lock):
    # 60 GB at 100 MB/s are 600 s; as much again to spare
    big = replace(
        QWEN,
        model="acme/big",
        files=tuple(PinnedFile(f"{n}.safetensors", 15 * 10**9, "0" * 64) for n in range(4)),
    )
    path = str(written_lock(Path(lock).parent, big))
    found = []
    for given in ({}, {"model_data_download_timeout": cdk.Duration.minutes(50)}):
        stack = new_stack()
        container = Container.from_hugging_face("acme/big", lock=path)
        endpoint(stack, container, instance_type="ml.g6e.12xlarge", variant=VariantOptions(**given))
        variant = template_of(stack).variant
        found.append(variant["ModelDataDownloadTimeoutInSeconds"])
    assert found == [1200, 3000]


def test_settings_and_constructs_give_the_same(new_stack, template_of, lock, tmp_path: Path):
    (tmp_path / "endpoint.yaml").write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints: {Chat: {hugging_face: {model: Qwen/Qwen3-8B, environment: {A: 1}}, "
        "instance_type: ml.g6.2xlarge}}\n"
    )
    env = cdk.Environment(account="123456789012", region="us-east-1")
    of_settings = LowLatencyEndpointStack.from_settings(
        cdk.App(), tmp_path / "endpoint.yaml", "Serving", env=env
    )
    stack = new_stack()
    container = Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock, environment={"A": "1"})
    endpoint(stack, container)
    both = [template_of(each) for each in (of_settings, stack)]
    environments = [each.container["Environment"] for each in both]
    assert environments[0] == environments[1]
    assert environments[0]["A"] == "1"


def test_settings_name_bucket_and_token(template_of, lock, tmp_path: Path):
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf"
    (tmp_path / "endpoint.yaml").write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints:\n"
        "  chat:\n"
        "    hugging_face:\n"
        "      model: meta-llama/Llama-3.1-8B-Instruct\n"
        "      accept_license: llama3.1\n"
        "      bucket: our-models\n"
        f"      token_secret_arn: {arn}\n"
        "    instance_type: ml.g6.2xlarge\n"
    )
    template = template_of(
        LowLatencyEndpointStack.from_settings(cdk.App(), tmp_path / "endpoint.yaml")
    )
    [copied] = {
        json.dumps(each.get("TokenSecretArn"))
        for each in template.of_type("Custom::HubModelFiles").values()
    }
    assert copied == json.dumps(arn)
    assert not template.of_type("AWS::S3::Bucket")
    assert "our-models" in json.dumps(template.of_type("Custom::HubModelCheck"))


def test_without_an_instance_type_a_model_says_what_is_missing(stack, parts, qwen):
    with refused("LLE314", "instance_type"):
        Model(stack, "Model", network=parts.network(stack), containers=[qwen])


def test_a_variant_on_a_type_that_needs_another_container_is_refused(stack, parts, lock):
    container = Container.from_hugging_face(
        "Qwen/Qwen3-8B", lock=lock, instance_type=InstanceType("ml.g6e.xlarge")
    )
    model = Model(stack, "Model", network=parts.network(stack), containers=[container])

    def configured(name: str) -> EndpointConfiguration:
        variant = ProductionVariant(model=model, instance_type=name)
        return EndpointConfiguration(stack, f"On-{name}", variants=[variant])

    configured("ml.g6e.xlarge")
    configured("ml.g6e.2xlarge")
    for name, code in (("ml.g6.2xlarge", "LLE393"), ("ml.g4dn.xlarge", "LLE355")):
        with refused(code):
            configured(name)


def test_pools_share_the_context_that_all_have_room_for(stack, template_of, qwen):
    endpoint(
        stack,
        qwen,
        instance_type=[
            InstancePool(InstanceType("ml.g6e.xlarge"), 1),
            InstancePool(InstanceType("ml.g6.2xlarge"), 2),
        ],
    )
    container = template_of(stack).container
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"


def test_a_challenger_is_another_model_of_the_hub(stack, template_of, lock, qwen):
    other = Container.from_hugging_face(LLAMA.model, lock=lock, accept_license="llama3.1")
    endpoint(stack, qwen, variants=[FurtherVariant(name="b", containers=[other])])
    template = template_of(stack)
    models = template.of_type("AWS::SageMaker::Model")
    assert len(models) == 2
    assert len(template.of_type("AWS::S3::Bucket")) == 1  # of both
    assert all(each["EnableNetworkIsolation"] for each in models.values())


def test_isolation_is_off_where_it_is_said_or_another_container_is_beside_it(
    new_stack, parts, template_of, lock
):
    hub = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    other = Container(image=ContainerImage.from_uri("registry.example.com/ranker:1"))
    for containers, options in (
        ([hub], ModelOptions(network_isolation=False)),
        ([hub, other], None),
    ):
        stack = new_stack()
        parts.pattern(stack, containers=containers, instance_type="ml.c7i.xlarge", model=options)
        assert template_of(stack).only("AWS::SageMaker::Model")["EnableNetworkIsolation"] is False


def test_an_image_of_your_own_gets_the_files_and_stays_offline(stack, parts, template_of, lock):
    container = Container(
        image=ContainerImage.from_uri("registry.example.com/server:1"),
        hugging_face=HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock),
        environment={"TRANSFORMERS_OFFLINE": "0"},
    )
    Model(stack, "Model", network=parts.network(stack), containers=[container])
    made = template_of(stack).container
    assert made["Image"] == "registry.example.com/server:1"
    assert made["Environment"] == {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "0",
        "DO_NOT_TRACK": "1",
    }
    assert "ModelDataSource" in made


def test_text_embeddings_inference_lies_in_other_accounts(stack, template_of, lock):
    container = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    endpoint(stack, container, instance_type="ml.c7i.xlarge")
    image = json.dumps(template_of(stack).container["Image"])
    assert "683313688378.dkr.ecr." in image  # sagemaker-core 2.27.0, huggingface-tei-cpu.json
    anywhere = cdk.Stack(cdk.App(), "Anywhere")
    with pytest.raises(ConfigurationError, match="LLE328"):
        endpoint(anywhere, container, instance_type="ml.c7i.xlarge")


@pytest.mark.parametrize(
    "given", [{"data": "s3://models/other/"}, {"model_package": "fraud"}, {"multi_model": True}]
)
def test_a_model_of_the_hub_comes_with_its_files(lock, given: dict[str, Any]):
    hub = HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock)
    with refused("LLE368"):
        Container(hugging_face=hub, **given)


def test_bucket_and_token_are_handed_to_the_deployment(stack, template_of, lock):
    bucket = s3.Bucket(stack, "Models")
    token = secretsmanager.Secret(stack, "Token")
    container = Container.from_hugging_face(
        LLAMA.model, lock=lock, accept_license="llama3.1", bucket=bucket, token=token
    )
    endpoint(stack, container)
    template = template_of(stack)
    [secret] = template.of_type("AWS::SecretsManager::Secret")
    for each in template.of_type("Custom::HubModelFiles").values():
        assert each["TokenSecretArn"] == {"Ref": secret}
    assert len(template.of_type("AWS::S3::Bucket")) == 1


def test_the_safeguards_of_the_endpoint_hold_for_what_is_staged(stack, template_of, qwen):
    key = kms.Key(stack, "Key")
    endpoint(stack, qwen, safeguards=Safeguards(encryption_key=key, log_retention_days=365))
    template = template_of(stack)
    [bucket] = template.of_type("AWS::S3::Bucket").values()
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    [log] = [
        each
        for name, each in template.of_type("AWS::Logs::LogGroup").items()
        if name.startswith("HubModelStaging")
    ]
    assert log["RetentionInDays"] == 365
    assert "KmsKeyId" in log


USE, FILES, CHECK = "Custom::HubModelUse", "Custom::HubModelFiles", "Custom::HubModelCheck"


def pin(*sizes: int, model: str = "acme/tiny", commit: str = "7" * 40) -> PinnedModel:
    files = tuple(PinnedFile(f"{n:04}.safetensors", size, "0" * 64) for n, size in enumerate(sizes))
    return PinnedModel(model=model, revision="main", commit=commit, files=files)


# ------------------------------------------------------------------------------------ which calls


def test_files_are_packed_in_order_into_calls_of_eight_gigabytes():
    calls = staging_calls(pin(*[3 * GB] * 5, 12 * GB, 1, 1))
    assert [[each.size for each in call] for call in calls] == [
        [3 * GB, 3 * GB],
        [3 * GB, 3 * GB],
        [3 * GB],
        [12 * GB],
        [1, 1],
    ]


def test_no_call_has_more_than_two_hundred_files_and_none_is_lost():
    pinned = pin(*[1] * 450)
    calls = staging_calls(pinned)
    assert [len(call) for call in calls] == [200, 200, 50]
    assert tuple(each for call in calls for each in call) == pinned.files


def test_a_file_that_takes_too_long_is_refused_where_nobody_can_have_staged_it(new_stack):
    pinned = pin(20 * GB + 1)
    with refused("LLE352", "low-latency stage"):
        StagedModel(new_stack(), "Tiny", pinned=pinned)
    stack = new_stack()
    StagedModel(stack, "Tiny", pinned=pinned, bucket=s3.Bucket(stack, "Bucket"))


def test_more_files_than_one_event_can_name_are_refused(stack):
    with pytest.raises(ConfigurationError, match="LLE399"):
        StagedModel(stack, "Tiny", pinned=pin(*[1] * 1001))


@pytest.mark.parametrize("endpoint", ["http://huggingface.co", "https://me:hunter2@hub", ""])
def test_a_hub_without_tls_is_refused_and_its_password_not_said(stack, endpoint):
    with pytest.raises(ConfigurationError, match="LLE359") as refused:
        StagedModel(stack, "Tiny", pinned=pin(1), hub_endpoint=endpoint)
    assert "hunter2" not in str(refused.value)


# --------------------------------------------------------------------------------------- template


def test_at_most_eight_calls_run_at_once_and_the_check_waits_for_all(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(*[8 * GB] * 19))
    template = template_of(stack)
    calls = {int(each["Part"]): logical_id for logical_id, each in template.of_type(FILES).items()}
    use, check = template.only_id(USE), template.only_id(CHECK)
    assert len(calls) == 19
    for number, logical_id in calls.items():
        assert template.depends_on(logical_id) == [calls[number - 8] if number >= 8 else use]
    waits, seen = set(template.depends_on(check)), set()
    while waits:
        each = waits.pop()
        seen.add(each)
        waits |= set(template.depends_on(each)) & {*calls.values()}
    assert seen == set(calls.values())


def test_the_note_comes_after_the_rights_and_goes_before_them(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    before = {
        template["Resources"][logical_id]["Type"]
        for logical_id in template.depends_on(template.only_id(USE))
    }
    assert before == {"AWS::IAM::Policy", "AWS::S3::BucketPolicy"}


def test_a_model_waits_for_the_check_and_may_read_its_files_alone(stack, parts, template_of):
    pinned = pin(1)
    parts.serving(stack, data=ModelData.from_hugging_face(pinned))
    template = template_of(stack)
    source = template.container["ModelDataSource"]
    bucket = template.only_id("AWS::S3::Bucket")
    assert source["S3DataSource"] == {
        "CompressionType": "None",
        "S3DataType": "S3Prefix",
        "S3Uri": {
            "Fn::Join": [
                "",
                ["s3://", {"Fn::GetAtt": [template.only_id(CHECK), "Bucket"]}, f"/{pinned.prefix}"],
            ]
        },
    }
    reading = [
        statement
        for statement in template.model_rights
        if statement["Action"] in ("s3:GetObject", "s3:ListBucket")
    ]
    arn = {"Fn::GetAtt": [bucket, "Arn"]}
    assert reading == [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": {"Fn::Join": ["", [arn, f"/{pinned.prefix}*"]]},
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": f"{pinned.prefix}*"}},
        },
    ]


def test_models_of_a_stack_share_function_and_bucket_and_the_same_commit_its_files(
    stack, parts, template_of
):
    for number, model in enumerate(["acme/tiny", "acme/tiny", "acme/other"]):
        data = ModelData.from_hugging_face(pin(1, model=model))
        parts.serving(stack, f"Model{number}", data=data)
    template = template_of(stack)
    assert len(template.of_type(USE)) == 2
    assert len(template.of_type("AWS::S3::Bucket")) == 1
    tokens = {json.dumps(each["ServiceToken"]) for each in template.of_type(FILES).values()}
    assert len(tokens) == 1


def test_two_lists_of_files_for_one_commit_lie_apart(stack, parts, template_of):
    for number, pinned in enumerate([pin(1), pin(1, 2)]):
        data = ModelData.from_hugging_face(pinned)
        parts.serving(stack, f"Model{number}", data=data)
    uses = template_of(stack).of_type(USE).values()
    assert len({each["FileList"] for each in uses}) == 2


def rights(template: Any) -> list[Any]:
    return [
        statement
        for policy in template.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def test_the_function_may_touch_two_prefixes_of_the_bucket_and_nothing_else(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    arn = {"Fn::GetAtt": [template.only_id("AWS::S3::Bucket"), "Arn"]}
    below = [{"Fn::Join": ["", [arn, f"/{prefix}/*"]]} for prefix in ("hub", "users")]
    assert [(each["Action"], each["Resource"]) for each in rights(template)] == [
        (["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"], below),
        (["s3:ListBucket"], arn),
        (["s3:ListBucketMultipartUploads"], arn),
    ]
    assert rights(template)[1]["Condition"] == {"StringLike": {"s3:prefix": ["hub/*", "users/*"]}}


def test_the_token_is_a_secrets_arn_and_the_function_may_read_that_secret(stack, template_of):
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hf-AbCdEf"
    secret = secretsmanager.Secret.from_secret_complete_arn(stack, "Token", arn)
    StagedModel(stack, "Tiny", pinned=pin(1), token=secret)
    template = template_of(stack)
    assert template.only(FILES)["TokenSecretArn"] == arn
    (reading,) = [each for each in rights(template) if "secretsmanager" in each["Action"][0]]
    assert (reading["Action"], reading["Resource"]) == (["secretsmanager:GetSecretValue"], arn)


def test_the_bucket_is_private_encrypted_and_forgets_what_is_half_written(stack, template_of):
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    Safeguards(encryption_key=key).apply_to(stack)
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    bucket = template.only("AWS::S3::Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "ExpirationInDays" not in rule
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    arn = {"Fn::GetAtt": [template.only_id("AWS::KMS::Key"), "Arn"]}
    assert encryption["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] == arn
    assert any(each["Resource"] == arn for each in rights(template))


@pytest.mark.parametrize(
    ("policy", "kept"), [(RemovalPolicy.DESTROY, "Delete"), (RemovalPolicy.RETAIN, "Retain")]
)
def test_retaining_keeps_the_bucket_and_the_note_that_keeps_the_files(
    stack, template_of, policy, kept
):
    StagedModel(stack, "Tiny", pinned=pin(1), removal_policy=policy)
    template = template_of(stack)
    for kind in (USE, "AWS::S3::Bucket"):
        assert template["Resources"][template.only_id(kind)]["DeletionPolicy"] == kept


def test_the_functions_code_is_the_package_and_imports_nothing_of_ours(stack):
    StagedModel(stack, "Tiny", pinned=pin(1))
    app = stack.node.root
    assert isinstance(app, cdk.App)
    assembly = app.synth()
    packages = list(cdk_folders(assembly.directory))
    assert [sorted(each) for each in packages] == [
        ["__init__.py", "addresses.py", "bucket.py", "handler.py", "hub.py"]
    ]
    for code in packages[0].values():
        assert "from .." not in code
        assert "low_latency_endpoint." not in code


def cdk_folders(directory: str) -> Any:
    from pathlib import Path

    for package in Path(directory).glob("asset.*/staging_function"):
        yield {each.name: each.read_text() for each in package.iterdir()}
