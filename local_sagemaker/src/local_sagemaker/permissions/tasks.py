"""What ECS asks of a task's two roles: trust, and of the execution role image and log.

Source: ECS developer guide, "Task IAM role", "Task execution IAM role" and "Stopped tasks error
messages", whose words the refusals have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..admission import NOBODY, Session
from ..images import repository_arn
from .actions import Right
from .judge import Denied, check
from .principals import NotAssumable, Origin, check_trust, role_identity, service_session

_SERVICE = "ecs-tasks.amazonaws.com"


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
                check_trust(role, _SERVICE, given)
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
    who = role_identity(role, task_id, origin=origin)
    if repository:
        wanted = [Right("ecr:GetAuthorizationToken", "*", {})]
        for action in ("BatchCheckLayerAvailability", "GetDownloadUrlForLayer", "BatchGetImage"):
            wanted.append(Right(f"ecr:{action}", repository, {}))
        try:
            check(who, wanted, "ecr", region)
        except Denied as denied:
            raise TaskRefused(
                "CannotPullContainerError: pull image manifest has been retried 1 time(s): "
                f"AccessDeniedException: {denied}"
            ) from None
    if group:
        stream = f"{options.get('awslogs-stream-prefix', 'ecs')}/{container['name']}/{task_id}"
        where = options.get("awslogs-region", region)
        arn = f"arn:aws:logs:{where}:{who.principal.account}:log-group:{group}:log-stream:{stream}"
        actions = ("CreateLogStream", "PutLogEvents")
        try:
            check(who, [Right(f"logs:{action}", arn, {}) for action in actions], "logs", region)
        except Denied as denied:
            raise TaskRefused(
                "ResourceInitializationError: failed to validate logger args: create stream has "
                "been retried 1 times: failed to create Cloudwatch log stream: "
                f"AccessDeniedException: {denied}"
            ) from None
