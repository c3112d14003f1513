"""What a settings file says is what the stack of it holds."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
import yaml

from low_latency_endpoint import LatencyTarget, LowLatencyEndpointStack
from low_latency_endpoint.plan import latency_plan
from low_latency_endpoint.settings import load_settings, variant_plans
from tests.refusals import refused

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture
def stack_of(tmp_path):
    """The stack of the shortest settings file with these shared and endpoint settings."""

    def make(endpoint=None, **shared):
        scorer = {
            "containers": [{"image": {"uri": "registry.example.com/scorer:1"}}],
            "instance_type": "ml.m5.large",
            "latency": {"p99": "200ms"},
            **(endpoint or {}),
        }
        zones = {"ids": ["use1-az1", "use1-az2"]}
        values = {"client_zones": zones, "endpoints": {"scorer": scorer}, **shared}
        path = tmp_path / "endpoint.yaml"
        path.write_text(yaml.safe_dump(values))
        return LowLatencyEndpointStack(
            cdk.App(analytics_reporting=False),
            "Serving",
            settings=load_settings(path),
            env=cdk.Environment(account="123456789012", region="us-east-1"),
        )

    return make


@pytest.fixture
def deployed(stack_of, template_of):
    """The template of such a stack."""
    return lambda endpoint=None, **shared: template_of(stack_of(endpoint, **shared))


def test_too_many_rollback_alarms_are_told_by_variant(deployed):
    """Of each variant one for p99, the only target, and one for errors: five variants fit."""
    variants = {f"v{number}": {"weight": 1} for number in range(5)}
    settings = {"throughput": {"peak_tps": 99, "tps_per_instance": 9}, "variants": variants}
    names = ", ".join(f"2 of v{number}" for number in range(5))
    with refused("LLE508", got=f"12: 2 of primary, {names}", where="Serving/scorer/Endpoint"):
        deployed(settings)
    del variants["v4"]
    deployed(settings)


def test_data_capture(deployed):
    template = deployed(
        {
            "data_capture": {
                "s3": "s3://captured/scorer",
                "capture": ["output"],
                "kms_key_arn": KEY,
                "json_content_types": ["application/json"],
                "csv_content_types": ["text/csv"],
            }
        }
    )
    assert template.only("AWS::SageMaker::EndpointConfig")["DataCaptureConfig"] == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 10,
        "DestinationS3Uri": "s3://captured/scorer",
        "KmsKeyId": KEY,
        "CaptureOptions": [{"CaptureMode": "Output"}],
        "CaptureContentTypeHeader": {
            "CsvContentTypes": ["text/csv"],
            "JsonContentTypes": ["application/json"],
        },
    }


def test_each_models_role_decrypts_with_the_key_of_its_own_data(deployed, tmp_path):
    (tmp_path / "model.tar.gz").write_bytes(b"not unpacked here")
    other = KEY.replace("1234abcd", "8765dcba")

    def served(data, key):
        image = {"uri": "registry.example.com/scorer:1"}
        return [{"image": image, "data": {**data, "kms_key_arn": key}}]

    template = deployed(
        {
            "containers": served({"s3": "s3://models/scorer/model.tar.gz"}, KEY),
            "variants": {"b": {"containers": served({"asset": "model.tar.gz"}, other)}},
        }
    )
    keys = {
        policy["Roles"][0]["Ref"]: statement["Resource"]
        for policy in template.model_policies.values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "kms:Decrypt"
    }
    roles = {
        each["PrimaryContainer"].get("ModelDataUrl", "asset"): each["ExecutionRoleArn"][
            "Fn::GetAtt"
        ][0]
        for each in template.of_type("AWS::SageMaker::Model").values()
    }
    assert keys == {roles["s3://models/scorer/model.tar.gz"]: KEY, roles["asset"]: other}


def test_an_endpoints_tags_win_over_those_of_the_stack(deployed):
    template = deployed(
        {"tags": {"team": "search", "tier": "1"}}, tags={"team": "platform", "cost": "7"}
    )
    tags = {tag["Key"]: tag["Value"] for tag in template.only("AWS::SageMaker::Endpoint")["Tags"]}
    assert tags == {"team": "search", "tier": "1", "cost": "7"}
    network = {tag["Key"]: tag["Value"] for tag in template.only("AWS::EC2::VPC")["Tags"]}
    assert network["team"] == "platform"
    assert "tier" not in network


@pytest.mark.parametrize(
    ("flow_logs", "traffic"),
    [
        ("all", "ALL"),
        ("accept", "ACCEPT"),
        ("reject", "REJECT"),
        (True, "REJECT"),
        (None, "REJECT"),
    ],
)
def test_what_the_flow_log_records(deployed, flow_logs, traffic):
    template = deployed(network={"flow_logs": flow_logs})
    assert template.only("AWS::EC2::FlowLog")["TrafficType"] == traffic


def test_no_flow_log(deployed):
    assert "AWS::EC2::FlowLog" not in deployed(network={"flow_logs": False}).types


@pytest.mark.parametrize(("given", "there"), [(None, True), (True, True), (False, False)])
def test_the_endpoint_policy(deployed, given, there):
    interface = deployed(private_link={"endpoint_policy": given}).interface()
    assert ("PolicyDocument" in interface) is there


EXISTING = {
    "network": {
        "vpc_id": "vpc-0123456789abcdef0",
        "subnets": {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"},
    }
}


@pytest.mark.parametrize(
    ("given", "wide"),
    [
        ({}, False),
        ({"private_link": {"narrow_policy": False}}, True),
        (EXISTING, True),
        ({**EXISTING, "private_link": {"narrow_policy": True}}, False),
    ],
)
def test_the_policy_names_this_stacks_endpoints_or_all(deployed, given, wide):
    interface = deployed(**given).interface()
    resources = json.dumps(interface["PolicyDocument"]["Statement"][0]["Resource"])
    assert ("endpoint/*" in resources) is wide


@pytest.mark.parametrize("given", [True, False, None])
def test_private_dns_can_be_left_out(deployed, given):
    template = deployed(private_link={"private_dns": given})
    assert template.interface()["PrivateDnsEnabled"] is (given is not False)
    urls = [
        json.dumps(output["Value"])
        for name, output in template["Outputs"].items()
        if "RegionalUrl" in name
    ]
    assert [("DnsEntries" in url) for url in urls] == [given is False]


def test_bearer_tokens_on_request(deployed):
    interface = deployed(private_link={"openai": True}).interface()
    actions = [statement["Action"] for statement in interface["PolicyDocument"]["Statement"]]
    assert actions[-1] == ["sagemaker:CallWithBearerToken"]


@pytest.mark.parametrize(
    ("given", "platform"), [({}, "linux/arm64"), ({"platform": "linux/arm64"}, "linux/arm64")]
)
def test_how_an_image_is_built(stack_of, tmp_path, given, platform):
    (tmp_path / "container").mkdir()
    (tmp_path / "container" / "Serve.Dockerfile").write_text("FROM scratch\n")
    arguments = {"MODEL": "distilbert", "PORT": 8080}
    image = {"asset": "container", "file": "Serve.Dockerfile", "build_args": arguments, **given}
    stack = stack_of({"containers": [{"image": image}], "instance_type": "ml.c7g.large"})
    directory = Path(cdk.App.of(stack).synth().directory)
    manifest = json.loads((directory / "Serving.assets.json").read_text())
    (built,) = manifest["dockerImages"].values()
    assert built["source"]["dockerFile"] == "Serve.Dockerfile"
    assert built["source"]["dockerBuildArgs"] == {"MODEL": "distilbert", "PORT": "8080"}
    assert built["source"]["platform"] == platform


@pytest.mark.parametrize(("given", "reserved"), [({}, None), ({"reserved_concurrency": 2}, 2)])
def test_the_warm_up_reserves_executions_on_request(deployed, given, reserved):
    template = deployed({"warm_up": {"payload": {"text": "hello"}, **given}})
    found = {
        logical: function.get("ReservedConcurrentExecutions")
        for logical, function in template.of_type("AWS::Lambda::Function").items()
        if "WarmUp" in logical
    }
    assert list(found.values()) == [reserved, reserved]


@pytest.fixture
def asked(monkeypatch):
    """The requests that were planned, one entry for each time."""
    requests = []
    fleet_of = latency_plan.sized_fleet
    monkeypatch.setattr(
        latency_plan,
        "sized_fleet",
        lambda request, *given, **more: (
            requests.append(request),
            fleet_of(request, *given, **more),
        )[1],
    )
    variant_plans._plan_of.cache_clear()
    return requests


def test_each_endpoint_is_planned_once_from_the_file_to_the_template(stack_of, asked):
    tag = "2.6.0-cpu-py312-ubuntu22.04"
    dlc, own = (
        {"dlc": {"repository": "pytorch-inference", "tag": tag}},
        {"ecr": {"repository": "team/scorer", "tag": tag}},
    )
    endpoint = {
        "containers": [{"image": dlc, "hostname": "first"}, {"image": own, "hostname": "second"}],
        "inference_mode": "Serial",
        "instance_type": "ml.m5.large",
        "latency": {"p99": "200ms"},
        "throughput": {"peak_tps": 100, "tps_per_instance": 20},
    }
    chosen = {
        "routing": {"prefix_aware": {"prefix_length": 4096, "concurrency_threshold": 8}},
        "inference_ami": {"custom": "newest"},
        "instances": {"min": 3, "max": 40},
        "warm_up": {"payload": {"text": "hello"}, "requests": 77},
        "scaling": {
            "metric": "concurrency",
            "concurrency_target": 4,
            "scale_in_cooldown": "9m",
            "keep_counts": True,
        },
    }
    stack = stack_of(endpoints={"plain": endpoint, "chosen": {**endpoint, **chosen}})
    cdk.App.of(stack).synth()
    assert len(asked) == 2
    assert [made.plan.request for made in stack.endpoints.values()] == asked


def test_the_plan_of_another_request_is_refused(stack, parts):
    plan = parts.pattern(stack, "First").plan
    slower = LatencyTarget(p99=cdk.Duration.millis(300))
    with refused("LLE808", got="another latency"):
        parts.pattern(stack, "Second", plan=plan, latency=slower)


def test_what_callers_need_as_parameters(deployed):
    """The same as the stack's outputs say, below the prefix and the endpoint's key."""
    template = deployed(parameters="/low-latency")
    outputs = [output["Value"] for output in template["Outputs"].values()]
    published = {each["Name"]: each for each in template.of_type("AWS::SSM::Parameter").values()}
    assert set(published) == {
        "/low-latency/scorer/endpoint-name",
        "/low-latency/scorer/url",
        "/low-latency/scorer/client-settings",
        "/low-latency/scorer/zonal-url/use1-az1",
        "/low-latency/scorer/zonal-url/use1-az2",
    }
    assert all(each["Type"] == "String" for each in published.values())
    values = [each["Value"] for each in published.values()]
    assert sorted(map(json.dumps, values)) == sorted(map(json.dumps, outputs))


def test_no_parameters_unless_they_are_asked_for(deployed):
    assert "AWS::SSM::Parameter" not in deployed().types


SHIPPED = Path(__file__).parents[2] / "endpoint.yaml"


def test_a_stage_gives_what_the_settings_leave_open(tmp_path, monkeypatch):
    text = SHIPPED.read_text(encoding="utf-8")
    (tmp_path / "endpoint.yaml").write_text(text.replace("region: us-east-1\n", ""))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "999999999999")
    monkeypatch.setenv("CDK_DEFAULT_REGION", "us-east-1")
    app = cdk.App(analytics_reporting=False)
    alone = LowLatencyEndpointStack.from_settings(app)
    assert (alone.account, alone.region) == ("999999999999", "us-east-1")
    assert (alone.node.path, alone.stack_name) == ("LowLatencyEndpoint", "LowLatencyEndpoint")
    stage = cdk.Stage(app, "Beta", env=cdk.Environment(account="123456789012", region="us-east-1"))
    staged = LowLatencyEndpointStack.from_settings(stage, id="Serving")
    assert (staged.account, staged.stack_name) == ("123456789012", "Beta-Serving")
    given = LowLatencyEndpointStack.from_settings(
        app, load_settings("endpoint.yaml"), "Given", env=cdk.Environment(account="111111111111")
    )
    assert given.account == "111111111111"


def test_settings_win_over_a_stage(tmp_path):
    path = tmp_path / "endpoint.yaml"
    path.write_text('account: "123456789012"\n' + SHIPPED.read_text(encoding="utf-8"))
    env = cdk.Environment(account="999999999999", region="us-east-1")
    stage = cdk.Stage(cdk.App(analytics_reporting=False), "Beta", env=env)
    assert LowLatencyEndpointStack.from_settings(stage, path).account == "123456789012"
