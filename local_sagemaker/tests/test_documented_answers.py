"""Twenty answers of AWS, written down from its pages before anybody looked at what is answered here."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site
from roles_under_test import HOSTING, allow, document, give_role
from signed_requests import client_with, refusal
from stacks_under_test import FUNCTION, TestStack, function, resource_of

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import SimulatedModelServer

QUEUE = "AWS::SQS::Queue"
ACCOUNT = "123456789012"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS whose clock stands still unless a test moves it."""
    options = RuntimeOptions(interfaces_stay=0, clock_speed=0.0)
    servers = {"*": SimulatedModelServer()}
    with LocalAws.in_process(model_servers=servers, runtime=options) as running:
        yield running


def queue(**properties: Any) -> dict[str, Any]:
    return resource_of(QUEUE, **properties)


def role_of(aws: LocalAws, *statements: dict[str, Any], **more: Any) -> str:
    """A role that the account may assume; gives its ARN."""
    iam, name = aws.client("iam"), f"caller-{next(NUMBERS)}"
    me = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    trusted = document({"Effect": "Allow", "Principal": me, "Action": "sts:AssumeRole"})
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trusted), **more)
    rights = json.dumps(document(*statements))
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=rights)
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def session(aws: LocalAws, arn: str, **more: Any) -> Callable[[str], Any]:
    """Clients of a role's session."""
    answer = aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="me", **more)
    keys = answer["Credentials"]
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    return lambda service: client_with(service, aws.url, *(keys[name] for name in names))


def reasons(aws: LocalAws, name: str) -> str:
    events = aws.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    return " ".join(str(event.get("ResourceStatusReason")) for event in events)


# -------------------------------------------------------------------------------- CloudFormation


def test_a_cycle_is_refused_and_a_dependency_on_nothing_is_none(aws, stack):
    """User guide, DependsOn attribute, and Troubleshooting."""
    topic = resource_of("AWS::SNS::Topic", TopicName={"Fn::GetAtt": ["A", "QueueName"]})
    cycle = {"Resources": {"A": {**queue(), "DependsOn": "B"}, "B": topic}}
    create = aws.client("cloudformation").create_stack
    told = refusal(create, StackName="cycle", TemplateBody=json.dumps(cycle))
    assert told == ("ValidationError", "Circular dependency between resources: [A, B]")
    conditions = {"No": {"Fn::Equals": ["a", "b"]}}
    resources = {"A": {**queue(), "Condition": "No"}, "B": {**queue(), "DependsOn": ["A"]}}
    stack.template({"Conditions": conditions, "Resources": resources})


def test_an_export_in_use_does_not_change(aws, stack):
    """User guide, "Get exported outputs from a deployed CloudFormation stack"."""

    def exporter(name: str) -> dict[str, Any]:
        value = {"Value": {"Fn::GetAtt": ["A", "Arn"]}, "Export": {"Name": "arn"}}
        return {"Resources": {"A": queue(QueueName=name)}, "Outputs": {"O": value}}

    stack.template(exporter("one"))
    importer = TestStack(aws, "Importer")
    imported = {"Fn::ImportValue": "arn"}
    importer.of(P=resource_of("AWS::SSM::Parameter", Type="String", Value=imported))
    assert stack.template(exporter("two"), expect_failure=True).status == "UPDATE_ROLLBACK_COMPLETE"
    assert "in use by Importer" in reasons(aws, stack.name)
    importer.delete()


def test_a_stack_policy_is_refused_by_name(aws, stack):
    """User guide, "Prevent updates to stack resources": not emulated, and said so."""
    stack.of(A=queue())
    put = aws.client("cloudformation").set_stack_policy
    assert "SetStackPolicy is not emulated" in refusal(put, StackName=stack.name)[1]


