"""What an organisation asks of everything that a stack makes: one key, one retention, its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct, IDependable

from ..options.safeguards import APPLIED, APPLIED_SOMEWHERE, Safeguards
from .annotations import acknowledge, acknowledge_in_template, acknowledge_wildcard_resources
from .arns import arn
from .construct_tree import node_of, root_of, stack_of
from .homes import check_home
from .policy_documents import trust
from .rights import LOG_KEY_ACTIONS, Own, allow, being_in_vpc, on_stated_role, writing_log
from .role_rights import RightsBefore, RoleRights
from .template_values import pseudo_parameters

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_secretsmanager as secretsmanager


def writing_logs(
    safeguards: Safeguards, group: logs.CfnLogGroup, *further: str
) -> list[dict[str, Any]]:
    """What a role needs to write into a log group, and to do ``further`` with it."""
    key_arn = key_arn_of(safeguards)
    return writing_log(group.attr_arn, *further, key_arn=key_arn, service=_logs_service())


def key_arn_of(encrypted: Safeguards | s3.IBucket | secretsmanager.ISecret) -> str | None:
    """The key's ARN, if there is a key."""
    return encrypted.encryption_key.key_arn if encrypted.encryption_key else None


@cache
def _logs_service() -> str:
    """Asked for when it is needed: at import, this would call Node.js."""
    return f"logs.{Aws.REGION}.{Aws.URL_SUFFIX}"


def safeguards_of(scope: IConstruct) -> Safeguards:
    """Those of the nearest scope that has some, with key and roles as the CDK knows them."""
    # Node.js is asked for the scopes only where some have safeguards.
    somewhere = getattr(root_of(stack_of(scope)), APPLIED_SOMEWHERE, False)
    for holder in reversed(node_of(scope).scopes) if somewhere else ():
        safeguards: Safeguards | None = getattr(holder, APPLIED, None)
        if safeguards is not None:
            imported = _imported(cast(Construct, holder), safeguards)
            setattr(holder, APPLIED, imported)
            return imported
    return Safeguards()


def _imported(scope: Construct, stated: Safeguards) -> Safeguards:
    """What is named by its ARN becomes an import below the scope."""
    if key_arn := stated.kms_key_arn:
        imported_key = kms.Key.from_key_arn(scope, "EncryptionKey", key_arn)
        stated = replace(stated, kms_key_arn=None, encryption_key=imported_key)
    if role_arn := stated.function_role_arn:
        role = iam.Role.from_role_arn(scope, "FunctionRole", role_arn)
        stated = replace(stated, function_role_arn=None, function_role=role)
    if flow_log := stated.flow_log_role_arn:
        role = iam.Role.from_role_arn(scope, "FlowLogRole", flow_log)
        stated = replace(stated, flow_log_role_arn=None, flow_log_role=role)
    return stated


def log_group(scope: Construct, safeguards: Safeguards, *, days: int) -> logs.CfnLogGroup:
    """The log group ``Logs`` below the scope; kept for ``days`` unless the safeguards say more."""
    key = safeguards.encryption_key
    check_home(scope, key_arn_of(safeguards))
    group = logs.CfnLogGroup(
        scope,
        "Logs",
        retention_in_days=safeguards.log_retention_days or days,
        kms_key_id=key_arn_of(safeguards),
    )
    group.apply_removal_policy(RemovalPolicy.DESTROY)
    if key is not None:
        # Where the key is made in the app; the same statement twice counts once.
        key.add_to_resource_policy(
            iam.PolicyStatement.from_json(
                allow(
                    LOG_KEY_ACTIONS,
                    "*",
                    principal={"Service": _logs_service()},
                    condition={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": arn("logs", "*")}},
                )
            )
        )
    return group


class FunctionRole:
    """The role of a function: ``Role`` below its scope, or the one that the safeguards name."""

    def __init__(
        self,
        scope: Construct,
        safeguards: Safeguards,
        policy_name: str,
        statements: Sequence[Mapping[str, Any]],
        *,
        owner: IConstruct | None = None,
        in_vpc: bool = False,
    ) -> None:
        self._owner = owner
        interfaces = being_in_vpc(Own(*pseudo_parameters())) if in_vpc else []
        statements = [*statements, *interfaces]
        self.arn: str
        self.carriers: list[IConstruct]  # of the statements
        self.before: list[IDependable]  # beside the role, what a function needs before it runs
        given = safeguards.function_role
        if given is None:
            made, self._rights, self.before = RoleRights.made(
                scope,
                "Role",
                trusted=trust("lambda.amazonaws.com"),
                policy_name=policy_name,
                statements=statements,
            )
            self.arn, self.carriers = made.attr_arn, [made]
            managing = self.carriers if in_vpc else []
        else:
            self._rights = RoleRights.given(scope, given)
            shared = ("*", Aws.STACK_ID, key_arn_of(safeguards))
            own, of_all = on_stated_role(statements, shared)
            policies = [
                self._rights.allow("Function", *own, owner=owner),
                *(self._rights.allow("Functions", each, owner=None) for each in of_all),
            ]
            self.arn, self.carriers = given.role_arn, list(policies)
            managing = [
                policy
                for policy, statement in zip(policies[1:], of_all, strict=True)
                if statement in interfaces[:1]
            ]
            self.before = [*policies, RightsBefore.of(scope, given)]
        for carrier in managing:
            reason = (
                "Lambda puts the function into the VPC with these and knows the "
                "interfaces only afterwards; the function's own code may only describe them."
            )
            acknowledge_wildcard_resources(carrier, ["*"], reason=reason)
            acknowledge_in_template(carrier, {"CKV_AWS_111": reason})

    def also(
        self,
        kind: str,
        *statements: Mapping[str, Any],
        scope: Construct | None = None,
        fixed: bool = False,
    ) -> Construct:
        """Add a policy as :meth:`RoleRights.allow` does; whatever needs the right depends on it."""
        return self._rights.allow(
            kind,
            *statements,
            owner=None if fixed else scope or self._owner,
            scope=scope,
            fixed=fixed,
        )


def private_bucket(
    scope: Construct,
    id: str,
    *,
    holds: str,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    removal_policy: RemovalPolicy,
    safeguards: Safeguards | None = None,
) -> s3.Bucket:
    """Make a bucket with the safeguards' key; ``holds`` says why access is not logged."""
    from aws_cdk import aws_s3 as s3  # few apps have a bucket of ours

    key = (safeguards or safeguards_of(scope)).encryption_key
    bucket = s3.Bucket(
        scope,
        id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=True if key else None,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=list(lifecycle_rules),
        removal_policy=removal_policy,
    )
    unlogged = f"Holds {holds}; CloudTrail data events record access where an account wants that."
    acknowledge(bucket, "AwsSolutions-S1", reason=unlogged)
    replaceable = "What the bucket holds can be measured or copied again."
    acknowledge_in_template(
        bucket,
        {
            "CKV_AWS_18": unlogged,
            "S3_BUCKET_LOGGING_ENABLED": unlogged,
            "CKV_AWS_21": replaceable,
            "S3_BUCKET_VERSIONING_ENABLED": replaceable,
            "S3_BUCKET_REPLICATION_ENABLED": replaceable,
            "S3_BUCKET_DEFAULT_LOCK_ENABLED": replaceable,
        },
    )
    if bucket.policy is not None:
        denied = 'The policy denies such requests; the rule asks for false, the CDK writes "false".'
        acknowledge_in_template(bucket.policy, {"S3_BUCKET_SSL_REQUESTS_ONLY": denied})
    return bucket
