"""Judges requests: brings together who asks, what for, and every policy that has a say."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from moto.awslambda.models import lambda_backends
from moto.ec2.models import ec2_backends
from moto.ecr.models import ecr_backends
from moto.ecs.models import ecs_backends
from moto.iam.models import iam_backends
from moto.kms.models import kms_backends
from moto.s3.models import s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from ..connections import ACCOUNT
from .evaluator import (
    Asked,
    Decision,
    NotJudged,
    Policies,
    Policy,
    Principal,
    allows_everything,
    decide,
    read_policy,
)
from .principals import Identity, Origin, each_backend, role_exists
from .requests import Call, Right, known_keys, rights


class Denied(Exception):
    """A request that no policy allows, or that one denies; the text is AWS's."""

    # Source of the wording: IAM user guide, "Troubleshoot access denied error messages".
    def __init__(self, who: str, action: str, resource: str, reason: str, service: str) -> None:
        named = f'"{resource}"' if service == "s3" else resource
        on = "" if resource == "*" and service == "ec2" else f" on resource: {named}"
        super().__init__(f"User: {who} is not authorized to perform: {action}{on} {reason}")
        self.resource = resource


# ----------------------------------------------------------------------------- condition keys

_MAY_BE_MISSING = {
    "aws:principalorgid",
    "aws:principalorgpaths",
    "aws:principalservicename",
    "aws:resourceorgid",
    "aws:resourceorgpaths",
    "aws:multifactorauthpresent",
    "aws:multifactorauthage",
    "aws:calledvia",
    "aws:calledviafirst",
    "aws:calledvialast",
    "aws:federatedprovider",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceidentity",
    "aws:sourceip",
    "aws:sourceowner",
    "aws:sourcevpc",
    "aws:sourcevpce",
    "aws:tagkeys",
    "aws:username",
    "aws:vpcsourceip",
    "ec2:vpc",
    "kms:calleraccount",
    "kms:grantisforawsresource",
    "kms:viaservice",
    "lambda:sourcefunctionarn",
}
_MAY_BEGIN = ("aws:principaltag/", "aws:requesttag/", "kms:encryptioncontext:")
_OBJECT_TAG = "s3:existingobjecttag/"
_WITHOUT_OBJECT_TAGS = (
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:AbortMultipartUpload",
)
"""Of an object, and "this condition key is not supported": S3 user guide, "Tagging and access control"."""


class Facts(dict[str, "str | tuple[str, ...]"]):
    """The condition keys of a request. One that is not known here is no missing one: it raises.

    `timed` says afterwards whether the answer depends on the time.
    """

    timed = False
    of_object = False  # whether the request is one that brings the tags of its object

    def get(self, key: str, default: Any = None) -> Any:
        """Give a key's value; NotJudged names one that no request here would bring."""
        if key in ("aws:currenttime", "aws:epochtime"):
            self.timed = True
        if (
            key not in self
            and key not in _MAY_BE_MISSING
            and key not in known_keys()
            and not key.startswith(_MAY_BEGIN)
            and not (self.of_object and key.startswith(_OBJECT_TAG))
        ):
            raise NotJudged(f"the condition key {key}")
        return super().get(key, default)


def _facts(who: Identity, region: str, right: Right, call: Call | None) -> Facts:
    now = time.time()
    facts = Facts(
        {
            "aws:securetransport": "true",  # the real endpoints are
            "aws:requestedregion": region,
            "aws:currenttime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "aws:epochtime": str(int(now)),
            "aws:viaawsservice": "false",
            "aws:principalisawsservice": "false" if who.principal.account else "true",
            **who.keys,
            **right.keys,
        }
    )
    if who.principal.account:
        facts["aws:principalaccount"] = facts["kms:calleraccount"] = who.principal.account
        facts["aws:sourceowner"] = who.principal.account
        facts["aws:principalarn"] = who.principal.role or who.principal.arn
    if who.origin.function:
        facts["lambda:sourcefunctionarn"] = who.origin.function
    tags = (call.request.get("Tags") or call.request.get("tags") or []) if call else []
    pairs = _pairs(tags)
    for key, value in pairs:
        facts[f"aws:requesttag/{key.lower()}"] = value
    if tags:
        facts["aws:tagkeys"] = tuple(key for key, _ in pairs)
    return facts