def test_a_nested_stack_is_protected_by_its_root(aws, stack):
    """API reference, UpdateTerminationProtection; user guide, "Protect CloudFormation stacks"."""
    s3, cloudformation = aws.client("s3"), aws.client("cloudformation")
    s3.create_bucket(Bucket="templates")
    body = json.dumps({"Resources": {"A": queue()}})
    s3.put_object(Bucket="templates", Key="n.json", Body=body)
    url = "https://templates.s3.amazonaws.com/n.json"
    nested = resource_of("AWS::CloudFormation::Stack", TemplateURL=url)
    stack.of(N=nested, A=queue())
    root = cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0]
    inner = cloudformation.describe_stack_resources(StackName=stack.name)["StackResources"]
    name = next(each["PhysicalResourceId"] for each in inner if each["LogicalResourceId"] == "N")
    protect = cloudformation.update_termination_protection
    for wanted in (True, False):
        given = {"StackName": name, "EnableTerminationProtection": wanted}
        assert "root stack" in refusal(protect, **given)[1]
    protect(StackName=stack.name, EnableTerminationProtection=True)
    described = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    assert described["ParentId"] == described["RootId"] == root["StackId"]
    assert described["EnableTerminationProtection"]
    assert "TerminationProtection" in refusal(cloudformation.delete_stack, StackName=name)[1]
    stack.of(A=queue())  # an update deletes it all the same
    protect(StackName=stack.name, EnableTerminationProtection=False)
    s3.delete_object(Bucket="templates", Key="n.json")
    s3.delete_bucket(Bucket="templates")


def test_a_bucket_of_old_versions_is_not_empty(aws, stack):
    """S3 user guide, "Deleting a general purpose bucket"."""
    versioned = {"VersioningConfiguration": {"Status": "Enabled"}}
    bucket = stack.deploy("AWS::S3::Bucket", versioned).ref
    s3 = aws.client("s3")
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"")["VersionId"]
    marker = s3.delete_object(Bucket=bucket, Key="k")["VersionId"]
    for left in (version, marker):
        assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
        assert refusal(s3.delete_bucket, Bucket=bucket)[0] == "BucketNotEmpty"
        s3.delete_object(Bucket=bucket, Key="k", VersionId=left)


# ---------------------------------------------------------------------------- SageMaker, scaling


def hosted(aws: LocalAws, kind: str) -> tuple[Site, str]:
    """An endpoint on a type of instance, and its only variant as a resource that scales."""
    site = Site(aws)
    name = f"e-{next(NUMBERS)}"
    configure(site, name, kind)
    aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=name)
    site.settled(name)
    return site, f"endpoint/{name}/variant/v"


def configure(site: Site, name: str, kind: str) -> None:
    variant = {"VariantName": "v", "ModelName": site.model(), "InstanceType": kind}
    site.aws.client("sagemaker").create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )


def scaled(aws: LocalAws, resource: str) -> dict[str, Any]:
    return {
        "ServiceNamespace": "sagemaker",
        "ResourceId": resource,
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "MinCapacity": 1,
        "MaxCapacity": 4,
    }


def test_a_scaled_variant_keeps_its_instance_type(aws):
    """SageMaker guide, "Update endpoints that use auto scaling"."""
    site, resource = hosted(aws, "ml.m5.large")
    sagemaker, name = aws.client("sagemaker"), resource.split("/")[1]
    aws.client("application-autoscaling").register_scalable_target(**scaled(aws, resource))
    for config, kind in (("other-type", "ml.m5.xlarge"), ("other-model", "ml.m5.large")):
        configure(site, config, kind)
    told = refusal(sagemaker.update_endpoint, EndpointName=name, EndpointConfigName="other-type")
    assert told[0] == "ValidationException"
    sagemaker.update_endpoint(EndpointName=name, EndpointConfigName="other-model")


@pytest.mark.parametrize("kind", ["ml.t2.medium", "ml.t2.large"])
def test_a_burstable_instance_does_not_scale(aws, kind):
    """SageMaker guide, "Configure model auto scaling with the console"."""
    _, resource = hosted(aws, kind)
    register = aws.client("application-autoscaling").register_scalable_target
    assert "burstable" in refusal(register, **scaled(aws, resource))[1]


# ------------------------------------------------------------------------------------ CloudWatch


