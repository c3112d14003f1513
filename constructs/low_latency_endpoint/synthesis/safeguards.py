"""What an organisation asks of everything that a stack makes: one key, one retention, its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct, IDependable

from ..plan.argument_kinds import checked_arguments
from ..plan.function_rights import LOG_KEY_ACTIONS, on_stated_role, writing_log
from ..plan.load_test_fleet_rules import LOG_RETENTION
from .asked_once import node_of
from .iam_documents import allow, arn, trust
from .rights_before import RightsBefore
from .role_rights import RoleRights
from .validation import check

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class Safeguards:
    """One key, one log retention and the roles for all that the constructs below a scope make.

    Args:
        encryption_key: Encrypts the log groups, the warm-up's dead letters and its functions' environments, the results of load tests and :class:`AlarmTopic`; and, unless they have a key of their own, captured data, core dumps and the instances' storage volumes, these where no instance type of the configuration has local storage. By default keys of AWS's own. A key that is made in the app gets the statements that CloudWatch Logs and alarms need in its policy; the policy of another key has to have them, and to leave the rest to IAM policies of the account.
        log_retention_days: How long every log group keeps its log; by default a week for functions of custom resources, a month for the rest.
        function_role: Runs all functions; by default each has a role of its own with the least that it needs. What they need is attached to it, where CDK can change it.
        flow_log_role: Delivers the flow log, likewise.

    Raises:
        ConfigurationError: LLE564 for a retention that CloudWatch Logs does not have.

    Examples:
        >>> from aws_cdk import App, Stack, aws_kms as kms
        >>> from low_latency_endpoint import Safeguards
        >>> stack = Stack(App(), "Serving")
        >>> Safeguards(encryption_key=kms.Key(stack, "Key", enable_key_rotation=True),
        ...            log_retention_days=365).apply_to(stack)
    """

    encryption_key: kms.IKey | None = None
    log_retention_days: int | None = None
    function_role: iam.IRole | None = None
    flow_log_role: iam.IRole | None = None

    def __post_init__(self) -> None:
        check(LOG_RETENTION, self.log_retention_days, "log_retention_days")

    def apply_to(self, scope: Construct) -> None:
        """Hold for everything that is made below the scope from now on; the nearest scope wins.

        What all endpoints of a stack share (two functions) follows the first of them: apply it to
        the stack, so that there is one answer.
        """
        _APPLIED[scope] = self

    def let_write_logs(self, group: logs.CfnLogGroup, *further: str) -> list[dict[str, Any]]:
        """What a role needs to write into a log group, and to do ``further`` with it."""
        return writing_log(group.attr_arn, *further, key_arn=self.key_arn, service=_logs_service())

    @property
    def key_arn(self) -> str | None:
        """Of the key, if there is one."""
        return self.encryption_key.key_arn if self.encryption_key else None


_APPLIED: WeakKeyDictionary[IConstruct, Safeguards] = WeakKeyDictionary()


@cache
def _logs_service() -> str:
    """Asked for when it is needed: at import, this would call Node.js."""
    return f"logs.{Aws.REGION}.{Aws.URL_SUFFIX}"


def safeguards_of(scope: IConstruct) -> Safeguards:
    """Those of the nearest scope that has some."""
    # Node.js is asked for the scopes only where some have safeguards.
    scopes = reversed(node_of(scope).scopes) if _APPLIED else ()
    return next((_APPLIED[each] for each in scopes if each in _APPLIED), Safeguards())


def log_group(scope: Construct, safeguards: Safeguards, *, days: int) -> logs.CfnLogGroup:
    """The log group ``Logs`` below the scope; kept for ``days`` unless the safeguards say more."""
    key = safeguards.encryption_key
    group = logs.CfnLogGroup(
        scope,
        "Logs",
        retention_in_days=safeguards.log_retention_days or days,
        kms_key_id=key.key_arn if key else None,
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
    ) -> None:
        self._owner = owner
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
        else:
            self._rights = RoleRights.given(scope, given)
            shared = ("*", Aws.STACK_ID, safeguards.key_arn)
            own, of_all = on_stated_role(statements, shared)
            policies = [
                self._rights.allow("Function", *own, owner=owner),
                *(self._rights.allow("Functions", each, owner=None) for each in of_all),
            ]
            self.arn, self.carriers = given.role_arn, list(policies)
            self.before = [*policies, RightsBefore.of(scope, given)]

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