def _pairs(tags: Any) -> list[tuple[str, str]]:
    if isinstance(tags, Mapping):
        return [(str(key), str(value)) for key, value in tags.items()]
    lists = tags if isinstance(tags, list) else []
    found = [{name.lower(): v for name, v in each.items()} for each in lists]
    return [(str(each["key"]), str(each.get("value", ""))) for each in found if "key" in each]


# -------------------------------------------------------------------------- resource policies

_OPEN = '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}'


def _bucket(name: str) -> Any:
    """Give moto's bucket, of whatever account; None when there is none."""
    found = (b.buckets[name] for b in each_backend(s3_backends) if name in b.buckets)
    return next(found, None)


def _policy_text(service: str, region: str, account: str, name: str) -> str | bytes | None:
    """Give the policy of a resource, as moto keeps it."""
    if service == "s3":
        bucket = _bucket(name.partition("/")[0])
        return bucket.policy if bucket else None
    if service == "kms":
        key = kms_backends[account][region].keys.get(name.partition("/")[2])
        # AWS's own keys let whoever may use the service that they are of.
        of_aws = key is not None and any(alias.startswith("alias/aws/") for alias in key.aliases)
        return _OPEN if of_aws else key and key.policy
    if service == "sqs":
        queue = sqs_backends[account][region].queues.get(name)
        return queue and queue.policy
    if service == "sns":
        topic = sns_backends[account][region].topics.get(f"arn:aws:sns:{region}:{account}:{name}")
        return topic and topic.policy
    if service == "lambda":
        functions = lambda_backends[account][region].list_functions()
        found = next((f for f in functions if f.function_name == name.split(":")[1]), None)
        statements = found.policy.statements if found else []
        return (
            json.dumps({"Version": "2012-10-17", "Statement": statements}) if statements else None
        )
    if service == "ecr":
        repository = ecr_backends[account][region].repositories.get(name.partition("/")[2])
        # AWS's own registries let every account pull.
        return (repository and repository.policy) or (_OPEN if account != ACCOUNT else None)
    if service == "secretsmanager":
        secrets = secretsmanager_backends[account][region].secrets
        arn = f"arn:aws:secretsmanager:{region}:{account}:{name}"
        secret = secrets.get(arn)
        return secret and getattr(secret, "policy", None)
    if service == "iam" and name.startswith("role/"):
        roles = iam_backends[account]["aws"].roles.values()
        role = next((r for r in list(roles) if r.name == name.rpartition("/")[2]), None)
        return role and role.assume_role_policy_document
    return None


_DECIDING = {"kms": "kms:", "iam": "sts:"}
"""Services whose resources let nobody in whom their policy does not, for actions that begin so."""
_WITH_POLICY = {"s3", "sqs", "sns", "lambda", "ecr", "secretsmanager", "kms"}


def _resource_policy(right: Right, home: str) -> tuple[Policy | None, bool, str]:
    """Give a resource's policy, whether it decides alone, and the resource's account."""
    if right.resource == "*":
        return None, False, home
    _, _, service, region, account, name = right.resource.split(":", 5)
    if service == "s3":
        bucket = _bucket(name.partition("/")[0])
        account = bucket.account_id if bucket else home
    deciding = _DECIDING.get(service)
    decides = bool(deciding and right.action.startswith(deciding))
    if not account.isdigit() or not (decides or service in _WITH_POLICY):
        return None, False, account if account.isdigit() else home
    text = _policy_text(service, region, account, name)
    if isinstance(text, bytes):
        text = text.decode()
    return read_policy(text) if text else None, decides, account


def bucket_has_policy(name: str) -> bool:
    bucket = _bucket(name)
    return bool(bucket and bucket.policy)


# ------------------------------------------------------------------------------ VPC endpoints

_NAMES_OF_ENDPOINTS = {
    "sagemaker": "sagemaker.api",
    "sagemaker-runtime": "sagemaker.runtime",
    "cloudwatch": "monitoring",
    "ecr": "ecr.api",
}


def subnets_of(account: str, region: str) -> dict[str, Any]:
    by_zones = list(ec2_backends[account][region].subnets.values())
    return {subnet.id: subnet for by_id in by_zones for subnet in list(by_id.values())}