def alarm(**more: Any) -> dict[str, Any]:
    given = {
        "AlarmName": "base",
        "Namespace": "N",
        "MetricName": "M",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def test_composites_go_one_by_one_and_not_before_their_parents(aws):
    """API reference, DeleteAlarms."""
    cloudwatch = aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(**alarm())
    rules = {"x": "ALARM(base)", "y": "ALARM(base)", "z": "ALARM(x) AND OK(y)"}
    for name, rule in rules.items():
        cloudwatch.put_composite_alarm(AlarmName=name, AlarmRule=rule)
    for names in (["z", "y"], ["x"]):
        assert refusal(cloudwatch.delete_alarms, AlarmNames=names)[0] == "ValidationError"
    for name in ("z", "y", "x", "base"):
        cloudwatch.delete_alarms(AlarmNames=[name])


_STAT = {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 60, "Stat": "Sum"}
_TWO = [
    {"Id": "a", "MetricStat": _STAT, "ReturnData": True},
    {"Id": "e", "Expression": "a*2", "ReturnData": True},
]


@pytest.mark.parametrize(
    "change",
    [
        {"EvaluationPeriods": 1441},
        {"Period": 3600, "EvaluationPeriods": 169},
        {"Period": 45},
        {"Namespace": None, "MetricName": None, "Statistic": None, "Period": None, "Metrics": _TWO},
        {"Metrics": _TWO[:1]},
    ],
)
def test_an_alarm_looks_back_a_day_or_a_week_at_one_result(aws, change):
    """API reference, PutMetricAlarm: Period, Metrics."""
    put = aws.client("cloudwatch").put_metric_alarm
    assert refusal(put, **alarm(**change))[0] == "ValidationError"
    put(**alarm(Period=3600, EvaluationPeriods=168))
    put(**alarm(EvaluationPeriods=1440))


# --------------------------------------------------------------------------------- STS, IAM, KMS


def test_a_session_is_no_longer_than_its_role_or_an_hour_if_chained(aws):
    """API reference, AssumeRole, DurationSeconds."""
    short, long = role_of(aws, allow("*")), role_of(aws, allow("*"), MaxSessionDuration=43200)
    assume = aws.client("sts").assume_role
    given = {"RoleSessionName": "me", "DurationSeconds": 7200}
    assert "MaxSessionDuration" in refusal(assume, RoleArn=short, **given)[1]
    assume(RoleArn=long, RoleSessionName="me", DurationSeconds=43200)
    chained = session(aws, long)("sts").assume_role
    assert "role chaining" in refusal(chained, RoleArn=long, **given)[1]
    chained(RoleArn=long, RoleSessionName="me", DurationSeconds=3600)


def test_a_role_is_passed_to_the_service_that_a_condition_names(aws):
    """IAM user guide, "Grant a user permissions to pass a role to an AWS service"."""
    passed, codes = give_role(aws, "passed", *HOSTING), []
    for service in ("lambda", "sagemaker"):
        to = {"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}}
        rights = (allow("sagemaker:*"), allow("iam:PassRole", passed, Condition=to))
        create = session(aws, role_of(aws, *rights))("sagemaker").create_model
        container = {"Image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/model:1"}
        given = {"ModelName": f"for-{service}", "PrimaryContainer": container}
        with contextlib.suppress(ClientError):
            create(**given, ExecutionRoleArn=passed)
            codes.append(service)
    assert codes == ["sagemaker"]


NOT_IAM = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
ONLY_S3 = {"Effect": "Deny", "NotAction": "s3:*", "Resource": "*"}


@pytest.mark.parametrize(
    ("statements", "boundary", "limits", "allowed"),
    [
        ([allow("*")], [allow("s3:*")], {}, {"s3"}),
        ([allow("*")], [allow("s3:*")], {"Policy": json.dumps(document(allow("sqs:*")))}, set()),
        ([NOT_IAM], [], {}, {"s3", "sqs"}),
        ([NOT_IAM, allow("iam:ListRoles")], [], {}, {"s3", "sqs", "iam"}),
        ([allow("*"), ONLY_S3], [], {}, {"s3"}),
    ],
)
def test_boundaries_sessions_and_not_action(aws, statements, boundary, limits, allowed):
    """IAM user guide, "Permissions boundaries", "NotAction"; API reference, AssumeRole, Policy."""
    more = {}
    if boundary:
        text, name = json.dumps(document(*boundary)), f"boundary-{next(NUMBERS)}"
        made = aws.client("iam").create_policy(PolicyName=name, PolicyDocument=text)
        more = {"PermissionsBoundary": made["Policy"]["Arn"]}
    clients = session(aws, role_of(aws, *statements, **more), **limits)
    calls = {"s3": "list_buckets", "sqs": "list_queues", "iam": "list_roles"}
    done = set()
    for service, operation in calls.items():
        with contextlib.suppress(ClientError):
            getattr(clients(service), operation)()
            done.add(service)
    assert done == allowed


def test_a_key_keeps_its_administrator_and_rests_when_deleted(aws, stack):
    """API reference, PutKeyPolicy, ScheduleKeyDeletion; developer guide, "Key states"."""
    kms, me = aws.client("kms"), {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    locked = document({**allow("kms:Encrypt"), "Principal": me})
    open_policy = document({**allow("kms:*"), "Principal": me})
    key = stack.deploy("AWS::KMS::Key", {"KeyPolicy": open_policy}).ref
    put = {"KeyId": key, "PolicyName": "default", "Policy": json.dumps(locked)}
    assert refusal(kms.put_key_policy, **put)[0] == "MalformedPolicyDocumentException"
    create = {"Policy": put["Policy"]}
    assert refusal(kms.create_key, **create)[0] == "MalformedPolicyDocumentException"
    other = kms.create_key(BypassPolicyLockoutSafetyCheck=True, **create)["KeyMetadata"]["KeyId"]
    cipher = kms.encrypt(KeyId=other, Plaintext=b"x")["CiphertextBlob"]
    kms.disable_key(KeyId=other)
    assert refusal(kms.decrypt, CiphertextBlob=cipher)[0] == "DisabledException"
    stack.delete()
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    alias = {"AliasName": "alias/x", "TargetKeyId": key}
    for call, given in (
        (kms.encrypt, {"KeyId": key, "Plaintext": b"x"}),
        (kms.enable_key, {"KeyId": key}),
        (kms.create_alias, alias),
        (kms.schedule_key_deletion, {"KeyId": key}),
    ):
        assert refusal(call, **given)[0] == "KMSInvalidStateException"


# ------------------------------------------------------------------------------- networks, tasks


def test_an_interface_endpoint_has_names_only_once_and_a_zone_only_once(aws):
    """AWS PrivateLink guide, "Access an AWS service using an interface VPC endpoint"."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{n}.0/24", AvailabilityZone="us-east-1a")
        for n in range(2)
    ]
    ids = [subnet["Subnet"]["SubnetId"] for subnet in subnets]
    service = "com.amazonaws.us-east-1.sagemaker.runtime"
    given = {"VpcId": vpc, "VpcEndpointType": "Interface", "ServiceName": service}

    def create(count: int = 1) -> str:
        try:
            ec2.create_vpc_endpoint(**given, SubnetIds=ids[:count], PrivateDnsEnabled=True)
        except ClientError as error:
            return str(error)
        return ""

    assert "enableDnsHostnames" in create()
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    assert "DuplicateSubnetsInSameZone" in create(2)
    assert create() == ""
    assert "conflicting DNS domain" in create()
    other = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    strange = {**given, "VpcId": other, "SubnetIds": ids[:1], "PrivateDnsEnabled": False}
    assert refusal(ec2.create_vpc_endpoint, **strange)[0] == "InvalidParameter"


def task(**more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", **more.pop("container", {})}
    return {
        "family": "f",
        "requiresCompatibilities": ["FARGATE"],
        "networkMode": "awsvpc",
        "cpu": "256",
        "memory": "512",
        "containerDefinitions": [container],
        **more,
    }


LOGGED = {"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g"}}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memory": "4096"}, "No Fargate configuration"),
        ({"cpu": "300"}, "No Fargate configuration"),
        ({"cpu": "nan", "memory": "inf GB"}, "No Fargate configuration"),
        ({"networkMode": "bridge"}, "awsvpc"),
        ({"container": LOGGED}, "execution role"),
        (
            {"container": {"image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/x"}},
            "execution role",
        ),
    ],
)
def test_fargate_runs_what_its_table_has(aws, change, words):
    """API reference, RegisterTaskDefinition; developer guide, "Task execution IAM role"."""
    register = aws.client("ecs").register_task_definition
    code, message = refusal(register, **task(**change))
    assert code == "ClientException"
    assert words in message
    register(**task(cpu=".25 vCPU", memory="0.5 GB"))
    register(**task(cpu="16384", memory="122880"))


def test_a_cluster_goes_after_its_services(aws):
    """API reference, DeleteService, DeleteCluster, CreateService (security groups are optional)."""
    ecs, ec2 = aws.client("ecs"), aws.client("ec2")
    ecs.create_cluster(clusterName="c")
    ecs.register_task_definition(**task())
    here = {"cluster": "c", "service": "s"}
    service = {"cluster": "c", "serviceName": "s", "taskDefinition": "f", "desiredCount": 1}
    assert "Network Configuration" in refusal(ecs.create_service, **service)[1]
    subnets = [ec2.describe_subnets()["Subnets"][0]["SubnetId"]]
    network = {"awsvpcConfiguration": {"subnets": subnets}}
    ecs.create_service(**service, networkConfiguration=network)
    told = refusal(ecs.delete_cluster, cluster="c")
    assert told[0] == "ClusterContainsServicesException"
    assert refusal(ecs.delete_service, **here)[0] == "InvalidParameterException"
    ecs.delete_service(**here, force=True)
    ecs.delete_cluster(cluster="c")


def test_ten_tasks_of_an_active_definition_are_run_by_a_call(aws):
    """API reference, RunTask (count) and DeregisterTaskDefinition; in a VPC without DNS hostnames."""
    ecs, ec2 = aws.client("ecs"), aws.client("ec2")
    ecs.create_cluster(clusterName="runs")
    first, second = (
        ecs.register_task_definition(**task(family="runs"))["taskDefinition"]["taskDefinitionArn"]
        for _ in range(2)
    )
    vpc = ec2.create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.77.1.0/24")["Subnet"]["SubnetId"]
    network = {"awsvpcConfiguration": {"subnets": [subnet]}}
    given = {"cluster": "runs", "launchType": "FARGATE", "networkConfiguration": network}
    run = partial(ecs.run_task, **given)
    assert refusal(run, taskDefinition=second, count=11)[0] == "InvalidParameterException"
    ecs.deregister_task_definition(taskDefinition=second)
    inactive = ("ClientException", "TaskDefinition is inactive")
    assert refusal(run, taskDefinition=second) == inactive
    service = {"serviceName": "s", "desiredCount": 0, "taskDefinition": second}
    assert refusal(ecs.create_service, **given, **service) == inactive
    (started,) = run(taskDefinition="runs")["tasks"]
    assert started["taskDefinitionArn"] == first  # the family's latest ACTIVE revision
    details = {detail["name"] for detail in started["attachments"][0]["details"]}
    assert "privateIPv4Address" in details
    assert "privateDnsName" not in details


def test_an_immutable_tag_stays_with_its_image(aws):
    """API reference, PutImage, ImageAlreadyExistsException and ImageTagAlreadyExistsException."""
    ecr = aws.client("ecr")
    ecr.create_repository(repositoryName="kept", imageTagMutability="IMMUTABLE")
    media = "application/vnd.docker.distribution.manifest.v2+json"
    one, other = (
        json.dumps({"schemaVersion": 2, "mediaType": media, "config": {"digest": digest}})
        for digest in ("sha256:1", "sha256:2")
    )
    put = partial(ecr.put_image, repositoryName="kept", imageTag="v1")
    put(imageManifest=one)
    assert refusal(put, imageManifest=one)[0] == "ImageAlreadyExistsException"
    assert refusal(put, imageManifest=other)[0] == "ImageTagAlreadyExistsException"


KEYS = {
    "symmetric": {},
    "RSA": {"KeySpec": "RSA_2048", "KeyUsage": "ENCRYPT_DECRYPT"},
    "signing": {"KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY"},
    "HMAC": {"KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"},
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_rotated_and_followed_by_its_kind(aws, stack, kind):
    """API reference, EnableKeyRotation and UpdateAlias."""
    kms = aws.client("kms")

    def key(name: str) -> str:
        return str(kms.create_key(**KEYS[name])["KeyMetadata"]["KeyId"])

    def told(call: Any, **given: Any) -> str:
        try:
            call(**given)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""

    unsupported = "" if kind == "symmetric" else "UnsupportedOperationException"
    assert told(kms.enable_key_rotation, KeyId=key(kind)) == unsupported
    if unsupported:
        properties = {**KEYS[kind], "EnableKeyRotation": True}
        assert unsupported in stack.refusal("AWS::KMS::Key", properties)
    alias = f"alias/of-{kind}"
    kms.create_alias(AliasName=alias, TargetKeyId=key(kind))
    for name in KEYS:
        answer = told(kms.update_alias, AliasName=alias, TargetKeyId=key(name))
        assert answer == ("" if name == kind else "ValidationException")


# ----------------------------------------------------------------- functions, messages, buckets


def test_a_deleted_queue_keeps_its_name_for_a_minute(aws, stack):
    """API reference, CreateQueue."""
    sqs = aws.client("sqs")
    stack.of(A=queue(QueueName="again"))
    assert refusal(sqs.create_queue, QueueName="again", Attributes={"DelaySeconds": "5"})
    sqs.create_queue(QueueName="again")
    stack.delete()
    aws.advance(59)
    assert "QueueDeletedRecently" in refusal(sqs.create_queue, QueueName="again")[0]
    assert "60 seconds" in stack.refusal(QUEUE, {"QueueName": "again"})
    stack.delete()
    aws.advance(1)
    sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName="again")["QueueUrl"])


def test_a_fifo_queue_without_a_name_has_one_that_fits(stack):
    """https://github.com/cloudtools/troposphere/pull/931."""
    assert stack.deploy(QUEUE, {"FifoQueue": True}).ref.endswith(".fifo")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"KEY": "x" * 4096}, "exceeded the 4KB limit"),
        ({"AWS_REGION": "x"}, "AWS_REGION"),
        ({"1A": "x"}, "regular expression"),
    ],
)
def test_a_function_has_an_environment_of_its_own_and_a_small_one(stack, role, variables, words):
    """Lambda developer guide, "Lambda quotas", "Environment variables"."""
    more = {"Environment": {"Variables": variables}}
    assert words in stack.refusal(FUNCTION, function("x = 1", **more), Role=role)


