"""Rights end to end: what is taken out of a policy is denied, in the words of the service."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hosting_site import IMAGE, Scaled, Site
from roles_under_test import HOSTING, allow, document, give_role, trust
from signed_requests import ask, client_with, refusal, signed
from stacks_under_test import FUNCTION, TestStack
from stacks_under_test import function as properties_of
from waiting import until

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import SimulatedModelServer

ACCOUNT = "123456789012"
DATA = "s3://models/llama/model.tar.gz"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with a model server, whose clock stands still."""
    options = RuntimeOptions(clock_speed=0.0, interfaces_stay=0, keeps_failure_reason=True)
    servers = {"model": SimulatedModelServer()}
    with LocalAws.in_process(model_servers=servers, runtime=options) as running:
        running.reset()
        running.client("s3").create_bucket(Bucket="models")
        running.client("s3").put_object(Bucket="models", Key="llama/model.tar.gz", Body=b"x")
        yield running


@pytest.fixture
def site(aws: LocalAws) -> Iterator[Site]:
    """Endpoints, deleted after the test."""
    here = Site(aws)
    yield here
    here.delete()


Client = Callable[..., Any]


@pytest.fixture
def caller(aws: LocalAws) -> Callable[..., Client]:
    """Give somebody with a role that has these statements, and who answers to no other rights."""

    def make(*statements: dict[str, Any], **session: Any) -> Client:
        me = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        trusted = json.dumps(trust(Principal=me))
        with contextlib.suppress(ClientError):
            aws.client("iam").create_role(RoleName="caller", AssumeRolePolicyDocument=trusted)
        put(aws, "caller", *statements)
        arn = f"arn:aws:iam::{ACCOUNT}:role/caller"
        given = aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="me", **session)
        return as_session(aws, given["Credentials"])

    return make


def as_session(aws: LocalAws, given: dict[str, str]) -> Client:
    """Give clients of a session's credentials, at the main URL or another one."""

    def client(service: str, url: str | None = None) -> Any:
        keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        return client_with(service, url or aws.url, *keys)

    return client


def put(aws: LocalAws, role: str, *statements: dict[str, Any]) -> None:
    """Give a role these rights, and no others."""
    text = json.dumps(document(*(statements or [allow("sts:GetAccessKeyInfo")])))
    aws.client("iam").put_role_policy(RoleName=role, PolicyName="rights", PolicyDocument=text)


def put_key_policy(aws: LocalAws, key: str, *statements: dict[str, Any]) -> None:
    text = json.dumps(document(*statements))
    given = {"KeyId": key, "PolicyName": "default", "Policy": text}
    aws.client("kms").put_key_policy(**given, BypassPolicyLockoutSafetyCheck=True)


def sealed(aws: LocalAws, name: str) -> str:
    """Put an object that a key encrypts; gives the key's ARN."""
    key = str(aws.client("kms").create_key()["KeyMetadata"]["Arn"])
    encrypted = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    aws.client("s3").put_object(Bucket="models", Key=name, Body=b"s", **encrypted)
    return key


