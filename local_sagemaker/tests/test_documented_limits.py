"""What AWS's API references say of requests, sentence by sentence: refused here, or named as not judged.

Source of each: the operation's page, in the words of botocore (documented_sentences.py).
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import botocore.loaders
import pytest
import yaml
from botocore.exceptions import ClientError
from documented_sentences import FILE, sentences
from hosting_site import Site
from signed_requests import client_with
from waiting import until

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.protocols import check
from local_sagemaker.request_rules import values_at

DOCUMENT = yaml.safe_load(FILE.read_text())
BASES = DOCUMENT["bases"]
ROWS = DOCUMENT["sentences"]
JUDGED = [row for row in ROWS if "change" in row] + DOCUMENT["refused"]
TAKEN = [{"base": name, "change": {}} for name in BASES] + DOCUMENT["taken"]
CODES = {
    "ValidationException",
    "ValidationError",
    "InvalidParameterValue",
    "InvalidParameterCombination",
    "InvalidParameterException",
    "InvalidParameterInput",  # of a dashboard
    "InvalidGroup.Duplicate",
    "InvalidParameter",
    "InvalidPolicyDocument",
    "InvalidSubnet.Conflict",
    "InvalidSubnet.Range",
    "HostedZoneAlreadyExists",
    "InvalidChangeBatch",
    "InvalidDomainName",
    "InvalidInput",
    "LimitExceededException",
    "MissingParameter",
    "ObjectNotFoundException",  # of a target that is not registered
    "Resource.AlreadyAssociated",
    "ResourceAlreadyExistsException",  # of a log group
    "EntityAlreadyExists",
    "InvalidArgument",
    "InvalidBucketAclWithBlockPublicAccessError",
    "InvalidBucketAclWithObjectOwnership",
    "MalformedPolicy",
    "MalformedPolicyDocument",
    "MalformedXML",
}
NUMBERS = itertools.count()
IDS = {
    "vpc": ("ec2", "describe_vpcs", "Vpcs.*.VpcId", 0),
    "subnet": ("ec2", "describe_subnets", "Subnets.*.SubnetId", 0),
    "group": ("ec2", "describe_security_groups", "SecurityGroups.*.GroupId", 0),
    "table": ("ec2", "describe_route_tables", "RouteTables.*.RouteTableId", 0),
    "gateway": ("ec2", "describe_internet_gateways", "InternetGateways.*.InternetGatewayId", 0),
    "address": ("ec2", "describe_addresses", "Addresses.*.AllocationId", -1),
    "zone": ("route53", "list_hosted_zones", "HostedZones.*.Id", 0),
    "taken": (
        "ec2",
        "describe_nat_gateways",
        "NatGateways.*.NatGatewayAddresses.*.AllocationId",
        0,
    ),
}
"""What a request may name by {kind}: of the values at a path of an answer, which one."""


def fill(aws: LocalAws) -> None:
    """Make what the requests name."""
    here, sagemaker = Site(aws), aws.client("sagemaker")
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"
    role = "arn:aws:iam::123456789012:role/r"
    files = {"S3Uri": "s3://b/m/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    for name, source in (("m", {}), ("source", {"ModelDataSource": {"S3DataSource": files}})):
        container = {"Image": image, **source}
        sagemaker.create_model(ModelName=name, ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {"VariantName": "primary", "InstanceType": "ml.m5.xlarge", "InitialInstanceCount": 4}
    for name, more in (("c", {"ModelName": "m"}), ("hosting", {})):
        sagemaker.create_endpoint_config(
            EndpointConfigName=name, ExecutionRoleArn=role, ProductionVariants=[{**variant, **more}]
        )
    for name, config in (("e", "c"), ("host", "hosting")):
        sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)
        here.settled(name)
    sagemaker.create_inference_component(
        InferenceComponentName="ic",
        EndpointName="host",
        VariantName="primary",
        RuntimeConfig={"CopyCount": 4},
        Specification={
            "Container": {"Image": image},
            "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 128},
        },
    )
    until(
        lambda: sagemaker.describe_inference_component(InferenceComponentName="ic"),
        lambda found: found["InferenceComponentStatus"] == "InService",
        60,
    )
    for name in ("target", "objective", "group", "rule"):
        call(aws, {**BASES[name], "request": named(BASES[name]["request"], "kept")})
    aws.client("logs").create_log_stream(logGroupName="kept", logStreamName="kept")
    for name in ("bucket", "role", "repository", "zone"):
        call(aws, {**BASES[name], "request": named(BASES[name]["request"], "kept")})
    ec2 = aws.client("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    network = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network)
    for name in ("security-group", "address", "nat", "address"):
        call(aws, {**BASES[name], "request": named(BASES[name]["request"], "kept")})
    cloudwatch = aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(**named(BASES["alarm"]["request"], "leaf"))
    for name in ("all-1", "all-2"):
        cloudwatch.put_composite_alarm(AlarmName=name, AlarmRule="ALARM(leaf)")


def local_aws() -> contextlib.AbstractContextManager[LocalAws]:
    options = RuntimeOptions(clock_speed=0.0, permissions="ignored")
    return LocalAws.in_process(model_servers={"*": SimulatedModelServer()}, runtime=options)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with local_aws() as running:
        running.reset()
        fill(running)
        yield running


def named(request: Any, name: str) -> Any:
    """Fill a name in."""
    if isinstance(request, dict):
        return {key: named(value, name) for key, value in request.items()}
    if isinstance(request, list):
        return [named(value, name) for value in request]
    return request.replace("{name}", name) if isinstance(request, str) else request


def changed(request: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A request with other values at some dotted paths, or none."""
    result = copy.deepcopy(request)
    for path, value in change.items():
        *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = result
        for part in above:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = written_out(value)
    return result