def test_a_function_is_throttled_at_no_concurrency(aws, stack, role):
    """API reference, PutFunctionConcurrency, Invoke."""
    code = "def handler(event, context):\n    return 1"
    name = stack.deploy(FUNCTION, function(code), Role=role).ref
    client = aws.client("lambda")
    put = client.put_function_concurrency
    told = refusal(put, FunctionName=name, ReservedConcurrentExecutions=950)
    assert "minimum value of [100]" in told[1]
    put(FunctionName=name, ReservedConcurrentExecutions=0)
    quick = client_with("lambda", aws.url, aws.exports()["AWS_ACCESS_KEY_ID"])
    assert refusal(quick.invoke, FunctionName=name)[0] == "TooManyRequestsException"
    assert client.invoke(FunctionName=name, InvocationType="Event")["StatusCode"] == 202
    client.delete_function_concurrency(FunctionName=name)
    assert client.invoke(FunctionName=name)["StatusCode"] == 200


PUBLIC = {**allow("s3:GetObject"), "Principal": "*"}
OF_A_VPC = {"Condition": {"StringEquals": {"aws:SourceVpce": "vpce-1"}}}
ANY_VPC = {"Condition": {"StringLike": {"aws:SourceVpce": "vpce-*"}}}
NOT_OF_A_VPC = {"Condition": {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}}
NO_TLS = {"Condition": {"Bool": {"aws:SecureTransport": "true"}}}


