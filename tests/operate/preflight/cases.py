"""The cases of the checks before a deploy: what is changed, and what must come out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tests.fake_aws import ACCOUNT, REFUSED, REGION, FakeAws, Refused, filtered, merged
from tests.operate.preflight.world import (
    ADOPTED,
    ALL,
    DEPLOYED,
    ENDPOINT_ARN,
    GROUP,
    KEY,
    LINK,
    NO_ENDPOINT,
    ROLE,
    RUNTIME,
    S3_GATEWAY,
    SUBNETS,
    TOPIC,
    VPC,
    WORLD,
    allowing,
    endpoints,
    group,
    in_service,
    link,
    manifest,
    outcomes,
    quotas,
    roles,
    route_table,
    settings_with,
    simulating,
    subnet,
    vpc_attribute,
)

# --- changes of the settings
E = "endpoints.sentiment."
LANGUAGE = {
    E + "latency": {"ttft_p95": "500ms", "itl_p95": "50ms"},
    E + "tokens": {"input": 512, "output": 128},
    E + "throughput.concurrency_per_instance": 20,
    E + "alarms": {"tokens": {"server": "vllm"}},
}
NAMES = {"client_zones": {"names": [f"{REGION}a", f"{REGION}b"]}, "network.subnets": None}
OBJECTIVE = {E + "alarms": {"service_level_objective": 0.99, "model_latency": {"p99": "200ms"}}}
WARMED = {E + "warm_up": {"payload": {"text": "hello"}}}
RESERVING = {E + "warm_up": {"payload": {"text": "hello"}, "reserved_concurrency": 2}}
OTHER_VPC = "vpc-0fedcba9876543210"
FOR_OTHERS = {"private_link": {"hosted_zone_vpc_ids": [OTHER_VPC]}}
LEFT_ALONE = {"private_link": {"private_dns": False}}
NO_ROLE = {E + "role_arn": None}
DATA = E + "containers"
DATA_KEY = KEY.replace("1234abcd-", "8765dcba-")
DLC = {
    "repository": "huggingface-pytorch-inference",
    "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
}


def container(**changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "image": {"ecr": {"repository": "team/model", "tag": "1.4"}},
            "data": {"s3": "s3://models/sentiment/model.tar.gz"},
            **changes,
        }
    ]


def image(**stated: Any) -> dict[str, Any]:
    return {DATA: container(image=stated)}


def with_key(key: str) -> dict[str, Any]:
    """Model data for which a key is stated."""
    return {DATA: container(data={"s3": "s3://models/sentiment/model.tar.gz", "kms_key_arn": key})}


STATED_KEY = with_key(DATA_KEY)
PREFIX = {DATA: container(data={"s3_prefix": "s3://models/sentiment/"})}


NO_REGION = {  # which the file does not say: else it is refused already
    "region": None,
    "client_zones": {"ids": ["new1-az1", "new1-az2"]},
    "network.subnets": {
        "new1-az1": "subnet-0123456789abcdef0",
        "new1-az2": "subnet-0123456789abcdef1",
    },
}


shared_vpc = {"ec2.DescribeVpcs": {"Vpcs": [{"OwnerId": "210987654321"}]}}


def stated_roles(**accounts: str) -> dict[str, Any]:
    """Stated roles by what they are for, and whose they are, which the file does not compare."""
    return {
        "account": None,
        "safeguards": {
            f"{name}_role_arn": f"arn:aws:iam::{account}:role/model-role"
            for name, account in accounts.items()
        },
    }


# --- changes of the account
def no(operation: str, code: str, status: int = 400) -> dict[str, Any]:
    """An error of an operation."""
    return {operation: Refused(code, status=status)}


def refused(operation: str) -> dict[str, Any]:
    """An operation that is not permitted."""
    return {operation: REFUSED}


def caller(account: str, name: str = "user/dev") -> dict[str, Any]:
    identity = {"Account": account, "Arn": f"arn:aws:iam::{account}:{name}", "UserId": "A"}
    return {"sts.GetCallerIdentity": identity}


def regions(*found: Mapping[str, Any]) -> dict[str, Any]:
    return {"ec2.DescribeRegions": {"Regions": list(found)}}


def offered(details: Mapping[str, Any]) -> dict[str, Any]:
    """Where PrivateLink offers the runtime."""
    return {"ec2.DescribeVpcEndpointServices": {"ServiceDetails": [details]}}


def stack(status: str, **more: Any) -> dict[str, Any]:
    found = {"StackName": "Shop", "StackStatus": status, **more}
    return {"cloudformation.DescribeStacks": {"Stacks": [found]}}


def zones(**states: str) -> dict[str, Any]:
    names = {"use1_az1": f"{REGION}a", "use1_az2": f"{REGION}b"}
    found = [
        {"ZoneName": names[zone], "ZoneId": zone.replace("_", "-"), "State": state}
        for zone, state in states.items()
    ]
    return {"ec2.DescribeAvailabilityZones": {"AvailabilityZones": found}}


def deployed(**variant: Any) -> dict[str, Any]:
    configuration = DEPLOYED["sagemaker.DescribeEndpointConfig"]
    (before,) = configuration["ProductionVariants"]
    changed = {**configuration, "ProductionVariants": [{**before, **variant}]}
    return DEPLOYED | {"sagemaker.DescribeEndpointConfig": changed}


def endpoint_status(status: str, **more: Any) -> dict[str, Any]:
    changed = {**DEPLOYED["sagemaker.DescribeEndpoint"], "EndpointStatus": status, **more}
    return DEPLOYED | {"sagemaker.DescribeEndpoint": changed}


def reserving_stack(*counts: int) -> dict[str, Any]:
    """The deployed stack, with functions that reserve so many executions each."""
    functions = {
        f"Function{number}": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"ReservedConcurrentExecutions": count},
        }
        for number, count in enumerate(counts)
    }
    return {"cloudformation.GetTemplate": {"TemplateBody": json.dumps({"Resources": functions})}}


def concurrent(quota: int, unreserved: int) -> dict[str, Any]:
    """What Lambda tells of the account's concurrency."""
    limit = {"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": unreserved}
    return {"lambda.GetAccountSettings": {"AccountLimit": limit}}