def written_out(value: Any) -> Any:
    """Repeat what a row says once: a text, an item of a list, or a map's value."""
    if isinstance(value, list):
        return [written_out(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "times" not in value:
        return {key: written_out(item) for key, item in value.items()}
    numbers = range(value["times"])
    if "text" in value:
        return value["text"] * len(numbers)
    if "map" in value:
        return {f"K{number}": written_out(value["map"]) for number in numbers}
    item = written_out(value["list"])
    return [numbered(item, number) for number in numbers]


def numbered(item: Any, number: int) -> Any:
    """Fill the number of a list's item in."""
    if isinstance(item, dict):
        return {key: numbered(value, number) for key, value in item.items()}
    if isinstance(item, list):
        return [numbered(value, number) for value in item]
    if item == "{number}":
        return float(number)
    return item.replace("{number}", str(number)) if isinstance(item, str) else item


def call(aws: LocalAws, base: dict[str, Any]) -> Any:
    """Make the call of a base, unchecked by botocore."""
    service = base["service"]
    url = aws.runtime_url() if service == "sagemaker-runtime" else aws.url
    key = aws.credentials.access_key
    client = client_with(service, url, key, parameter_validation=False)
    request = with_ids(aws, named(base["request"], f"n{next(NUMBERS)}"))
    return client._make_api_call(base["operation"], request)


def with_ids(aws: LocalAws, request: Any) -> Any:
    """Fill in the ID of what there is of a kind."""
    for kind, (service, operation, path, place) in IDS.items():
        if f"{{{kind}}}" in str(request):
            answer = getattr(aws.client(service), operation)()
            found = [*values_at(answer, path)][place].rpartition("/")[2]
            request = json.loads(json.dumps(request).replace(f"{{{kind}}}", found))
    return request


def test_each_sentence_has_a_row_and_each_row_a_sentence():
    """`python tests/documented_sentences.py` prints the rows that are missing."""
    kept = [tuple(row[name] for name in ("service", "operation", "member", "says")) for row in ROWS]
    assert sorted(kept) == sorted(map(tuple, sentences()))
    assert all(("change" in row) != bool(row.get("not_judged")) for row in ROWS)


def ask(aws: LocalAws, row: dict[str, Any]) -> None:
    """Make the call of a row."""
    base = BASES[row["base"]]
    call(aws, {**base, "request": changed(base["request"], row["change"])})


def test_what_nothing_excludes_is_taken():
    """So that a refusal is of the change; apart from the others, as it changes what there is."""
    with local_aws() as running:
        for row in TAKEN:
            running.reset()
            fill(running)
            ask(running, row)


@pytest.mark.parametrize("row", JUDGED, ids=lambda row: f"{row['base']}-{str(row['change'])[:60]}")
def test_what_a_sentence_excludes_is_refused(aws, row):
    with pytest.raises(ClientError) as refused:
        ask(aws, row)
    assert refused.value.response["Error"]["Code"] in CODES, refused.value


MISPRINTS = {
    "ec2": "CreateImage ModifySpotFleetRequest",
    "kms": "CreateCustomKeyStore UpdateCustomKeyStore",
    "lambda": "UpdateEventSourceMapping",
}
"""Operations of which an example of AWS's has a value that its own model does not allow."""


def written_policies(request: dict[str, Any]) -> dict[str, Any]:
    """An example with a policy where AWS writes <Stringified-JSON>."""
    return {key: "{}" if value == "<Stringified-JSON>" else value for key, value in request.items()}


def test_the_examples_of_aws_are_taken() -> None:
    """AWS's own examples of requests, as botocore brings them."""
    loader, count = botocore.loaders.create_loader(), 0
    for service in [
        "application-autoscaling",
        "ec2",
        "ecr",
        "ecs",
        "iam",
        "kms",
        "lambda",
        "secretsmanager",
        "sts",
    ]:
        documents = loader.load_service_model(service, "examples-1")["examples"]
        for operation, cases in documents.items():
            if operation in MISPRINTS.get(service, "").split():
                continue
            count += len(cases)
            for case in cases:
                check(service, operation, written_policies(case.get("input", {})))
    assert count > 400