@pytest.mark.parametrize(
    ("statement", "public"),
    [
        (PUBLIC, True),
        (PUBLIC | {"Principal": {"AWS": ["*"]}}, True),
        (PUBLIC | ANY_VPC, True),
        (PUBLIC | NO_TLS, True),
        (PUBLIC | NOT_OF_A_VPC, True),
        (PUBLIC | OF_A_VPC, False),
        (PUBLIC | {"Effect": "Deny"}, False),
        (PUBLIC | {"Principal": {"AWS": ACCOUNT}}, False),
    ],
)
def test_a_new_bucket_takes_no_public_policy(aws, statement, public):
    """S3 user guide, "Blocking public access", "The meaning of public"."""
    s3, name = aws.client("s3"), f"bucket-{next(NUMBERS)}"
    s3.create_bucket(Bucket=name)
    policy = json.dumps(document({**statement, "Resource": f"arn:aws:s3:::{name}/*"}))
    if public:
        assert refusal(s3.put_bucket_policy, Bucket=name, Policy=policy)[0] == "AccessDenied"
        s3.delete_public_access_block(Bucket=name)
    s3.put_bucket_policy(Bucket=name, Policy=policy)


def test_a_new_bucket_has_no_acls(aws, stack):
    """S3 user guide, "Controlling ownership of objects and disabling ACLs"."""
    s3 = aws.client("s3")
    given = {"Bucket": "owned", "ACL": "public-read"}
    assert refusal(s3.create_bucket, **given)[0] == "InvalidBucketAclWithObjectOwnership"
    s3.create_bucket(Bucket="owned")
    for call, more in ((s3.put_bucket_acl, {}), (s3.put_object, {"Key": "k", "Body": b""})):
        assert refusal(call, **given, **more)[0] == "AccessControlListNotSupported"
    s3.put_object(Bucket="owned", Key="k", Body=b"", ACL="bucket-owner-full-control")
    writer = {"OwnershipControls": {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}}
    kind = "AWS::S3::Bucket"
    assert "ACL" in stack.refusal(kind, {"AccessControl": "LogDeliveryWrite"})
    stack.delete()
    stack.deploy(kind, {"AccessControl": "LogDeliveryWrite", **writer})


