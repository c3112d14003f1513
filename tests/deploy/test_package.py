"""A package of ``low-latency package``, deployed by a process that has boto3 and no CDK."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from examples.demo_surroundings import uploaded
from local_sagemaker import LocalAws

SETTINGS = {
    "stack_name": "Packaged",
    "region": "us-east-1",
    "parameters": "/low-latency",
    "client_zones": {"ids": ["use1-az1", "use1-az2"]},
    "endpoints": {
        "scorer": {
            "endpoint_name": "packaged-scorer",
            "containers": [
                {
                    "image": {"uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/scorer:1"},
                    "data": {"s3": "s3://packaged-models/model.tar.gz"},
                }
            ],
            "instance_type": "ml.m5.large",
            "latency": {"p99": "5s"},
            "warm_up": {"payload": {"data": {}}, "requests": 8},
        }
    },
}

# What README.md says with the AWS CLI, said with boto3.
DEPLOY = """
import boto3, json, pathlib, sys
folder, bucket = pathlib.Path(sys.argv[1]), sys.argv[2]
manifest = json.loads((folder / "manifest.json").read_text())
s3, cloudformation = boto3.client("s3"), boto3.client("cloudformation")
for path, key in manifest["assets"].items():
    s3.upload_file(str(folder / path), bucket, key)
s3.upload_file(str(folder / manifest["template"]), bucket, "template.json")
cloudformation.create_stack(
    StackName=manifest["stack"],
    TemplateURL=f"https://{bucket}.s3.amazonaws.com/template.json",
    Capabilities=manifest["capabilities"],
    Parameters=[{"ParameterKey": "AssetBucket", "ParameterValue": bucket}],
)
cloudformation.get_waiter("stack_create_complete").wait(
    StackName=manifest["stack"], WaiterConfig={"Delay": 1, "MaxAttempts": 200}
)
assert not {"aws_cdk", "jsii", "low_latency_endpoint"} & set(sys.modules)
"""


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        **more,  # type: ignore[call-overload]
    )


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("app") / "endpoint.yaml"
    path.write_text(yaml.safe_dump(SETTINGS))
    return path


@pytest.fixture(scope="module")
def package(settings: Path) -> Path:
    folder = settings.parent / "package"
    command = Path(sys.executable).with_name("low-latency")
    done = run(command, "package", settings, "-o", folder, "--prefix", "releases/7")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_package_is_whole_and_asks_for_no_bootstrap(package: Path) -> None:
    template = (package / "template.json").read_text(encoding="utf-8")
    manifest = json.loads((package / "manifest.json").read_text(encoding="utf-8"))
    assert "cdk-hnb659fds" not in template
    assert list(json.loads(template)["Parameters"]) == ["AssetBucket"]
    functions = [
        each["Properties"]["Code"]
        for each in json.loads(template)["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    ]
    keys = {code["S3Key"] for code in functions if "S3Key" in code}
    assert keys == set(manifest["assets"].values())
    assert all(key.startswith("releases/7/") for key in keys)
    for path in manifest["assets"]:
        with zipfile.ZipFile(package / path) as archive:
            assert archive.testzip() is None
            assert any(name.endswith(".py") for name in archive.namelist())
    readme = (package / "README.md").read_text(encoding="utf-8")
    for each in ('"s3://$BUCKET/releases/7/"', "--stack-name Packaged", *manifest["capabilities"]):
        assert each in readme


def test_another_process_deploys_it_without_the_cdk(package: Path, aws: LocalAws) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="anyones-assets")
    aws.add_image("123456789012.dkr.ecr.us-east-1.amazonaws.com/scorer:1")
    with uploaded(aws, ["s3://packaged-models/model.tar.gz"]):
        done = run(sys.executable, "-c", DEPLOY, package, "anyones-assets", env=aws.environment())
    assert done.returncode == 0, done.stderr
    found = aws.client("sagemaker").describe_endpoint(EndpointName="packaged-scorer")
    assert found["EndpointStatus"] == "InService"
    # Callers in any language find it by a name that they know.
    ssm = aws.client("ssm")
    answer = ssm.get_parameters_by_path(Path="/low-latency/scorer", Recursive=True)
    values = {each["Name"]: each["Value"] for each in answer["Parameters"]}
    assert values["/low-latency/scorer/endpoint-name"] == "packaged-scorer"
    assert values["/low-latency/scorer/url"].startswith("https://runtime.sagemaker.us-east-1.")
    assert "use1-az2" in " ".join(values)
    assert json.loads(values["/low-latency/scorer/client-settings"])["tcp_keepalive"] is True
    # An update of the prefix or a delete takes them along.
    aws.client("cloudformation").delete_stack(StackName="Packaged")
    aws.client("cloudformation").get_waiter("stack_delete_complete").wait(
        StackName="Packaged", WaiterConfig={"Delay": 1, "MaxAttempts": 200}
    )
    answer = ssm.get_parameters_by_path(Path="/low-latency/scorer", Recursive=True)
    assert not answer["Parameters"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image": {"asset": "container"}}, "cannot be in a package"),
        ({"image": {"uri": "nothing"}, "hostname": "-"}, "LLE303"),
    ],
)
def test_what_cannot_be_packaged_is_said(tmp_path: Path, change: dict, said: str) -> None:
    (tmp_path / "container").mkdir()
    (tmp_path / "container" / "Dockerfile").touch()
    endpoint = {**SETTINGS["endpoints"]["scorer"], "containers": [change]}  # type: ignore[index]
    path = tmp_path / "endpoint.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, "endpoints": {"scorer": endpoint}}))
    command = Path(sys.executable).with_name("low-latency")
    done = run(command, "package", path, "-o", tmp_path / "package")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "package").exists()


def test_a_vpc_that_was_never_looked_up_is_said(tmp_path: Path) -> None:
    network = {
        "vpc_id": "vpc-0123456789abcdef0",
        "subnets": {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"},
    }
    path = tmp_path / "endpoint.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, "account": "123456789012", "network": network}))
    command = Path(sys.executable).with_name("low-latency")
    done = run(command, "package", path, "-o", tmp_path / "package")
    assert done.returncode == 2
    assert done.stderr.startswith("The VPC has to be looked up first")