def there(*subnets: Mapping[str, Any]) -> dict[str, Any]:
    return {"ec2.DescribeSubnets": {"Subnets": list(subnets)}}


def subnets(**changes: Any) -> dict[str, Any]:
    return there(subnet("use1-az1", **changes), subnet("use1-az2"))


def routes(*found: Mapping[str, Any]) -> dict[str, Any]:
    """Other routes, and no gateway endpoint."""
    tables = {"RouteTables": [route_table(Routes=list(found))]}
    return {"ec2.DescribeRouteTables": tables, **links()}


TO_INTERNET = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-0123456789abcdef0"}
TO_NAT = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-0123456789abcdef0"}
NO_HOSTNAMES = {"ec2.DescribeVpcAttribute": vpc_attribute(hostnames=False)}


def applied(**types: float | None) -> dict[str, Any]:
    """The account's quotas."""
    return {"service-quotas.ListServiceQuotas": quotas(**types)}


def no_image(code: str) -> dict[str, Any]:
    return {"ecr.BatchGetImage": {"failures": [{"failureCode": code}]}}


def platforms(*architectures: str) -> list[dict[str, Any]]:
    return [{"platform": {"architecture": each}} for each in architectures]


def sized(size: int) -> dict[str, Any]:
    return {"s3.HeadObject": {"ContentLength": size}}


def objects(sizes: Mapping[str, int]) -> dict[str, Any]:
    return {"Contents": [{"Key": name, "Size": size} for name, size in sizes.items()]}


def encrypted(key: str) -> dict[str, Any]:
    """Model data that a KMS key encrypts, as S3 tells."""
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    return {"s3.HeadObject": {"ContentLength": 268_000_000, **encryption}}


def of_key(name: str, key: str) -> Any:
    """HeadObject, of objects among which a KMS key encrypts one."""

    def answer(params: Mapping[str, Any]) -> Any:
        found: Any = encrypted(key)["s3.HeadObject"]
        return found if params["Key"] == name else {"ContentLength": 1}

    return answer


def key(**metadata: str) -> dict[str, Any]:
    return {"kms.DescribeKey": {"KeyMetadata": metadata}}


