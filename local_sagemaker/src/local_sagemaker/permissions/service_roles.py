"""What SageMaker, Lambda and ECS ask of the roles that they assume.

Sources: Lambda developer guide, "Lambda execution role", "Giving Lambda functions access to resources
in an Amazon VPC", "Capturing records of Lambda asynchronous invocations", "Securing Lambda
environment variables". The refusals are in Lambda's words as its users report them.

Source: SageMaker developer guide, "SageMaker AI Roles" (CreateModel). Refusals are in SageMaker's
words as its users report them: aws/deep-learning-containers#759 for images,
philschmid/llm-sagemaker-sample#2 for data; where none is known, IAM's own.

Source: ECS developer guide, "Task IAM role", "Task execution IAM role" and "Stopped tasks error
messages", whose words the refusals have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..admission import NOBODY, Session
from ..images import repository_arn
from .evaluator import NotJudged
from .judge import Denied, check, key_of_object, key_rights, objects_below, vpc_of
from .principals import Identity, NotAssumable, Origin, check_trust, role_identity, service_session
from .requests import Right, rights

_LAMBDA = "lambda.amazonaws.com"
_INTERFACES = ("CreateNetworkInterface", "DescribeNetworkInterfaces", "DeleteNetworkInterface")
"""What Lambda tries when it puts a function into a VPC."""


class FunctionRoleLacks(Exception):
    """A role that a function cannot run with; the text is Lambda's."""


def check_assumable(role: str) -> None:
    try:
        check_trust(role, _LAMBDA)
    except NotAssumable:
        raise FunctionRoleLacks(
            "The role defined for the function cannot be assumed by Lambda."
        ) from None


def check_configuration(region: str, name: str, settings: Mapping[str, Any]) -> None:
    """Refuse a role that lacks what the function's configuration needs, as CreateFunction does."""
    check_assumable(settings["Role"])
    identity = role_identity(settings["Role"], name)
    network = settings.get("VpcConfig") or {}
    if subnets := network.get("SubnetIds"):
        asked = {"SubnetId": subnets[0], "Groups": network.get("SecurityGroupIds")}
        asked |= {"NetworkInterfaceId": "*", "Vpc": vpc_of(subnets[0], region)}
        for operation in _INTERFACES:
            needed = rights("ec2", operation, asked, region, identity.principal.account)
            _check(identity, needed, "ec2", region, f"{operation} on EC2")
    target = (settings.get("DeadLetterConfig") or {}).get("TargetArn", "")
    if target:
        service = target.split(":")[2]
        action = {"sqs": "SendMessage", "sns": "Publish"}.get(service, "")
        wanted = [Right(f"{service}:{action}", target, {})]
        _check(identity, wanted, service, region, f"{action} on {service.upper()}")


_OF_QUEUES = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
"""https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""


def check_queue(region: str, function: Any, queue: str) -> None:
    """Refuse a role with which Lambda cannot read the queue of a function's event source mapping."""
    identity = role_identity(function.role, function.function_name)
    for operation in _OF_QUEUES:
        wanted = [Right(f"sqs:{operation}", queue, {})]
        _check(identity, wanted, "sqs", region, f"{operation} on SQS")