def test_a_standard_topic_has_its_tags_and_no_fifo_queue(aws):
    """SNS developer guide, FIFO message delivery; API reference, Subscribe, Publish, CreateTopic."""
    sns, sqs = aws.client("sns"), aws.client("sqs")
    topic = sns.create_topic(Name="standard")["TopicArn"]
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"
    sqs.create_queue(QueueName="f.fifo", Attributes={"FifoQueue": "true"})
    sqs.create_queue(QueueName="letters")
    given = {"TopicArn": topic, "Protocol": "sqs"}
    assert "FIFO" in refusal(sns.subscribe, **given, Endpoint=f"{arn}f.fifo")[1]
    first, second = (sns.subscribe(**given, Endpoint=f"{arn}letters") for _ in range(2))
    assert first["SubscriptionArn"] == second["SubscriptionArn"]
    long = {"TopicArn": topic, "Message": "x" * 262_145}
    assert refusal(sns.publish, **long)[0] == "InvalidParameter"
    tags = [{"Key": "team", "Value": "a"}]
    assert "different tags" in refusal(sns.create_topic, Name="standard", Tags=tags)[1]
    assert sns.create_topic(Name="standard")["TopicArn"] == topic


@pytest.mark.parametrize(
    "given",
    [
        {"ScheduleExpression": "rate(5 minutes)", "EventBusName": "own"},
        {"ScheduleExpression": "rate(1 minutes)"},
        {"ScheduleExpression": "rate(5 minute)"},
        {"ScheduleExpression": "cron(0 10 1 * 2 *)"},
    ],
)
def test_a_schedule_is_of_the_default_bus_and_of_good_grammar(aws, given):
    """EventBridge user guide, "Creating a scheduled rule", "Schedule pattern"."""
    events = aws.client("events")
    with contextlib.suppress(ClientError):
        events.create_event_bus(Name="own")
    assert refusal(events.put_rule, Name="r", **given)[0] == "ValidationException"