def only(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {"Condition": {"StringEquals": wanted}}


def policed(**changes: Any) -> dict[str, Any]:
    """The adopted interface endpoint has another policy."""
    return links(link(PolicyDocument=allowing(**changes)))


def managed_by(manager: str) -> dict[str, Any]:
    """Model data that a key encrypts, and who manages the key."""
    return encrypted(DATA_KEY) | key(KeyId="8765dcba", Arn=DATA_KEY, KeyManager=manager)


def trusting(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """The trust policy of the model's role has these statements: SageMaker, but for changes."""

    def role(params: Mapping[str, Any]) -> Any:
        found = roles(params)["Role"]
        (trusted,) = json.loads(found["AssumeRolePolicyDocument"])["Statement"]
        document = {"Version": "2012-10-17", "Statement": [trusted | each for each in changes]}
        return {"Role": {**found, "AssumeRolePolicyDocument": json.dumps(document)}}

    return {"iam.GetRole": role}


def only_model_role(params: Mapping[str, Any]) -> Any:
    return roles(params) if params["RoleName"] == "model-role" else Refused("NoSuchEntity")


def may_not(*denied: str, **more: Any) -> dict[str, Any]:
    """A deployer who may do all, but for this."""
    denial = {"Effect": "Deny", "Action": denied, "Resource": "*", **more}
    return {"iam.SimulatePrincipalPolicy": simulating(ALL, denial)}


def topic(**attributes: str) -> dict[str, Any]:
    return {"sns.GetTopicAttributes": {"Attributes": attributes}}


def enrichment(status: str) -> dict[str, Any]:
    """CloudWatch's OTel enrichment of the account."""
    return {"cloudwatch.GetOTelEnrichment": {"Status": status}}


def links(*found: Mapping[str, Any]) -> dict[str, Any]:
    """The VPC endpoints that there are."""
    return {"ec2.DescribeVpcEndpoints": endpoints(*found)}


ZONE = "Z0123456789ABCDEFGHIJ"


def hosted(*ids: str, **owner: str) -> dict[str, Any]:
    """Private hosted zones of the runtime's name."""
    found = [
        {
            "HostedZoneId": zone_id,
            "Owner": owner or {"OwningAccount": ACCOUNT},
            "Name": f"runtime.sagemaker.{REGION}.amazonaws.com.",
        }
        for zone_id in ids
    ]
    return {"route53.ListHostedZonesByVPC": {"HostedZoneSummaries": found}}


def in_other_vpc(there: Mapping[str, Any], elsewhere: Mapping[str, Any]) -> dict[str, Any]:
    """An operation's answer for the other VPC, and for all others."""
    (operation,) = there

    def answered(params: Mapping[str, Any]) -> Any:
        asked = params.get("VPCId") or next(filtered(params, "vpc-id"))
        found = (there if asked == OTHER_VPC else elsewhere)[operation]
        return found(params) if callable(found) else found

    return {operation: answered}


def resources(logical_id: str = "", **physical: str) -> dict[str, Any]:
    """The stack's resources, by the end of their type; with the logical ID of the one there is."""
    found = [
        {
            "LogicalResourceId": logical_id or kind.replace("_", ""),
            "ResourceType": f"AWS::{kind.replace('_', '::')}",
            "PhysicalResourceId": value,
            "ResourceStatus": "CREATE_COMPLETE",
        }
        for kind, value in physical.items()
    ]
    return {"cloudformation.ListStackResources": {"StackResourceSummaries": found}}


def stuck(kind: str, reason: str = "") -> dict[str, Any]:
    """The stack, whose rollback ended at one resource."""
    found = resources("sentimentEndpoint", **{kind: "x"})
    (resource,) = found["cloudformation.ListStackResources"]["StackResourceSummaries"]
    resource.update(ResourceStatus="UPDATE_FAILED", ResourceStatusReason=reason)
    return found | stack("UPDATE_ROLLBACK_FAILED")


def others(*names: str) -> dict[str, Any]:
    """Endpoints of the account that are in service."""
    return {"sagemaker.ListEndpoints": in_service(*names)}


def flow_log(**changes: Any) -> dict[str, Any]:
    """A flow log of the VPC, and other endpoints that make it worth reading."""
    found = {
        "FlowLogStatus": "ACTIVE",
        "TrafficType": "ALL",
        "ResourceId": VPC,
        "LogDestinationType": "cloud-watch-logs",
        "LogGroupName": "flows",
        **changes,
    }
    return {**others("theirs"), "ec2.DescribeFlowLogs": {"FlowLogs": [found]}}


def flows(*pairs: str) -> dict[str, Any]:
    """A first page without a match, then a record of each interface and source."""

    def answered(params: Mapping[str, Any]) -> Any:
        for address in ("203.0.113.7", "203.0.113.8"):
            assert f'"{address}"' in params["filterPattern"]
        if "nextToken" not in params:
            return {"events": [], "nextToken": "2"}
        flow = f"2 {ACCOUNT} {{}} 203.0.113.7 50000 443 6 9 900 1 2 ACCEPT OK"
        return {"events": [{"message": flow.format(pair)} for pair in pairs]}

    return {"logs.FilterLogEvents": answered}


INTERFACES = {
    "ec2.DescribeNetworkInterfaces": {
        "NetworkInterfaces": [
            {"NetworkInterfaceId": "eni-1", "Description": "AWS Lambda VPC ENI-shop"},
            {"NetworkInterfaceId": "eni-2", "InterfaceType": "nat_gateway"},
        ]
    }
}


@dataclass(frozen=True, eq=False)  # each is itself: see run
class Case:
    """What is changed in settings and account, and what must come out."""

    check: str
    status: str
    words: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    aws: Mapping[str, Any] = field(default_factory=dict)
    region: str = REGION
    fetched: bytes = b'{"architecture": "amd64"}'  # the configuration of the image

    def __str__(self) -> str:
        return "-".join((self.check, self.status, *self.words[:1])).replace(" ", "_")[:50]


def case(status: str, check: str, words: str, *changes: Mapping[str, Any], **more: Any) -> Case:
    """A case whose words, with " & " between them, are all told.

    Changes by an operation's name are the account's, all others the settings'.
    """
    changed = merged(*changes)
    aws = {name: each for name, each in changed.items() if re.match(r"[a-z0-9-]+\.[A-Z]", name)}
    settings = {name: each for name, each in changed.items() if name not in aws}
    return Case(check, status, tuple(words.split(" & ")), settings, aws, **more)


passes, fails, warns, unknown = (
    partial(case, status) for status in ("pass", "fail", "warn", "unknown")
)

CASES = [
    # --- credentials, region, bootstrap, stack
    passes("LLP101", "user/dev"),
    fails("LLP101", "210987654321 & --profile", caller("210987654321")),
    unknown("LLP101", "sts:GetCallerIdentity", refused("sts.GetCallerIdentity")),
    passes("LLP102", f"{REGION}"),
    fails("LLP102", "eu-west-1 & us-east-1", region="eu-west-1"),
    fails("LLP102", "not enabled", regions({"RegionName": REGION, "OptInStatus": "not-opted-in"})),
    fails("LLP102", "no region", regions()),
    passes("LLP103", "version 30"),
    fails(
        "LLP103",
        "`make bootstrap` & cdk bootstrap aws://ACCOUNT/us-east-1",
        no("ssm.GetParameter", "ParameterNotFound"),
    ),
    fails("LLP103", "version 5", {"ssm.GetParameter": {"Parameter": {"Value": "5"}}}),
    unknown("LLP103", "ssm:GetParameter", refused("ssm.GetParameter")),
    passes("LLP104", "will be created"),
    passes("LLP104", "CREATE_COMPLETE", stack("CREATE_COMPLETE")),
    fails("LLP104", "Wait", stack("UPDATE_IN_PROGRESS")),
    fails("LLP104", "npx cdk rollback Shop", stack("UPDATE_ROLLBACK_FAILED")),
    fails(
        "LLP104",
        "`npx cdk rollback Shop --orphan sentimentEndpoint` & docs/how-to/roll-back.md",
        stuck("SageMaker_Endpoint"),
    ),
    fails(
        "LLP104",
        "Wait until the endpoint is InService & `npx cdk rollback Shop` & docs/how-to/roll-back.md",
        stuck("SageMaker_Endpoint", "Cannot update in-progress endpoint"),
    ),
    fails(
        "LLP104",
        "Mend why sentimentEndpoint did not go back & `npx cdk rollback Shop` & roll-back.md",
        stuck("Lambda_Function"),
    ),
    fails(
        "LLP104",
        "could not be read & cloudformation:ListStackResources & roll-back.md",
        stack("UPDATE_ROLLBACK_FAILED"),
        refused("cloudformation.ListStackResources"),
    ),
    fails("LLP104", "no room", stack("DELETE_FAILED", StackStatusReason="no room")),
    warns("LLP104", "never created", stack("ROLLBACK_COMPLETE")),
    warns("LLP104", "rolled back", stack("UPDATE_ROLLBACK_COMPLETE")),
    # --- zones
    passes("LLP201", "us-east-1a is use1-az1"),
    fails("LLP201", "use1-az2 is not a zone", zones(use1_az1="available")),
    warns("LLP201", "impaired", zones(use1_az1="available", use1_az2="impaired")),
    passes("LLP202", "use1-az1, use1-az2"),
    fails(
        "LLP202",
        "not in use1-az2 & offered in use1-az1",
        offered({"AvailabilityZones": [f"{REGION}a"], "AvailabilityZoneIds": ["use1-az1"]}),
    ),
    fails(
        "LLP202",
        "no endpoint service & runtime-fips",
        {"private_link.fips": True},
        no("ec2.DescribeVpcEndpointServices", "InvalidServiceName"),
    ),
    unknown("LLP202", "LLP201", zones(use1_az1="available")),
    unknown("LLP202", "lists no zones", offered({})),
    # --- interface endpoints that exist
    passes("LLP203", "no endpoint with private DNS"),
    fails("LLP203", f"Adopt this interface endpoint & {LINK} & {GROUP}", links(link())),
    passes("LLP203", "no endpoint with private DNS", links(link(State="deleted"))),
    passes(
        "LLP203",
        "own",
        links(link()),
        resources("PrivateLinkEndpointAB1FEE43", EC2_VPCEndpoint=LINK),
    ),
    fails(
        "LLP203",
        "already: AWS refuses a second one",
        links(link()),
        resources("LegacyLinkEndpoint0A1B2C3D", EC2_VPCEndpoint=LINK),
    ),
    fails("LLP203", "hosted zone", hosted(ZONE)),
    passes("LLP203", "", hosted(ZONE, OwningService="vpce.amazonaws.com")),
    fails("LLP203", "private_dns: false", links(link())),
    passes("LLP203", f"{OTHER_VPC} & no other hosted zone", FOR_OTHERS),
    fails(
        "LLP203",
        f"{LINK} & {OTHER_VPC} & zonal names",
        FOR_OTHERS,
        in_other_vpc(links(link(VpcId=OTHER_VPC)), links()),
    ),
    fails("LLP203", f"{ZONE} & {OTHER_VPC}", FOR_OTHERS, in_other_vpc(hosted(ZONE), hosted())),
    passes(
        "LLP203",
        f"{OTHER_VPC}",
        FOR_OTHERS,
        in_other_vpc(hosted(ZONE), hosted()),
        resources("PrivateLinkHostedZone0A1B2C3D", Route53_HostedZone=ZONE),
    ),
    # Also where the callers' own VPC is new, or has the name left alone.
    fails("LLP203", f"{ZONE} & {OTHER_VPC}", FOR_OTHERS | {"network": None}, hosted(ZONE)),
    unknown(
        "LLP204",
        "of account 210987654321 & Ask the owner",
        ADOPTED,
        {"network.owner": "210987654321"},
        no("ec2.DescribeVpcEndpoints", "InvalidVpcEndpointId.NotFound"),
    ),
    passes("LLP204", f"{RUNTIME} & private DNS on", ADOPTED, links(link())),
    fails(
        "LLP204",
        "does not exist",
        ADOPTED,
        no("ec2.DescribeVpcEndpoints", "InvalidVpcEndpointId.NotFound"),
    ),
    fails(
        "LLP204",
        "Name the endpoint of service",
        ADOPTED,
        links(link(ServiceName="com.amazonaws.us-east-1.sqs")),
    ),
    fails("LLP204", "vpc-0fedcba9876543210", ADOPTED, links(link(VpcId="vpc-0fedcba9876543210"))),
    fails("LLP204", "pending", ADOPTED, links(link(State="pending"))),
    warns("LLP204", "private DNS is off", ADOPTED, links(link(PrivateDnsEnabled=False))),
    fails("LLP204", "no subnet in use1-az2", ADOPTED, links(link()), there(subnet("use1-az1"))),
    warns(
        "LLP204",
        "does not guard it & 10.0.0.0/16",
        ADOPTED,
        links(link(Groups=[{"GroupId": "sg-0fedcba9876543210"}])),
    ),
    fails(
        "LLP204",
        "lets nobody in",
        ADOPTED,
        links(link(Groups=[{"GroupId": "sg-0fedcba9876543210"}])),
        group(port=80),
    ),
    warns(
        "LLP204",
        "endpoint/sentiment",
        ADOPTED,
        links(link(PolicyDocument=allowing(Resource=ENDPOINT_ARN.replace("sentiment", "other")))),
    ),
    *(
        passes("LLP204", "lets sentiment be invoked", ADOPTED, policed(**changes))
        for changes in (
            only({"aws:SourceVpc": VPC, "aws:SourceVpce": LINK}),
            only({"aws:ResourceAccount": "${aws:PrincipalAccount}"}),
        )
    ),
    warns("LLP204", "sentiment", ADOPTED, policed(**only({"aws:SourceVpc": "vpc-0123"}))),
    *(
        unknown("LLP204", words, ADOPTED, policed(**changes))
        for words, changes in (
            ("aws:PrincipalOrgID", only({"aws:PrincipalOrgID": "o-1"})),
            ("aws:SourceVpc", only({"aws:SourceVpc": "${aws:PrincipalTag/vpc}"})),
            ("${aws:username}", {"Resource": ENDPOINT_ARN + "${aws:username}"}),
            ("${aws:", {"Resource": ENDPOINT_ARN.replace(ACCOUNT, "${aws:PrincipalAccount}")}),
        )
    ),
    # --- whom private DNS redirects
    passes("LLP209", "no other endpoint"),
    passes(
        "LLP209",
        "no other endpoint",
        others("Sentiment"),
        resources(SageMaker_Endpoint=ENDPOINT_ARN),
    ),
    passes(
        "LLP209",
        f"{LINK} & already",
        others("theirs"),
        links(link()),
        resources(EC2_VPCEndpoint=LINK),
    ),
    warns(
        "LLP209",
        f"2 other endpoints are in service & ranking & theirs & {VPC} & allow_cidrs & private_dns: false",
        others("theirs", "ranking"),
    ),
    warns(
        "LLP209",
        "1 other endpoint is & narrow_policy: true refuses them",
        {"private_link": {"narrow_policy": True}},
        others("theirs"),
    ),
    unknown("LLP209", "callers & no flow log & CloudTrail", others("theirs")),
    *(
        unknown("LLP209", "no flow log", flow_log(**changes))
        for changes in (
            {"TrafficType": "REJECT"},
            {"FlowLogStatus": "FAILED"},
            {"LogFormat": "${srcaddr}"},
            {"LogDestinationType": "s3", "LogGroupName": ""},
        )
    ),
    warns(
        "LLP209",
        "callers & 10.0.3.17 (eni-1, AWS Lambda VPC ENI-shop) & behind NAT gateway eni-2 & 10.0.4.9 (eni-3)",
        flow_log(),
        INTERFACES,
        flows("eni-1 10.0.3.17", "eni-2 10.0.0.4", "eni-3 10.0.4.9", "eni-1 10.0.3.17"),
    ),
    unknown("LLP209", "nobody is in what was read", flow_log(), flows()),
    unknown("LLP209", "logs:FilterLogEvents", flow_log(), refused("logs.FilterLogEvents")),
    # --- the VPC and its subnets
    passes("LLP210", "is this account's"),
    passes("LLP210", "of account 210987654321 & adopted", ADOPTED, shared_vpc),
    passes("LLP210", "adopted", ADOPTED, {"network.owner": "210987654321"}, shared_vpc),
    fails("LLP210", "which shares it & network.owner: '210987654321'", shared_vpc),
    fails("LLP210", "not of 999999999999", ADOPTED, {"network.owner": "999999999999"}),
    unknown("LLP210", "LLP205", {"ec2.DescribeVpcs": {"Vpcs": []}}),
    passes("LLP205", "hostnames on"),
    passes("LLP205", "enableDnsHostnames off & private DNS alone", LEFT_ALONE, NO_HOSTNAMES),
    fails("LLP205", "enableDnsHostnames off", NO_HOSTNAMES),
    fails("LLP205", "does not exist", no("ec2.DescribeVpcAttribute", "InvalidVpcID.NotFound")),
    passes("LLP206", f"{SUBNETS['use1-az1']} & use1-az1"),
    fails(
        "LLP206",
        "is in us-east-1c",
        subnets(AvailabilityZone=f"{REGION}c", AvailabilityZoneId="use1-az3"),
    ),
    fails("LLP206", f"not a subnet of {VPC}", there(subnet("use1-az2"))),
    passes("LLP206", "10.0.1.0/24", NAMES),
    fails("LLP206", "internet gateway in us-east-1b", NAMES, there(subnet("use1-az1"))),
    fails("LLP206", "internet gateway in us-east-1a", NAMES, routes(TO_INTERNET)),
    warns(
        "LLP206",
        "takes one of them",
        NAMES,
        there(*map(subnet, SUBNETS), subnet("use1-az2", SubnetId="subnet-0fedcba9876543210")),
    ),
    # 2 fleets x 8 instances x 2 addresses + interface endpoint + 16 spare = 49 free ones
    passes("LLP207", "49 hold two fleets of 8"),
    passes("LLP207", "49 free", subnets(AvailableIpAddressCount=49)),
    warns("LLP207", "48 free & 25 when they spread", subnets(AvailableIpAddressCount=48)),
    fails("LLP207", "24 free", subnets(AvailableIpAddressCount=24)),
    warns("LLP207", "running fleet", stack("UPDATE_COMPLETE"), subnets(AvailableIpAddressCount=24)),
    passes("LLP207", "48 hold", ADOPTED),
    unknown("LLP207", "LLP206", there(subnet("use1-az2"))),
    passes("LLP208", "gateway endpoint"),
    passes("LLP208", "NAT gateway", routes(TO_NAT)),
    warns("LLP208", "no way to S3", routes()),
    warns("LLP208", "no way to S3", routes({**TO_NAT, "State": "blackhole"})),
    fails(
        "LLP208",
        "network isolation & gateway endpoint for S3",
        {E + "network_isolation": True},
        routes(),
    ),
    warns("LLP208", "internet gateway only", routes(TO_INTERNET)),
    warns(
        "LLP208", "no way to S3", links({**S3_GATEWAY, "RouteTableIds": ["rtb-0fedcba9876543210"]})
    ),
    # --- capacity
    passes("LLP301", "ml.m5.xlarge"),
    passes(
        "LLP301",
        "",
        applied(),
        {"service-quotas.ListAWSDefaultServiceQuotas": quotas(ml_m5_xlarge=4)},
    ),
    warns("LLP301", "probably not offered", applied(ml_g5_xlarge=4)),
    passes("LLP302", "quota 16 (applied) & 8 at most & 16 during"),
    fails(
        "LLP302",
        "quota 15 & request-service-quota-increase & --desired-value 16",
        applied(ml_m5_xlarge=15),
    ),
    fails(
        "LLP302",
        "AWS's default",
        applied(),
        {"service-quotas.ListAWSDefaultServiceQuotas": quotas(ml_m5_xlarge=4)},
    ),
    # 8 and a batch of a quarter
    passes(
        "LLP302",
        "10 during",
        {E + "deployment": {"rolling": {"batch_percent": 25}}},
        applied(ml_m5_xlarge=10),
    ),
    unknown("LLP302", "LLP301", applied(ml_g5_xlarge=4)),
    unknown("LLP302", "not available", applied(ml_m5_xlarge=None)),
    passes("LLP303", "nothing is reserved & 1000", WARMED),
    passes("LLP303", "4 more reserved & leave 996", RESERVING),
    passes("LLP303", "4 more reserved & leave 100", RESERVING, concurrent(150, 104)),
    fails(
        "LLP303",
        "leave 99 & at least 100 & a lower `reserved_concurrency`",
        RESERVING,
        concurrent(150, 103),
    ),
    # What the stack has reserved before is not reserved again.
    passes(
        "LLP303",
        "0 more reserved",
        RESERVING,
        concurrent(150, 100),
        DEPLOYED,
        reserving_stack(2, 2),
    ),
    passes(
        "LLP303", "2 more reserved", RESERVING, concurrent(150, 102), DEPLOYED, reserving_stack(2)
    ),
    # Changed from reserving to not reserving: what is given back counts.
    passes(
        "LLP303",
        "nothing is reserved",
        WARMED,
        concurrent(150, 100),
        DEPLOYED,
        reserving_stack(2, 2),
    ),
    # A new account.
    fails("LLP303", "leave 6 & at least 10", RESERVING, concurrent(10, 10)),
    warns("LLP303", "10 executions & L-B99A9384", WARMED, concurrent(10, 10)),
    unknown("LLP303", "lambda:GetAccountSettings", WARMED, refused("lambda.GetAccountSettings")),
    # --- image and data
    passes("LLP401", "team/model:1.4"),
    passes("LLP401", "763104351884", image(dlc=DLC)),
    fails("LLP401", f"{ACCOUNT}.dkr.ecr.{REGION} has no team/model:1.4", no_image("ImageNotFound")),
    fails("LLP401", "has no", no("ecr.BatchGetImage", "RepositoryNotFoundException")),
    unknown("LLP401", "UpstreamAccessDenied", no_image("UpstreamAccessDenied")),
    fails(
        "LLP401",
        "is in eu-west-1",
        NO_REGION,
        image(uri=f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/team/model:1"),
    ),
    unknown("LLP401", "no ECR registry", image(uri="docker.io/team/model:1")),
    passes("LLP402", "x86_64 on ml.m5.xlarge"),
    fails("LLP402", "arm64 on ml.m5.xlarge & linux/amd64", fetched=b'{"architecture": "arm64"}'),
    passes(
        "LLP402",
        "x86_64, arm64",
        {"ecr.BatchGetImage": manifest({"manifests": platforms("amd64", "arm64", "unknown")})},
    ),
    fails(
        "LLP402", "x86_64 on ml.c7g.xlarge & linux/arm64", {E + "instance_type": "ml.c7g.xlarge"}
    ),
    unknown("LLP402", "does not report", fetched=b"not json"),
    unknown("LLP402", "LLP401", {"ecr.BatchGetImage": {}}),
    passes("LLP403", "268 MB"),
    passes("LLP403", "2 objects, 3 kB", PREFIX),
    fails("LLP403", "nothing at s3://models", no("s3.HeadObject", "404", 404)),
    fails("LLP403", "nothing at", PREFIX, {"s3.ListObjectsV2": {"KeyCount": 0}}),
    unknown("LLP403", "s3:GetObject", no("s3.HeadObject", "403", 403)),
    passes("LLP403", f"may decrypt & {DATA_KEY}", STATED_KEY, encrypted(DATA_KEY)),
    passes("LLP403", "may decrypt", STATED_KEY, encrypted(DATA_KEY.rpartition("/")[2])),
    passes("LLP403", "AWS manages", NO_ROLE, managed_by("AWS")),
    # the role writes with it, which takes kms:Decrypt
    passes(
        "LLP403",
        "may decrypt",
        {E + "data_capture": {"s3": "s3://captured/", "kms_key_arn": DATA_KEY}},
        encrypted(DATA_KEY),
    ),
    passes(
        "LLP403",
        "may decrypt",
        {E + "core_dump": {"s3": "s3://dumps/"}, "safeguards": {"kms_key_arn": DATA_KEY}},
        encrypted(DATA_KEY),
    ),
    fails(
        "LLP403",
        f"{DATA_KEY} & with no key",
        NO_ROLE,
        {"safeguards": {"kms_key_arn": DATA_KEY}},
        managed_by("CUSTOMER"),
    ),
    fails(
        "LLP403",
        f"{DATA_KEY} & with {KEY} & kms_key_arn: '{DATA_KEY}'",
        with_key(KEY),
        NO_ROLE,
        managed_by("CUSTOMER"),
    ),
    # the first variant's role has that key
    fails(
        "LLP403",
        "sentiment b  & with no key",
        STATED_KEY,
        NO_ROLE,
        {E + "variants": {"b": {"containers": container()}}},
        managed_by("CUSTOMER"),
    ),
    fails(
        "LLP403",
        f"4 objects, 35 B, the largest encrypted with & kms_key_arn: '{DATA_KEY}'",
        NO_ROLE,
        PREFIX,
        managed_by("CUSTOMER"),
        {
            "s3.HeadObject": of_key("b", DATA_KEY),
            "s3.ListObjectsV2": objects({"m/": 0, "a": 10, "b": 20, "c": 5}),
        },
    ),
    fails("LLP403", "no such key", encrypted(DATA_KEY), no("kms.DescribeKey", "NotFoundException")),
    # nobody is asked: another account's key takes a right in any case
    fails(
        "LLP403",
        "210987654321 & policy name this account",
        NO_ROLE,
        encrypted(DATA_KEY.replace(ACCOUNT, "210987654321")),
        refused("kms.DescribeKey"),
    ),
    warns("LLP403", f"{DATA_KEY} & {ROLE} & not looked up", managed_by("CUSTOMER")),
    unknown("LLP403", "kms:DescribeKey", NO_ROLE, encrypted(DATA_KEY), refused("kms.DescribeKey")),
    passes("LLP404", f"models is in {REGION}"),
    fails("LLP404", "models is in eu-west-1", {"s3.HeadBucket": {"BucketRegion": "eu-west-1"}}),
    fails(
        "LLP404",
        "eu-west-1",
        {"s3.HeadBucket": Refused("403", headers={"x-amz-bucket-region": "eu-west-1"})},
    ),
    fails(
        "LLP404",
        "eu-west-1",
        {"s3.HeadBucket": {}, "s3.GetBucketLocation": {"LocationConstraint": "EU"}},
    ),
    passes("LLP404", f"{REGION}", {"s3.HeadBucket": {}}),
    fails("LLP404", "no bucket", no("s3.HeadBucket", "404", 404)),
    passes("LLP405", "268 MB, 3 s at an assumed 100 MB/s"),
    warns("LLP405", "41 GB & no timeout", sized(41 * 10**9)),
    warns(
        "LLP405", "timeout is 60 s", {E + "model_data_download_timeout": "60s"}, sized(7 * 10**9)
    ),
    passes(
        "LLP405", "600 s allowed", {E + "model_data_download_timeout": "10m"}, sized(41 * 10**9)
    ),
    fails("LLP405", "do not fit & 2 GiB", {E + "volume_size_gib": 2}, sized(3 * 10**9)),
    unknown("LLP405", "LLP403", no("s3.HeadObject", "404", 404)),
    # --- what the stack refers to
    passes("LLP501", "model-role trusts"),
    fails(
        "LLP501",
        "does not let sagemaker.amazonaws.com",
        trusting({"Principal": {"Service": "lambda.amazonaws.com"}}),
    ),
    fails("LLP501", "does not let", trusting({}, {"Effect": "Deny", "Action": "sts:*"})),
    fails("LLP501", "does not let", trusting(only({"aws:SourceAccount": "210987654321"}))),
    passes("LLP501", "trusts", trusting(only({"aws:SourceAccount": ACCOUNT}))),
    unknown(
        "LLP501",
        "StringEquals aws:SourceArn",
        trusting(only({"aws:SourceArn": f"{ENDPOINT_ARN}/${{aws:SourceAccount}}"})),
    ),
    fails("LLP501", "no role", no("iam.GetRole", "NoSuchEntity", 404)),
    fails(
        "LLP501",
        "210987654321",
        {"account": None, E + "role_arn": "arn:aws:iam::210987654321:role/model-role"},
    ),
    fails("LLP501", "function_role_arn & 210987654321", stated_roles(function="210987654321")),
    fails("LLP501", "flow_log_role_arn & 210987654321", stated_roles(flow_log="210987654321")),
    fails("LLP501", "does not let lambda", stated_roles(function=ACCOUNT)),
    fails("LLP501", "does not let vpc-flow-logs", stated_roles(flow_log=ACCOUNT)),
    passes("LLP502", "cfn-exec-role & ScalingRole"),
    passes("LLP502", "dev has", {"iam.GetRole": only_model_role}),
    passes("LLP502", "Roles", NO_ROLE),
    fails("LLP502", f"PassRole & may not iam:PassRole & {ROLE}", may_not("iam:PassRole")),
    fails("LLP502", "PassRole & role/Shop-", NO_ROLE, may_not("iam:PassRole")),
    fails(
        "LLP502",
        "PassRole & role/Shop-",
        may_not(
            "iam:PassRole",
            Condition={"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}},
        ),
    ),
    fails(
        "LLP502",
        "ScalingRole & iam:CreateServiceLinkedRole & AWSServiceRoleForApplicationAutoScaling_",
        may_not("iam:CreateServiceLinkedRole"),
    ),
    fails("LLP502", "Roles & iam:CreateRole on", may_not("iam:CreateRole")),
    fails("LLP502", "Reads & ec2:DescribeSubnets", may_not("ec2:DescribeSubnets")),
    warns("LLP502", "Endpoints & sagemaker:UpdateEndpoint", may_not("sagemaker:UpdateEndpoint")),
    fails("LLP502", "Objectives", OBJECTIVE, may_not("iam:CreateServiceLinkedRole")),
    passes("LLP502", "Functions", may_not("ec2:CreateVpc")),  # the VPC is there
    warns("LLP502", "Network & ec2:CreateVpc", {"network": None}, may_not("ec2:CreateVpc")),
    unknown(
        "LLP502",
        "the deploying identity is neither",
        no("iam.GetRole", "NoSuchEntity", 404),
        caller(ACCOUNT, "federated-user/dev"),
    ),
    passes("LLP503", "on-call: 2"),
    fails("LLP503", "no topic", no("sns.GetTopicAttributes", "NotFound", 404)),
    fails(
        "LLP503", "eu-west-1", NO_REGION, {"alarm_topic_arn": TOPIC.replace(REGION, "eu-west-1")}
    ),
    warns("LLP503", "nobody", topic(SubscriptionsConfirmed="0")),
    warns(
        "LLP503", "alias/aws/sns", topic(SubscriptionsConfirmed="1", KmsMasterKeyId="alias/aws/sns")
    ),
    passes("LLP504", "Enabled"),
    passes("LLP504", "containers[0].data.kms_key_arn", {**STATED_KEY, E + "kms_key_arn": None}),
    passes("LLP504", "safeguards.kms_key_arn", {"safeguards": {"kms_key_arn": DATA_KEY}}),
    passes(
        "LLP504",
        "data_capture.kms_key_arn",
        {E + "data_capture": {"s3": "s3://captured/", "kms_key_arn": DATA_KEY}},
    ),
    fails("LLP504", "PendingDeletion", key(KeyState="PendingDeletion")),
    fails("LLP504", "no key", no("kms.DescribeKey", "NotFoundException")),
    fails("LLP504", "eu-west-1", NO_REGION, {E + "kms_key_arn": KEY.replace(REGION, "eu-west-1")}),
    fails("LLP504", "SIGN_VERIFY", key(KeyState="Enabled", KeyUsage="SIGN_VERIFY")),
    # --- against the deployed stack
    passes("LLP601", "primary ml.m5.xlarge", DEPLOYED),
    fails(
        "LLP601",
        "from ml.g5.xlarge to ml.m5.xlarge & two deploys & UPDATE_ROLLBACK_FAILED & roll-back.md",
        deployed(InstanceType="ml.g5.xlarge"),
    ),
    fails("LLP601", "variant primary would be removed", {E + "variant_name": "second"}, DEPLOYED),
    passes(
        "LLP601",
        "scaling: none",
        deployed(InstanceType="ml.g5.xlarge"),
        {"application-autoscaling.DescribeScalableTargets": {"ScalableTargets": []}},
    ),
    passes(
        "LLP601",
        "becomes mood",
        {E + "endpoint_name": "mood"},
        deployed(InstanceType="ml.g5.xlarge"),
    ),
    passes("LLP602", "primary: 4 instances", DEPLOYED),
    fails(
        "LLP602",
        "Updating & Cannot update in-progress endpoint & UPDATE_ROLLBACK_FAILED & --wait 15m",
        endpoint_status("Updating"),
    ),
    fails("LLP602", "RollingBack & Wait", endpoint_status("RollingBack")),
    fails(
        "LLP602",
        "updating to next",
        endpoint_status("Updating", PendingDeploymentSummary={"EndpointConfigName": "next"}),
    ),
    fails("LLP602", "no image", endpoint_status("Failed", FailureReason="no image")),
    fails("LLP602", "outside the stack", DEPLOYED, {"sagemaker.DescribeEndpoint": NO_ENDPOINT}),
    passes("LLP603", "no endpoint of the stack has the name"),
    passes("LLP603", "own", DEPLOYED),
    fails(
        "LLP603",
        "another key made it & take the old key out",
        DEPLOYED,
        resources(SageMaker_Endpoint=ENDPOINT_ARN),
    ),
    # --- alarms on tokens
    passes("LLP605", "enrichment runs", LANGUAGE, enrichment("Running")),
    warns(
        "LLP605",
        "start-telemetry-enrichment`, then `aws cloudwatch start-otel-enrichment & bills each GB",
        LANGUAGE,
        enrichment("Stopped"),
    ),
    warns(
        "LLP605", "me-central-1 & 2 alarms", LANGUAGE, enrichment("Running"), region="me-central-1"
    ),
]


@cache
def run(case: Case) -> tuple[list[Any], FakeAws]:
    """What comes of a case, and what was asked of AWS; once for all tests."""
    aws = FakeAws(merged(WORLD, case.aws))
    settings = settings_with(case.settings)
    return outcomes(case.check, aws, settings, region=case.region, fetched=case.fetched), aws
