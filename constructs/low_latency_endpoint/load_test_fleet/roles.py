"""The load-test tasks' roles: what each may do, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aws_cdk import aws_iam as iam
from constructs import Construct

from ..network.vpc_endpoints import INVOKE_ACTIONS
from ..synthesis.annotations import acknowledge_wildcard_resources
from ..synthesis.policy_documents import for_tasks, trust
from ..synthesis.rights import allow, decrypting, writing_with
from ..synthesis.role_rights import RoleRights

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

_TASKS = "ecs-tasks.amazonaws.com"


def execution_role(
    scope: Construct, id: str, pull: Sequence[Mapping[str, Any]], log: Sequence[Mapping[str, Any]]
) -> iam.CfnRole:
    """What ECS does for the tasks before they run: pull the image, open the log."""
    role, rights = _role(scope, id, trust(_TASKS), allow(["ecr:GetAuthorizationToken"], "*"), *log)
    if pull:
        rights.allow(f"{id}Pull", *pull, owner=scope)
    acknowledge_wildcard_resources(
        role, ["*"], reason="ecr:GetAuthorizationToken takes no single repository."
    )
    return role


def master_role(scope: Construct, id: str, runs_arn: str, key: kms.IKey | None) -> iam.CfnRole:
    """Read the plan, write progress and result. It invokes nothing."""
    keys = [] if key is None else [writing_with(key.key_arn)]
    actions = ["s3:GetObject", "s3:PutObject"]
    role, _ = _task_role(scope, id, runs_arn, allow(actions, runs_arn), *keys)
    return role


def worker_role(
    scope: Construct, id: str, endpoint_arn: str, runs_arn: str, key: kms.IKey | None
) -> iam.CfnRole:
    """Invoke the endpoint under test; read the run's payload module, where there is one."""
    keys = [] if key is None else [decrypting(key.key_arn)]
    role, rights = _task_role(scope, id, runs_arn, allow(["s3:GetObject"], runs_arn), *keys)
    rights.allow(f"{id}Invoke", allow(INVOKE_ACTIONS, endpoint_arn), owner=scope)
    return role


def _task_role(
    scope: Construct, id: str, runs_arn: str, *statements: Mapping[str, Any]
) -> tuple[iam.CfnRole, RoleRights]:
    role, rights = _role(scope, id, trust(_TASKS, for_tasks()), *statements)
    acknowledge_wildcard_resources(
        role, [runs_arn], reason="Each run has a folder of its own below this prefix."
    )
    return role, rights


def _role(
    scope: Construct, id: str, trusted: Mapping[str, Any], *statements: Mapping[str, Any]
) -> tuple[iam.CfnRole, RoleRights]:
    role, rights, _ = RoleRights.made(
        scope, id, trusted=trusted, policy_name="load-test", statements=statements
    )
    return role, rights