def _endpoints(origin: Origin, service: str, region: str) -> list[Any]:
    """Give the VPC endpoints that a request to a service comes through; none is the internet."""
    known = subnets_of(ACCOUNT, region)
    subnets = [known[subnet] for subnet in origin.subnets if subnet in known]
    if not subnets:
        return []
    vpc, backend = subnets[0].vpc_id, ec2_backends[subnets[0].owner_id][region]
    there = [
        endpoint
        for endpoint in list(backend.vpc_end_points.values())
        if endpoint.vpc_id == vpc and _is_of(endpoint, service, region)
    ]
    tables = {_route_table(backend, subnet.id, vpc) for subnet in subnets}
    gateways = [each for each in there if tables.intersection(each.route_table_ids or ())]
    return gateways or [each for each in there if each.private_dns_enabled]


def _is_of(endpoint: Any, service: str, region: str) -> bool:
    name = _NAMES_OF_ENDPOINTS.get(service, service)
    return bool(endpoint.service_name == f"com.amazonaws.{region}.{name}")


def _route_table(backend: Any, subnet: str, vpc: str) -> str:
    of_vpc = [each for each in list(backend.route_tables.values()) if each.vpc_id == vpc]
    own = [each.id for each in of_vpc if subnet in each._associations.values()]
    return str((own or [each.id for each in of_vpc if each.main_association_id] or [""])[0])


def zonal_endpoints(zone: str, region: str) -> list[Any]:
    """Give the interface endpoints for SageMaker Runtime with an interface in a zone."""
    known = subnets_of(ACCOUNT, region)
    owners = {ACCOUNT, *(subnet.owner_id for subnet in known.values())}
    endpoints = (list(ec2_backends[owner][region].vpc_end_points.values()) for owner in owners)
    return [
        endpoint
        for endpoint in itertools.chain.from_iterable(endpoints)
        if _is_of(endpoint, "sagemaker-runtime", region)
        and any(
            s in known and known[s].availability_zone == zone for s in endpoint.subnet_ids or ()
        )
    ]


# ------------------------------------------------------------------------------------ judging


def decision(
    who: Identity, right: Right, region: str, *, call: Call | None = None, through: Any = None
) -> tuple[Decision, bool]:
    """Judge one right; also says whether the decision may change by time alone."""
    policy, decides, account = _resource_policy(right, who.principal.account)
    held = replace(who.policies, resource=policy, resource_decides=decides)
    facts = _facts(who, region, right, call)
    facts["aws:resourceaccount"] = account
    if _brings_object_tags(right):
        facts.of_object = True
        facts |= _object_tags(right.resource)
    if through is not None:
        document = through.policy_document
        text = document if isinstance(document, str) else json.dumps(document)
        gateway = through.vpc_endpoint_type.lower() == "gateway"
        held = replace(held, endpoint=read_policy(text), gateway=gateway)
        facts |= {"aws:sourcevpce": through.id, "aws:sourcevpc": through.vpc_id}
    # Another account's subnets and VPCs are used by a share of RAM, which lets their user in.
    home = who.principal.account if right.action.startswith("ec2:") else account
    asked = Asked(who.principal, right.action, right.resource, home, facts)
    return decide(asked, held), facts.timed


def _brings_object_tags(right: Right) -> bool:
    """Say whether a right is one on an object whose tags S3 looks at."""
    names_object = right.resource.startswith("arn:aws:s3:::") and "/" in right.resource
    return names_object and right.action not in _WITHOUT_OBJECT_TAGS


def _object_tags(arn: str) -> dict[str, str]:
    """Give the condition keys of an object's tags; none where there is no object."""
    name, _, key = arn.removeprefix("arn:aws:s3:::").partition("/")
    tags: dict[str, str] = {}
    for backend in each_backend(s3_backends):
        bucket = backend.buckets.get(name)
        if found := bucket and bucket.keys.get(key):
            tags = backend.tagger.get_tag_dict_for_resource(found.arn)
    return {f"{_OBJECT_TAG}{tag.lower()}": value for tag, value in tags.items()}