def _check(who: Identity, wanted: Iterable[Right], service: str, region: str, what: str) -> None:
    try:
        check(who, wanted, service, region)
    except Denied:
        raise FunctionRoleLacks(
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
        raise FunctionRoleLacks(
            "Lambda was unable to decrypt the environment variables because KMS access was denied. "
            "Please check the function's KMS key settings. KMS Exception: AccessDeniedException"
            f"KMS Message: {denied}"
        ) from None


def may_log(region: str, name: str, role: str, group: str, *, group_exists: bool) -> bool:
    """Say whether a function's output reaches its log group; else it is lost, as at Lambda."""
    operations = ("CreateLogStream", "PutLogEvents")
    return _may_log(role_identity(role, name), operations, group, group_exists, region)


def _may_log(
    who: Identity, operations: Sequence[str], group: str, group_exists: bool, region: str
) -> bool:
    asked = {"logGroupName": group, "logStreamName": "*"}
    needed = operations if group_exists else ("CreateLogGroup", *operations)
    return _may(who, "logs", needed, asked, region)


def _may(
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


logger = logging.getLogger(__name__)

_SAGEMAKER = "sagemaker.amazonaws.com"
_SESSION = "SageMaker"
_OF_IMAGES = ("BatchGetImage", "GetDownloadUrlForLayer", "BatchCheckLayerAvailability")
_OF_INTERFACES = (
    "CreateNetworkInterface",
    "CreateNetworkInterfacePermission",
    "DeleteNetworkInterface",
    "DeleteNetworkInterfacePermission",
    "DescribeDhcpOptions",
    "DescribeNetworkInterfaces",
    "DescribeSecurityGroups",
    "DescribeSubnets",
    "DescribeVpcs",
)


class RoleLacks(Exception):
    """A role that instances cannot start with; the text is a FailureReason."""


@dataclass(frozen=True)
class ModelRole:
    """The role of a variant's model, and what the model needs of it."""

    place: tuple[str, str]
    arn: str
    containers: Sequence[Mapping[str, Any]] = ()
    network: Mapping[str, Any] | None = None
    isolated: bool = False
    volume_key: str | None = None

    @cached_property
    def _origin(self) -> Origin:
        return Origin(tuple((self.network or {}).get("Subnets") or ()))

    def check(self) -> None:
        """Refuse what the role lacks; RoleLacks has the reason."""
        try:
            self._check()
        except NotJudged as unknown:
            raise RoleLacks(f"The local AWS cannot judge {self.arn}: {unknown}.") from None

    def _check(self) -> None:
        try:
            _check_trust(self.place, self.arn)
        except NotAssumable:
            raise RoleLacks(
                f'Could not assume role {self.arn}. Please ensure that the role "{self.arn}" exists '
                'and that its trust relationship policy allows the action "sts:AssumeRole" for the '
                f'service principal "{_SAGEMAKER}".'
            ) from None
        for container in self.containers:
            self._check_image(str(container.get("Image") or ""))
            for uri, is_prefix in _data(container):
                self._check_data(uri, is_prefix)
        self._check_network()
        if self.volume_key:
            self._check_volumes(self.volume_key)

    def _check_image(self, image: str) -> None:
        repository = repository_arn(image)
        if repository is None:
            return
        _, region = self.place
        # SageMaker pulls images by itself, not through the model's VPC.
        identity = role_identity(self.arn, _SESSION)
        wanted = [Right("ecr:GetAuthorizationToken", "*", {})]
        for right in (*wanted, *(Right(f"ecr:{name}", repository, {}) for name in _OF_IMAGES)):
            try:
                check(identity, [right], "ecr", region)
            except Denied as denied:
                logger.info("%s", denied)
                lacks = right.action.removeprefix("ecr:")
                raise RoleLacks(
                    f"The role '{self.arn}' does not have {lacks} permission for the image: "
                    f"'{image}'."
                ) from None

    def _check_data(self, uri: str, is_prefix: bool) -> None:
        _, region = self.place
        who = role_identity(self.arn, _SESSION, origin=self._origin)
        try:
            check(who, self._data_rights(uri, is_prefix), "s3", region)
        except Denied as denied:
            logger.info("%s", denied)
            raise RoleLacks(
                f'Could not access model data at {uri}. Please ensure that the role "{self.arn}" '
                'exists and that its trust relationship policy allows the action "sts:AssumeRole" '
                f'for the service principal "{_SAGEMAKER}". Also ensure that the role has '
                f'"s3:GetObject" permissions and that the object is located in {region}. If your '
                "Model uses multiple models or uncompressed models, please ensure that the role has "
                '"s3:ListBucket" permission.'
            ) from None

    def _data_rights(self, uri: str, is_prefix: bool) -> Iterator[Right]:
        _, region = self.place
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        objects = [key]
        if is_prefix:
            yield Right("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": key})
            objects = objects_below(bucket, key) or [f"{key}*"]
        for each in objects:
            arn = f"arn:aws:s3:::{bucket}/{each}"
            yield Right("s3:GetObject", arn, {})
            if used := key_of_object(bucket, each):
                yield from key_rights(["kms:Decrypt"], used, "s3", region, {"aws:s3:arn": arn})

    def _check_network(self) -> None:
        account, region = self.place
        if not self._origin.subnets:
            return
        subnet = self._origin.subnets[0]
        asked = {
            "SubnetId": list(self._origin.subnets),
            "Groups": list((self.network or {}).get("SecurityGroupIds") or ()),
            "NetworkInterfaceId": "*",
            "Vpc": vpc_of(subnet, region),
        }
        # The service calls with the role, from outside of the VPC.
        identity = role_identity(self.arn, _SESSION)
        for operation in _OF_INTERFACES:
            try:
                check(identity, rights("ec2", operation, asked, region, account), "ec2", region)
            except Denied as denied:
                raise RoleLacks(
                    f"Access denied while setting up the network of the model: {denied}"
                ) from None

    def _check_volumes(self, key: str) -> None:
        account, region = self.place
        granted = {"kms:grantisforawsresource": "true"}
        keys = list(rights("kms", "DescribeKey", {"KeyId": key}, region, account))
        try:
            check(
                role_identity(self.arn, _SESSION),
                [*keys, *(Right("kms:CreateGrant", key.resource, granted) for key in keys)],
                "kms",
                region,
            )
        except Denied as denied:
            raise RoleLacks(f"Access denied to the KMS key of the volumes: {denied}") from None

    def may_log(self, group: str, *, group_exists: bool) -> bool:
        """Say whether output reaches the log group; else it is lost."""
        operations = ("CreateLogStream", "DescribeLogStreams", "PutLogEvents")
        who = role_identity(self.arn, _SESSION)
        try:
            return _may_log(who, operations, group, group_exists, self.place[1])
        except NotJudged as unknown:
            logger.error("%s cannot be judged: %s", self.arn, unknown)
            return False

    def session(self) -> Session:
        """Give the credentials that its containers have; none when they are isolated."""
        # Source: developer guide, "Run Training and Inference Containers in Internet-Free Mode".
        return NOBODY if self.isolated else service_session(self.arn, _SESSION, self._origin)


def may_delete_interfaces(place: tuple[str, str], role: str, subnets: Sequence[str]) -> bool:
    """Say whether SageMaker may delete network interfaces with a role."""
    _, region = place
    try:
        _check_trust(place, role)
    except NotAssumable:
        return False
    asked = {"NetworkInterfaceId": "*", "Vpc": vpc_of(subnets[0], region) if subnets else None}
    return _may(role_identity(role, _SESSION), "ec2", ["DeleteNetworkInterface"], asked, region)


def _check_trust(place: tuple[str, str], role: str) -> None:
    """Ask whether SageMaker may assume a role; NotAssumable when it may not."""
    # "The asterisk is what it sends": developer guide, "Cross-Service Confused Deputy Prevention",
    # SageMaker AI Inference.
    account, region = place
    source = {
        "aws:SourceAccount": account,
        "aws:SourceArn": f"arn:aws:sagemaker:{region}:{account}:*",
    }
    check_trust(role, _SAGEMAKER, source)


def _data(container: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Give a container's URIs in S3, each with whether it names all objects below it."""
    sources = [
        container.get("ModelDataSource"),
        *(container.get("AdditionalModelDataSources") or []),
    ]
    for source in sources:
        if s3 := (source or {}).get("S3DataSource"):
            yield s3["S3Uri"], s3.get("S3DataType") == "S3Prefix"
    for name in ("ModelDataUrl", "ArtifactUrl"):
        if uri := container.get(name):
            yield uri, container.get("Mode") == "MultiModel"


_ECS = "ecs-tasks.amazonaws.com"


class TaskRefused(Exception):
    """A task that cannot start; the text is its stopped reason."""


def check_roles(
    place: tuple[str, str], definition: Mapping[str, Any], task_id: str, subnets: Sequence[str]
) -> Session:
    """Judge a task's roles; gives the session that its process has, nobody's without a task role."""
    account, region = place
    source = {"aws:SourceAccount": account, "aws:SourceArn": f"arn:aws:ecs:{region}:{account}:*"}
    task_role, execution_role = definition.get("taskRoleArn"), definition.get("executionRoleArn")
    for role, given in ((execution_role, {}), (task_role, source)):
        try:
            if role:
                check_trust(role, _ECS, given)
        except NotAssumable:
            raise TaskRefused(
                f"ECS was unable to assume the role '{role}' that was provided for this task. "
                "Please verify that the role being passed has the proper trust relationship and "
                "permissions and that your IAM user has permissions to pass this role."
            ) from None
    origin = Origin(tuple(subnets))
    for container in definition["containerDefinitions"]:
        _check_execution(region, execution_role, container, task_id, origin)
    return service_session(task_role, task_id, origin) if task_role else NOBODY


def _check_execution(
    region: str, role: str | None, container: Mapping[str, Any], task_id: str, origin: Origin
) -> None:
    """Judge what is done with the execution role before a container runs."""
    repository = repository_arn(str(container.get("image", "")))
    log = container.get("logConfiguration") or {}
    options = log.get("options") or {}
    group = options.get("awslogs-group") if log.get("logDriver") == "awslogs" else None
    if not role:
        if repository or group:
            raise TaskRefused(
                "Fargate requires task definition to have execution role ARN to support "
                + ("ECR images." if repository else "log driver awslogs.")
            )
        return
    identity = role_identity(role, task_id, origin=origin)
    if repository:
        wanted = [Right("ecr:GetAuthorizationToken", "*", {})]
        for action in ("BatchCheckLayerAvailability", "GetDownloadUrlForLayer", "BatchGetImage"):
            wanted.append(Right(f"ecr:{action}", repository, {}))
        try:
            check(identity, wanted, "ecr", region)
        except Denied as denied:
            raise TaskRefused(
                "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
                f"AccessDeniedException: {denied}"
            ) from None
    if group:
        stream = f"{options.get('awslogs-stream-prefix', 'ecs')}/{container['name']}/{task_id}"
        where = options.get("awslogs-region", region)
        arn = f"arn:aws:logs:{where}:{identity.principal.account}:log-group:{group}:log-stream:{stream}"
        actions = ("CreateLogStream", "PutLogEvents")
        try:
            check(
                identity, [Right(f"logs:{action}", arn, {}) for action in actions], "logs", region
            )
        except Denied as denied:
            raise TaskRefused(
                "ResourceInitializationError: failed to validate logger args: create stream has "
                "been retried 1 times: failed to create Cloudwatch log stream: "
                f"AccessDeniedException: {denied}"
            ) from None
