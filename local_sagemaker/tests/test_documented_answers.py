"""Twenty answers of AWS, written down from its pages before anybody looked at what is answered here."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
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


_STAT = {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 60, "Stat": "Sum"}
_TWO = [
    {"Id": "a", "MetricStat": _STAT, "ReturnData": True},
    {"Id": "e", "Expression": "a*2", "ReturnData": True},
]


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


NOT_IAM = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
ONLY_S3 = {"Effect": "Deny", "NotAction": "s3:*", "Resource": "*"}


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
        ({"AWS_REGION": "x"}, "reserved keys"),
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