OTHERS = allow("kms:*", Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:role/owner"})
"""In a key's policy: it lets nobody else in, whatever the role's policy says."""


def denial(who: str, action: str, resource: str, kind: str = "identity-based policy") -> str:
    """Write AWS's message."""
    return (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{who} is not authorized to perform: {action} "
        f"on resource: {resource} because no {kind} allows the {action} action"
    )


# -------------------------------------------------------------------------------- functions


READS = """
import boto3
def handler(event, context):
    return boto3.client("s3").get_object(Bucket="models", Key="k")["Body"].read().decode()
"""


@pytest.fixture
def function(aws: LocalAws) -> Iterator[Callable[[], Any]]:
    """A function that reads an object; gives what it answers."""
    stack = TestStack(aws, f"Rights{next(_numbers)}")
    aws.client("s3").put_object(Bucket="models", Key="k", Body=b"read")
    right = allow("s3:GetObject", "arn:aws:s3:::models/*")
    reader = give_role(aws, "reader", right, services=("lambda",))
    stack.deploy(FUNCTION, properties_of(READS, FunctionName="reader", Role=reader))
    yield lambda: json.load(aws.client("lambda").invoke(FunctionName="reader")["Payload"])
    stack.delete()


def test_a_function_has_what_its_role_has_at_that_moment(aws, function) -> None:
    assert function() == "read"
    put(aws, "reader", allow("s3:GetObject", "arn:aws:s3:::others/*"))
    told = function()["errorMessage"]
    assert "(AccessDenied) when calling the GetObject operation" in told
    assert denial("reader/reader", "s3:GetObject", '"arn:aws:s3:::models/k"') in told
    put(aws, "reader", allow("s3:Get*"))
    assert function() == "read"


def test_a_boundary_limits_a_function(aws, function) -> None:
    iam = aws.client("iam")
    text = json.dumps(document(allow("sqs:*")))
    arn = iam.create_policy(PolicyName="bounds", PolicyDocument=text)["Policy"]["Arn"]
    iam.put_role_permissions_boundary(RoleName="reader", PermissionsBoundary=arn)
    bounded = ("s3:GetObject", '"arn:aws:s3:::models/k"', "permissions boundary")
    assert denial("reader/reader", *bounded) in function()["errorMessage"]
    iam.delete_role_permissions_boundary(RoleName="reader")
    assert function() == "read"


def test_a_bucket_policy_denies_and_allows(aws, function) -> None:
    s3, objects = aws.client("s3"), "arn:aws:s3:::models/*"
    grant = allow("s3:GetObject", objects, Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:role/reader"})
    deny = {**grant, "Effect": "Deny"}
    s3.put_bucket_policy(Bucket="models", Policy=json.dumps(document(deny)))
    try:
        told = function()["errorMessage"]
        assert told.endswith("with an explicit deny in a resource-based policy")
        put(aws, "reader")
        s3.put_bucket_policy(Bucket="models", Policy=json.dumps(document(grant)))
        assert function() == "read"
    finally:
        s3.delete_bucket_policy(Bucket="models")


def test_a_function_without_rights_writes_no_log(aws, function) -> None:
    logs, group = aws.client("logs"), "/aws/lambda/reader"
    function()
    assert logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"] == []
    writes = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
    put(aws, "reader", allow(["s3:GetObject", *writes]))
    function()
    assert len(logs.describe_log_streams(logGroupName=group)["logStreams"]) == 1
    logs.delete_log_group(logGroupName=group)


def test_lambda_refuses_roles_that_cannot_run_a_function(aws) -> None:
    ec2 = aws.client("ec2")
    queue = aws.client("sqs").create_queue(QueueName="dead")["QueueUrl"]
    subnet = ec2.describe_subnets()["Subnets"][0]
    of_vpc = [{"Name": "vpc-id", "Values": [subnet["VpcId"]]}]
    group = ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"][0]
    network = {"SubnetIds": [subnet["SubnetId"]], "SecurityGroupIds": [group["GroupId"]]}
    dead = f"arn:aws:sqs:us-east-1:{ACCOUNT}:dead"
    settings = {"Runtime": "python3.12", "Handler": "i.h", "Code": {"ZipFile": b""}}
    never = partial(aws.client("lambda").create_function, FunctionName="never", **settings)

    def create(role: str, **more: Any) -> tuple[str, str]:
        return refusal(never, Role=role, **more)

    stranger = give_role(aws, "stranger", allow("*"), services=("ecs-tasks",))
    cannot = "The role defined for the function cannot be assumed by Lambda."
    assert create(stranger) == ("InvalidParameterValueException", cannot)
    poor = give_role(aws, "poor", allow("s3:GetObject"), services=("lambda",))
    lacks = "The provided execution role does not have permissions to call "
    assert create(poor, VpcConfig=network)[1] == f"{lacks}CreateNetworkInterface on EC2"
    assert create(poor, DeadLetterConfig={"TargetArn": dead})[1] == f"{lacks}SendMessage on SQS"
    put(aws, "poor", allow("ec2:CreateNetworkInterface"))
    assert create(poor, VpcConfig=network)[1] == f"{lacks}DescribeNetworkInterfaces on EC2"
    aws.client("sqs").delete_queue(QueueUrl=queue)


# ------------------------------------------------------------------------------------ models


def without(*actions: str) -> list[dict[str, Any]]:
    """What a model needs of its role, but for some actions."""
    actions = [[one for one in each["Action"] if one not in actions] for each in HOSTING]
    return [{**each, "Action": left} for each, left in zip(HOSTING, actions, strict=True)]


def failure(site: Site, *statements: dict[str, Any], **more: Any) -> str:
    """Create an endpoint that fails for want of these rights, and then one that does not."""
    model = site.model(**more)
    put(site.aws, "models", *statements)
    found = site.settled(site.endpoint({"ModelName": model}, wait=False))
    assert found["EndpointStatus"] == "Failed"
    put(site.aws, "models", *HOSTING)
    site.endpoint({"ModelName": model})
    return str(found["FailureReason"])


@pytest.mark.parametrize("server", ["model", "none-so-it-echoes"])
def test_a_model_role_without_its_data(site, server) -> None:
    reason = failure(site, *without("s3:GetObject"), server=server, ModelDataUrl=DATA)
    role = f"arn:aws:iam::{ACCOUNT}:role/models"
    assert reason == (
        f'Could not access model data at {DATA}. Please ensure that the role "{role}" exists and '
        'that its trust relationship policy allows the action "sts:AssumeRole" for the service '
        'principal "sagemaker.amazonaws.com". Also ensure that the role has "s3:GetObject" '
        "permissions and that the object is located in us-east-1. If your Model uses multiple "
        'models or uncompressed models, please ensure that the role has "s3:ListBucket" permission.'
    )


def test_uncompressed_data_needs_the_list_of_its_objects(site) -> None:
    source = {"S3Uri": "s3://models/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    reason = failure(site, *without("s3:ListBucket"), ModelDataSource={"S3DataSource": source})
    assert reason.startswith("Could not access model data at s3://models/llama/.")


@pytest.mark.parametrize("action", ["BatchGetImage", "GetDownloadUrlForLayer"])
def test_a_model_role_without_its_image(site, action) -> None:
    assert failure(site, *without(f"ecr:{action}")) == (
        f"The role 'arn:aws:iam::{ACCOUNT}:role/models' does not have {action} permission for the "
        f"image: '{IMAGE.format('model')}'."
    )


def test_a_role_that_sagemaker_may_not_assume(aws, site) -> None:
    iam, name = aws.client("iam"), site.endpoint()
    model = site.model()
    source = {"aws:SourceArn": f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:*"}
    elsewhere = trust("sagemaker", Condition={"ArnLike": source})
    try:
        for trusted in (trust("lambda"), elsewhere):
            iam.update_assume_role_policy(RoleName="models", PolicyDocument=json.dumps(trusted))
            site.update(name, site.config({"ModelName": model}))
            found = site.settled(name)  # rolled back
            assert found["EndpointStatus"] == "InService"
            assert "Could not assume role" in found["FailureReason"]
    finally:
        trusted = json.dumps(trust("sagemaker"))
        iam.update_assume_role_policy(RoleName="models", PolicyDocument=trusted)


def test_what_a_role_has_lost_stops_the_scale_out(aws, site) -> None:
    name = site.endpoint()
    put(aws, "models", *without("ecr:BatchGetImage"))
    site.scale(name, 2)
    found = site.settled(name)
    put(aws, "models", *HOSTING)
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    assert "does not have BatchGetImage permission" in found["FailureReason"]


def test_data_that_a_key_encrypts_needs_the_key(aws, site) -> None:
    key = sealed(aws, "sealed.tar.gz")
    where = {"server": "echoes", "ModelDataUrl": "s3://models/sealed.tar.gz"}
    assert failure(site, *without("kms:Decrypt"), **where).startswith("Could not access model data")
    put_key_policy(aws, key, OTHERS)
    closed = site.endpoint({"ModelName": site.model(**where)}, wait=False)
    assert site.described(closed)["EndpointStatus"] == "Failed"


# ----------------------------------------------------------------------------------- callers


def endpoint_arn(name: str) -> str:
    return f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/{name.lower()}"


def test_a_caller_needs_the_right_to_invoke(aws, site, caller) -> None:
    name = site.endpoint()
    me = caller(allow("sagemaker:InvokeEndpoint", endpoint_arn(name)))
    for url in (aws.url, aws.runtime_url(), aws.runtime_url("use1-az4")):
        runtime = me("sagemaker-runtime", url)
        assert runtime.invoke_endpoint(EndpointName=name, Body=b"{}")["Body"].read() == b"{}"
        code, message = refusal(runtime.invoke_endpoint, EndpointName="another", Body=b"{}")
        assert code == "AccessDeniedException"
        assert message == denial("caller/me", "sagemaker:InvokeEndpoint", endpoint_arn("another"))
        streams = runtime.invoke_endpoint_with_response_stream
        action = "sagemaker:InvokeEndpointWithResponseStream"
        _, message = refusal(streams, EndpointName=name, Body=b"{}")
        assert message == denial("caller/me", action, endpoint_arn(name))
    put(aws, "caller", allow("sagemaker:InvokeEndpointWithResponseStream"))
    code, message = refusal(runtime.invoke_endpoint, EndpointName=name, Body=b"{}")
    assert (code, "sagemaker:InvokeEndpoint on" in message) == ("AccessDeniedException", True)
    put(aws, "caller", allow("sagemaker:InvokeEndpoint*"))
    runtime.invoke_endpoint_with_response_stream(EndpointName=name, Body=b"{}")


def test_arns_of_endpoints_are_in_lower_case(aws, site, caller) -> None:
    """Seen (recorded, R10): the ARN that IAM judges by is in lower case, whatever the name is."""
    runtime = caller(allow("sagemaker:DescribeEndpoint"))("sagemaker-runtime")
    _, message = refusal(runtime.invoke_endpoint, EndpointName="LaBSE", Body=b"{}")
    assert message.count(endpoint_arn("LaBSE")) == 1
    name = site.endpoint(name="LaBSE")
    found = aws.client("sagemaker").describe_endpoint(EndpointName=name)["EndpointArn"]
    assert found == endpoint_arn(name)


def test_an_endpoint_under_a_scalable_target(aws, site, caller) -> None:
    """Seen: another configuration goes through (R13), a deletion needs a further right (R21)."""
    name = site.endpoint()
    Scaled(site, f"endpoint/{name}/variant/primary").register(1, 2)
    site.update(name, site.config())
    assert site.settled(name)["EndpointStatus"] == "InService"
    sagemaker = caller(allow("sagemaker:DeleteEndpoint"))("sagemaker")
    _, message = refusal(sagemaker.delete_endpoint, EndpointName=name)
    assert "application-autoscaling:DeregisterScalableTarget" in message
    put(aws, "caller", allow(["sagemaker:*", "application-autoscaling:DeregisterScalableTarget"]))
    sagemaker.delete_endpoint(EndpointName=name)


def test_a_session_policy_limits_a_caller(aws, site, caller) -> None:
    name = site.endpoint()
    narrow = json.dumps(document(allow("sagemaker:InvokeEndpoint", endpoint_arn("other"))))
    me = caller(allow("sagemaker:*"), Policy=narrow)("sagemaker-runtime")
    _, message = refusal(me.invoke_endpoint, EndpointName=name, Body=b"{}")
    assert message.endswith("because no session policy allows the sagemaker:InvokeEndpoint action")


def test_the_interface_endpoints_policy_is_judged_by_its_zones(aws, site, caller) -> None:
    name, ec2 = site.endpoint(), aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    place = {"CidrBlock": "10.9.0.0/24", "AvailabilityZone": "us-east-1a"}
    narrow = allow("sagemaker:InvokeEndpoint", endpoint_arn("other"), Principal={"AWS": "*"})
    link = ec2.create_vpc_endpoint(
        VpcId=vpc,
        ServiceName="com.amazonaws.us-east-1.sagemaker.runtime",
        VpcEndpointType="Interface",
        SubnetIds=[ec2.create_subnet(VpcId=vpc, **place)["Subnet"]["SubnetId"]],
        PrivateDnsEnabled=False,
        PolicyDocument=json.dumps(document(narrow)),
    )["VpcEndpoint"]["VpcEndpointId"]
    me = caller(allow("sagemaker:InvokeEndpoint"))
    through, around = (
        me("sagemaker-runtime", aws.runtime_url(zone)) for zone in ("us-east-1a", None)
    )
    try:
        _, message = refusal(through.invoke_endpoint, EndpointName=name, Body=b"{}")
        why = ("sagemaker:InvokeEndpoint", endpoint_arn(name), "VPC endpoint policy")
        assert message == denial("caller/me", *why)
        around.invoke_endpoint(EndpointName=name, Body=b"{}")
        mine = {"StringEquals": {"aws:PrincipalAccount": ACCOUNT, "aws:SourceVpce": link}}
        wide = document(allow("sagemaker:InvokeEndpoint", Principal="*", Condition=mine))
        ec2.modify_vpc_endpoint(VpcEndpointId=link, PolicyDocument=json.dumps(wide))
        through.invoke_endpoint(EndpointName=name, Body=b"{}")
    finally:
        ec2.delete_vpc_endpoints(VpcEndpointIds=[link])


def test_a_key_policy_has_the_last_word_on_a_callers_object(aws, caller) -> None:
    key = sealed(aws, "s")
    mine = caller(allow(["s3:GetObject", "s3:PutObject"]))("s3")
    get = {"Bucket": "models", "Key": "s"}
    code, message = refusal(mine.get_object, **get)
    assert (code, message) == ("AccessDenied", denial("caller/me", "kms:Decrypt", f'"{key}"'))
    through_s3 = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}
    put(aws, "caller", allow("s3:*"), allow(["kms:Decrypt"], key, Condition=through_s3))
    assert mine.get_object(**get)["Body"].read() == b"s"
    writes = {**get, "Body": b"t", "ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    assert "kms:GenerateDataKey" in refusal(mine.put_object, **writes)[1]
    put_key_policy(aws, key, OTHERS)
    denied = denial("caller/me", "kms:Decrypt", f'"{key}"', "resource-based policy")
    assert refusal(mine.get_object, **get)[1] == denied


def test_passing_a_role_is_a_right_of_its_own(aws, caller) -> None:
    hosting = give_role(aws, "models", *HOSTING)
    mine = caller(allow("sagemaker:CreateModel"))("sagemaker")
    container = {"Image": IMAGE.format("model")}
    model = {"ModelName": "passed", "ExecutionRoleArn": hosting, "PrimaryContainer": container}
    assert refusal(mine.create_model, **model)[1] == denial("caller/me", "iam:PassRole", hosting)
    for service in ("lambda", "sagemaker"):
        to = {"StringEquals": {"iam:PassedToService": f"{service}.amazonaws.com"}}
        passes = allow("iam:PassRole", hosting, Condition=to)
        put(aws, "caller", allow(["sagemaker:CreateModel", "sagemaker:DeleteModel"]), passes)
        if service == "lambda":
            assert "iam:PassRole" in refusal(mine.create_model, **model)[1]
    mine.create_model(**model)
    mine.delete_model(ModelName="passed")


def test_the_trust_policy_says_who_assumes_a_role(aws, caller) -> None:
    iam = aws.client("iam")
    me = caller(allow("sts:AssumeRole"))
    target = f"arn:aws:iam::{ACCOUNT}:role/target"
    agreed = {"StringEquals": {"sts:ExternalId": "agreed"}}
    who = {"AWS": f"arn:aws:iam::{ACCOUNT}:role/caller"}
    trusted = trust(Principal=who, Condition=agreed)
    iam.create_role(RoleName="target", AssumeRolePolicyDocument=json.dumps(trusted))
    asks = {"RoleArn": target, "RoleSessionName": "second"}
    denied = denial("caller/me", "sts:AssumeRole", target, "resource-based policy")
    assert refusal(me("sts").assume_role, **asks) == ("AccessDenied", denied)
    me("sts").assume_role(**asks, ExternalId="agreed")
    iam.delete_role(RoleName="target")


def test_a_stacks_role_makes_its_resources(aws) -> None:
    cloudformation, name = aws.client("cloudformation"), "by-role"
    role = give_role(aws, "deploys", allow("sqs:*"), services=("cloudformation",))
    queue = {"Type": "AWS::SQS::Queue"}
    topic = {"Type": "AWS::SNS::Topic", "DependsOn": "Queue"}
    template = json.dumps({"Resources": {"Queue": queue, "Topic": topic}})
    cloudformation.create_stack(StackName=name, TemplateBody=template, RoleARN=role)
    until(
        lambda: cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"],
        lambda status: status == "ROLLBACK_COMPLETE",
    )
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    reasons = [e.get("ResourceStatusReason", "") for e in events]
    assert any("assumed-role/deploys/AWSCloudFormation is not authorized" in r for r in reasons)
    cloudformation.delete_stack(StackName=name)


# ---------------------------------------------------------------------------- what is not known


def test_what_is_not_known_is_an_error_that_names_it(aws, caller) -> None:
    me = caller(allow("*", Condition={"StringEquals": {"s3:ResourceAccount": ACCOUNT}}))
    code, message = refusal(me("sqs").list_queues)
    assert code == "NotEmulated"
    assert "the condition key s3:resourceaccount" in message
    put(aws, "caller", allow(["route53:*", "sqs:*"]))
    code, message = refusal(me("route53").list_hosted_zones)
    assert (code, "the action route53:ListHostedZones" in message) == ("NotEmulated", True)
    put(aws, "caller", allow("*"))  # an administrator need not be understood
    assert me("route53").list_hosted_zones()["HostedZones"] == []


def test_it_can_be_switched_off(caller) -> None:
    options = RuntimeOptions.of_texts(["permissions=ignored"])
    with LocalAws.in_process(runtime=options) as lenient:
        made = lenient.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{ACCOUNT}:role/nobody", RoleSessionName="me"
        )["Credentials"]
        assert as_session(lenient, made)("sqs").list_queues()["ResponseMetadata"]


# ------------------------------------------------------------------------- times and sessions


def aged(headers: dict[str, str], minutes: float) -> dict[str, str]:
    moment = time.gmtime(time.time() - minutes * 60)
    return {**headers, "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", moment)}


@pytest.mark.parametrize(
    ("service", "good", "old", "code", "words"),
    [
        ("sqs", 4, 6, "InvalidSignatureException", "Signature expired: "),
        ("iam", 4, 6, "SignatureDoesNotMatch", "Signature expired: "),
        ("s3", 14, 16, "RequestTimeTooSkewed", "The difference between the request time"),
        ("ec2", 14, 16, "RequestExpired", "Request has expired."),
    ],
)
def test_signatures_grow_old_and_may_not_be_too_new(aws, service, good, old, code, words) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    method, kind, body = {
        "sqs": ("POST", {"X-Amz-Target": "AmazonSQS.ListQueues"}, b"{}"),
        "iam": ("POST", form, b"Action=ListRoles&Version=2010-05-08"),
        "ec2": ("POST", form, b"Action=DescribeVpcs&Version=2016-11-15"),
        "s3": ("GET", {}, b""),
    }[service]
    port = aws.port
    headers = {**signed(aws.credentials.access_key, service), **kind}
    for minutes in (good, -good):
        assert ask(port, method, "/", aged(headers, minutes), body).status == 200
    for minutes in (old, -old):
        refused = ask(port, method, "/", aged(headers, minutes), body)
        assert code.encode() in refused.body + refused.headers.get("x-amzn-errortype", "").encode()
        if minutes > 0:
            assert words.encode() in refused.body
    del headers["X-Amz-Date"]
    assert ask(port, method, "/", headers, body).status in (401, 403)


def test_a_session_ends(aws, caller) -> None:
    from local_sagemaker.permissions import principals

    me = caller(allow(["sqs:*", "s3:*", "iam:*"]))
    me("sqs").list_queues()
    session = principals.session_of(me("sqs")._request_signer._credentials.access_key)
    session.expiration -= session.expiration - session.expiration.replace(year=2020)
    told = "The security token included in the request is expired"
    assert refusal(me("sqs").list_queues) == ("ExpiredTokenException", told)
    assert refusal(me("iam").list_roles) == ("ExpiredToken", told)
    assert refusal(me("s3").list_buckets) == ("ExpiredToken", "The provided token has expired.")


def test_nobody_assumes_a_role_that_there_is_not(aws):
    """CDK's command line asks for its lookup role, and goes on without where there is none."""
    code, message = refusal(
        aws.client("sts").assume_role,
        RoleArn=f"arn:aws:iam::{aws.account}:role/nowhere",
        RoleSessionName="me",
    )
    assert code == "AccessDenied"
    assert "not authorized to perform: sts:AssumeRole" in message


SCALING_ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
LOGS_ROLE = f"arn:aws:iam::{ACCOUNT}:role/logs"
RECORD = {"Name": "a.example", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
ASKED_BESIDES: list[tuple[str, str, dict[str, Any], str, str]] = [
    (
        "application-autoscaling",
        "register_scalable_target",
        {
            "ServiceNamespace": "sagemaker",
            "ResourceId": "endpoint/e/variant/v",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
            "MinCapacity": 1,
            "MaxCapacity": 2,
        },
        "iam:CreateServiceLinkedRole",
        f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/sagemaker.application-autoscaling."
        f"amazonaws.com/{SCALING_ROLE}",
    ),
    (
        "ec2",
        "create_flow_logs",
        {
            "ResourceIds": ["vpc-1"],
            "ResourceType": "VPC",
            "LogGroupName": "l",
            "DeliverLogsPermissionArn": LOGS_ROLE,
        },
        "iam:PassRole",
        LOGS_ROLE,
    ),
    (
        "lambda",
        "update_function_code",
        {"FunctionName": "f", "S3Bucket": "code", "S3Key": "f.zip"},
        "s3:GetObject",
        "arn:aws:s3:::code/f.zip",
    ),
    (
        "events",
        "put_targets",
        {"Rule": "r", "Targets": [{"Id": "1", "Arn": LOGS_ROLE, "RoleArn": LOGS_ROLE}]},
        "iam:PassRole",
        LOGS_ROLE,
    ),
    (
        "route53",
        "create_hosted_zone",
        {
            "Name": "a.example",
            "CallerReference": "1",
            "VPC": {"VPCId": "vpc-1", "VPCRegion": "us-east-1"},
        },
        "ec2:DescribeVpcs",
        "*",
    ),
]


@pytest.mark.parametrize(
    ("service", "operation", "request_", "action", "resource"),
    ASKED_BESIDES,
    ids=[operation for _, operation, *_ in ASKED_BESIDES],
)
def test_what_calls_ask_for_besides(caller, service, operation, request_, action, resource) -> None:
    me = caller(allow(f"{service}:*"))(service)
    _, message = refusal(getattr(me, operation), **request_)
    asked = f"not authorized to perform: {action} on resource: {resource}"
    assert asked in message.replace('"', "")


def test_a_path_with_a_slash_at_its_end_is_the_operations(caller) -> None:
    changes = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": RECORD}]}
    me = caller(allow("route53:GetHostedZone"))("route53")
    _, message = refusal(me.change_resource_record_sets, HostedZoneId="Z1", ChangeBatch=changes)
    assert (
        "route53:ChangeResourceRecordSets on resource: arn:aws:route53:::hostedzone/Z1" in message
    )


def test_the_first_objective_needs_the_rights_to_its_role_and_its_metric(caller) -> None:
    query = {"Id": "m", "MetricStat": {"Metric": {"MetricName": "m"}, "Period": 60, "Stat": "p99"}}
    metric = {"MetricDataQueries": [query]}
    asked = {"Name": "fast", "SliConfig": {"SliMetricConfig": metric, "MetricThreshold": 1.0}}
    roles = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/application-signals.cloudwatch.*"
    rights = {
        "application-signals:CreateServiceLevelObjective": "arn:aws:application-signals:*:*:slo/f*",
        "cloudwatch:GetMetricData": "*",
        "iam:CreateServiceLinkedRole": roles,
    }
    statements = [allow(action, resource) for action, resource in rights.items()]
    for action, without in zip(rights, statements, strict=True):
        signals = caller(*(each for each in statements if each is not without))
        code, message = refusal(
            signals("application-signals").create_service_level_objective, **asked
        )
        assert code == "AccessDeniedException"
        assert f"not authorized to perform: {action}" in message
    signals = caller(*statements)("application-signals")
    assert signals.create_service_level_objective(**asked)["Slo"]["Name"] == "fast"
    code, _ = refusal(signals.delete_service_level_objective, Id="fast")
    assert code == "AccessDeniedException"


def test_the_event_history_tells_who_changed_what(aws: LocalAws, caller) -> None:
    client = caller(allow("cloudwatch:DeleteAlarms"), allow("cloudtrail:LookupEvents"))
    alarm = {"AlarmName": "a", "Namespace": "n", "MetricName": "m", "Statistic": "Sum"}
    alarm |= {"Period": 60, "EvaluationPeriods": 1, "Threshold": 1.0}
    alarm["ComparisonOperator"] = "GreaterThanThreshold"
    aws.client("cloudwatch").put_metric_alarm(**alarm)
    refusal(client("cloudwatch").put_metric_alarm, **alarm)
    client("cloudwatch").delete_alarms(AlarmNames=["a"])
    aws.client("cloudwatch").describe_alarms()  # reads are no part of it

    def looked_up(**asked: str) -> list[tuple[str, str, Any]]:
        attributes = [{"AttributeKey": key, "AttributeValue": each} for key, each in asked.items()]
        found = client("cloudtrail").lookup_events(LookupAttributes=attributes)["Events"]
        events = [(each, json.loads(each["CloudTrailEvent"])) for each in found]
        return [
            (each["EventName"], each["Username"], event.get("errorCode")) for each, event in events
        ]

    put = ("PutMetricAlarm", "moto", None)
    denied, deleted = (
        ("PutMetricAlarm", "me", "AccessDeniedException"),
        ("DeleteAlarms", "me", None),
    )
    assert looked_up(EventSource="monitoring.amazonaws.com")[:3] == [deleted, denied, put]
    assert looked_up(EventName="DeleteAlarms") == [deleted]
    assert looked_up(ResourceName="a") == [denied, put]
    (found,) = client("cloudtrail").lookup_events(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": "DeleteAlarms"}]
    )["Events"]
    event = json.loads(found["CloudTrailEvent"])
    assert event["requestParameters"] == {"alarmNames": ["a"]}
    assert event["userIdentity"]["arn"].endswith(":assumed-role/caller/me")
    nobody = caller()("cloudtrail").lookup_events
    assert refusal(nobody)[0] == "AccessDeniedException"
    both = [{"AttributeKey": "EventName", "AttributeValue": "x"}] * 2
    assert refusal(aws.client("cloudtrail").lookup_events, LookupAttributes=both)[0] == (
        "ValidationException"
    )


def test_the_event_history_has_no_secret_and_whole_codes(aws: LocalAws, caller) -> None:
    aws.client("secretsmanager").create_secret(Name="mine", SecretString="not for a history")
    refusal(aws.client("ec2").delete_security_group, GroupId="sg-0123456789abcdef0")
    found = aws.client("cloudtrail").lookup_events(MaxResults=2)["Events"]
    refused, made = (json.loads(each["CloudTrailEvent"]) for each in found)
    assert made["requestParameters"]["secretString"] == "HIDDEN_DUE_TO_SECURITY_REASONS"
    assert "not for a history" not in str(found)
    assert refused["errorCode"] == "InvalidGroup.NotFound"
    assert made["userIdentity"]["type"] == "IAMUser"


def test_the_event_history_keeps_the_keys_of_maps(aws: LocalAws) -> None:
    container = {"Image": "image:1", "Environment": {"HF_TASK": "text-classification"}}
    role = "arn:aws:iam::123456789012:role/nobody-made-this"
    aws.client("sagemaker").create_model(
        ModelName="m", ExecutionRoleArn=role, Containers=[container]
    )
    (found,) = aws.client("cloudtrail").lookup_events(MaxResults=1)["Events"]
    (told,) = json.loads(found["CloudTrailEvent"])["requestParameters"]["containers"]
    assert told == {"image": "image:1", "environment": container["Environment"]}


@pytest.mark.parametrize("token", ["-1", "x"])
def test_the_event_history_refuses_a_token_that_it_did_not_give(aws: LocalAws, token) -> None:
    code, _ = refusal(aws.client("cloudtrail").lookup_events, NextToken=token)
    assert code == "InvalidNextTokenException"


def test_what_cloudformation_asks_for_is_told_apart_in_the_event_history(aws: LocalAws) -> None:
    stack = TestStack(aws, "Told")
    stack.of(Group={"Type": "AWS::Logs::LogGroup"}, Topic={"Type": "AWS::SNS::Topic"})
    found = aws.client("cloudtrail").lookup_events(MaxResults=50)["Events"]
    told = {each["EventName"]: json.loads(each["CloudTrailEvent"]) for each in reversed(found)}
    by = {name: event["userIdentity"].get("invokedBy") for name, event in told.items()}
    assert by["CreateTopic"] == "cloudformation.amazonaws.com"
    assert by["CreateStack"] is None
    stack.delete()