def check(
    who: Identity,
    wanted: Iterable[Right],
    service: str,
    region: str,
    *,
    call: Call | None = None,
    zone: str | None = None,
) -> bool:
    """Judge rights, of which each one is needed; says whether time alone may change the outcome."""
    ways = _endpoints(who.origin, service, region)
    if zone is not None and not ways:
        ways = zonal_endpoints(zone, region)
    timed = False
    for right in wanted:
        refused = None
        # Of a caller who is nowhere in particular nobody knows which VPC they are in.
        # What a service asks of KMS for the caller does not come through the service's endpoint.
        asks_kms = right.action.startswith("kms:") and service != "kms"
        for way in [None] if asks_kms else ways or [None]:
            found, by_time = decision(who, right, region, call=call, through=way)
            timed |= by_time
            if found.allowed:
                break
            refused = refused or found
        else:
            reason = cast(Decision, refused).reason  # there is one way at least
            raise Denied(who.principal.arn, right.action, right.resource, reason, service)
    return timed


def check_service(service: Principal, right: Right, region: str) -> str | None:
    """Say why a resource's policy does not let a service in; None when it does."""
    if right.action.startswith("kms:"):
        key = next(rights("kms", "DescribeKey", {"KeyId": right.resource}, region, ACCOUNT))
        text = _policy_text("kms", region, ACCOUNT, key.resource.rpartition(":")[2])
        if text == _OPEN:  # AWS's own keys let the account's callers in, and no service
            return "because the key is AWS's own"
        right = replace(right, resource=key.resource)
    identity = Identity(service, Policies(), {})
    found, _ = decision(identity, right, region)
    return None if found.allowed else found.reason


_DELIVERIES = {"lambda": "lambda:InvokeFunction", "sns": "sns:Publish", "sqs": "sqs:SendMessage"}


def may_deliver(service: str, target: str, source: str) -> bool:
    """Say whether a service may deliver to a function, topic or queue what one resource sends.

    The target's policy decides, and the policy of its key. Sources: SNS developer guide, "Fanout to
    Amazon SQS queues"; S3 user guide, "Granting permissions to publish event notification messages
    to a destination"; EventBridge user guide, "Using resource-based policies".
    """
    fields = target.split(":", 5)
    if len(fields) != 6 or fields[2] not in _DELIVERIES:
        return False
    context = {"aws:sourcearn": source, "aws:sourceaccount": ACCOUNT}
    wanted = [(_DELIVERIES[fields[2]], target)]
    if key := _key_of_messages(target):
        wanted += [("kms:GenerateDataKey", key), ("kms:Decrypt", key)]
    who = Principal(f"{service}.amazonaws.com")
    rights_of_service = (Right(action, resource, context) for action, resource in wanted)
    return not any(check_service(who, right, fields[3]) for right in rights_of_service)


def check_role_exists(who: Identity, call: Call) -> None:
    """Refuse to assume a role that there is not; CDK's CLI then goes on with its caller's keys."""
    arn = str(call.request.get("RoleArn", ""))
    if f":{ACCOUNT}:" in arn and not role_exists(arn):
        raise Denied(who.principal.arn, "sts:AssumeRole", arn, "", "sts")


def check_call(who: Identity, call: Call, region: str) -> None:
    account = who.principal.account
    if call.service == "ec2":
        call = replace(call, request={**call.request, "Vpc": _vpc_of_request(call, region)})
    try:
        wanted = [
            each
            for right in rights(call.service, call.operation, call.request, region, account)
            for each in (right, *_also_needed(right, call, region, account))
        ]
    except NotJudged:
        if allows_everything(who.policies):
            return
        raise
    check(who, wanted, call.service, region, call=call)


def _vpc_of_request(call: Call, region: str) -> str | None:
    """Give the VPC of the subnet or network interface that a request to EC2 names."""
    subnet = call.request.get("SubnetId", "")
    interface = ec2_backends[ACCOUNT][region].enis.get(call.request.get("NetworkInterfaceId", ""))
    return vpc_of(interface.subnet.id if interface else subnet, region)


# --------------------------------------------------------------- rights that are needed besides


