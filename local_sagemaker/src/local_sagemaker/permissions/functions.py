"""What Lambda asks of a function's role: trust, network interfaces, dead letters, key and log.

Sources: Lambda developer guide, "Lambda execution role", "Giving Lambda functions access to resources
in an Amazon VPC", "Capturing records of Lambda asynchronous invocations", "Securing Lambda
environment variables". The refusals are in Lambda's words as its users report them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .actions import Right, rights
from .judge import Denied, check, key_rights, vpc_of
from .principals import Identity, NotAssumable, check_trust, role_identity

_SERVICE = "lambda.amazonaws.com"
_INTERFACES = ("CreateNetworkInterface", "DescribeNetworkInterfaces", "DeleteNetworkInterface")
"""What Lambda tries when it puts a function into a VPC."""


class RoleLacks(Exception):
    """A role that a function cannot run with; the text is Lambda's."""


def check_assumable(role: str) -> None:
    try:
        check_trust(role, _SERVICE)
    except NotAssumable:
        raise RoleLacks("The role defined for the function cannot be assumed by Lambda.") from None


def check_configuration(region: str, name: str, settings: Mapping[str, Any]) -> None:
    """Refuse a role that lacks what the function's configuration needs, as CreateFunction does."""
    check_assumable(settings["Role"])
    who = role_identity(settings["Role"], name)
    network = settings.get("VpcConfig") or {}
    if subnets := network.get("SubnetIds"):
        asked = {"SubnetId": subnets[0], "Groups": network.get("SecurityGroupIds")}
        asked |= {"NetworkInterfaceId": "*", "Vpc": vpc_of(subnets[0], region)}
        for operation in _INTERFACES:
            needed = rights("ec2", operation, asked, region, who.principal.account)
            _check(who, needed, "ec2", region, f"{operation} on EC2")
    target = (settings.get("DeadLetterConfig") or {}).get("TargetArn", "")
    if target:
        service = target.split(":")[2]
        action = {"sqs": "SendMessage", "sns": "Publish"}.get(service, "")
        wanted = [Right(f"{service}:{action}", target, {})]
        _check(who, wanted, service, region, f"{action} on {service.upper()}")


def _check(who: Identity, wanted: Iterable[Right], service: str, region: str, what: str) -> None:
    try:
        check(who, wanted, service, region)
    except Denied:
        raise RoleLacks(
            f"The provided execution role does not have permissions to call {what}"
        ) from None


def check_key(region: str, name: str, arn: str, role: str, key: str | None) -> None:
    """Refuse to start a function whose variables its role cannot decrypt."""
    if not key:
        return
    context = {"aws:lambda:functionarn": arn}
    try:
        check(
            role_identity(role, name),
            key_rights(["kms:Decrypt"], key, "lambda", region, context),
            "kms",
            region,
        )
    except Denied as denied:
        raise RoleLacks(
            "Lambda was unable to decrypt the environment variables because KMS access was denied. "
            "Please check the function's KMS key settings. KMS Exception: AccessDeniedException"
            f"KMS Message: {denied}"
        ) from None


def may_log(region: str, name: str, role: str, group: str, *, group_exists: bool) -> bool:
    """Say whether a function's output reaches its log group; else it is lost, as at Lambda."""
    operations = ["CreateLogStream", "PutLogEvents"]
    if not group_exists:
        operations.insert(0, "CreateLogGroup")
    asked = {"logGroupName": group, "logStreamName": "*"}
    return may(role_identity(role, name), "logs", operations, asked, region)


def may(
    who: Identity, service: str, operations: Iterable[str], asked: Mapping[str, Any], region: str
) -> bool:
    wanted = [
        right
        for operation in operations
        for right in rights(service, operation, asked, region, who.principal.account)
    ]
    try:
        check(who, wanted, service, region)
    except Denied:
        return False
    return True