def _also_needed(right: Right, call: Call, region: str, account: str) -> Iterator[Right]:
    """Give what a request needs because of what its resource is."""
    if right.action in ("s3:GetObject", "s3:PutObject"):
        yield from _object_key(right, call, region)
    elif right.action in ("sqs:SendMessage", "sns:Publish"):
        yield from _message_key(right, region)
    elif right.action == "ecs:RunTask":
        definitions = ecs_backends[account][region]
        definition = definitions.describe_task_definition(right.resource.rpartition("/")[2])
        for name in ("task_role_arn", "execution_role_arn"):
            if role := getattr(definition, name, None):
                yield Right(
                    "iam:PassRole", role, {"iam:passedtoservice": "ecs-tasks.amazonaws.com"}
                )


def key_of_object(bucket_name: str, key: str) -> str | None:
    """Give the key that an object is encrypted with; None for one of AWS's own."""
    bucket = _bucket(bucket_name)
    found = bucket.keys.get(key) if bucket else None
    if found is None or found.encryption != "aws:kms":
        return None
    return found.kms_key_id or None


def objects_below(bucket_name: str, prefix: str) -> list[str]:
    bucket = _bucket(bucket_name)
    return [key for key in list(bucket.keys if bucket else ()) if key.startswith(prefix)]


def vpc_of(subnet: str, region: str) -> str | None:
    """Give the ARN of a subnet's VPC, which is what `ec2:Vpc` is; None for an unknown subnet."""
    found = subnets_of(ACCOUNT, region).get(subnet)
    return f"arn:aws:ec2:{region}:{found.owner_id}:vpc/{found.vpc_id}" if found else None


def default_key(bucket_name: str) -> str | None:
    """Give the key that a bucket encrypts new objects with; None for one of AWS's own."""
    bucket = _bucket(bucket_name)
    rule: Any = ((bucket.encryption if bucket else None) or {}).get("Rule") or {}
    rule = rule[0] if isinstance(rule, list) else rule
    default = rule.get("ApplyServerSideEncryptionByDefault") or {}
    return default.get("KMSMasterKeyID") or None


def _object_key(right: Right, call: Call, region: str) -> Iterator[Right]:
    """Give what S3 asks of KMS for the caller. Source: S3 user guide, "Using SSE-KMS"."""
    bucket, _, key = right.resource.removeprefix("arn:aws:s3:::").partition("/")
    reads = right.action == "s3:GetObject"
    if reads:
        named = key_of_object(bucket, key) if call.operation != "HeadObject" else None
    elif call.operation in ("UploadPart", "CompleteMultipartUpload", "UploadPartCopy"):
        named = default_key(bucket)
    else:
        named = call.request.get("SSEKMSKeyId") or default_key(bucket)
    if not named:
        return
    actions = ["kms:Decrypt"] if reads else ["kms:GenerateDataKey"]
    if "Multipart" in call.operation or "UploadPart" in call.operation:
        actions.append("kms:Decrypt")
    yield from key_rights(actions, named, "s3", region, {"aws:s3:arn": right.resource})


def key_rights(
    actions: Iterable[str], key: str, service: str, region: str, context: Mapping[str, str]
) -> Iterator[Right]:
    """Give the use of a key through a service."""
    keys = {f"kms:encryptioncontext:{name}": value for name, value in context.items()}
    keys["kms:viaservice"] = f"{service}.{region}.amazonaws.com"
    for action in actions:
        # The table knows the four ways to name a key.
        for right in rights("kms", action.removeprefix("kms:"), {"KeyId": key}, region, ACCOUNT):
            yield Right(action, right.resource, keys)


def _message_key(right: Right, region: str) -> Iterator[Right]:
    """Give what SQS and SNS ask of KMS for the sender. Source: their guides, "Key management"."""
    key, service = _key_of_messages(right.resource), right.resource.split(":")[2]
    if key and "alias/aws/" not in key:
        yield from key_rights(["kms:GenerateDataKey", "kms:Decrypt"], key, service, region, {})


def _key_of_messages(arn: str) -> str | None:
    """Give the key that a queue or a topic encrypts messages with; None without one."""
    _, _, service, where, account, name = arn.split(":", 5)
    if service == "sqs":
        found = sqs_backends[account][where].queues.get(name)
    else:
        found = sns_backends[account][where].topics.get(arn)
    return found and found.kms_master_key_id
