"""What an organisation asks of everything that a stack makes: one key, one retention, its roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from ..errors.findings import Finding
from ..errors.frozen import dataclass
from ..facts.load_test_fleet_rules import LOG_RETENTION
from .argument_kinds import checked_arguments
from .option import Option, Options
from .rules import (
    CODE_SIGNING_ARN,
    ENCRYPTION_KEY_ARN,
    KMS_KEY_EXAMPLE,
    ROLE_ARN,
    SECURITY_GROUP_ID,
    SUBNET_ID,
)

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms
    from constructs import Construct

#: Attributes: of a scope the safeguards that hold below it, of an app whether any scope has some.
APPLIED, APPLIED_SOMEWHERE = "_low_latency_endpoint_safeguards", "_low_latency_endpoint_safeguarded"
_ROLE = "arn:aws:iam::123456789012:role/"


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class Safeguards(Options):
    """Key, log retention and roles for everything that the stacks make.

    :meth:`Safeguards.apply_to` applies them to all that the constructs below a scope make.

    Raises:
        ConfigurationError: LLE564 for a retention that CloudWatch Logs does not have, LLE341,
            LLE925 and LLE955 for an ARN, LLE921 and LLE923 for an ID, LLE929 for both forms of
            the same, LLE928 for subnets without security groups, LLE807 for values of another
            kind.

    Examples:
        >>> from aws_cdk import App, Stack, aws_kms as kms
        >>> from low_latency_endpoint import Safeguards
        >>> stack = Stack(App(), "Serving")
        >>> Safeguards(encryption_key=kms.Key(stack, "Key", enable_key_rotation=True),
        ...            log_retention_days=365).apply_to(stack)
    """

    kms_key_arn: Annotated[str | None, Option(ENCRYPTION_KEY_ARN, KMS_KEY_EXAMPLE)] = None
    """KMS key for log groups, the warm-up's dead letters and load-test results; also for captured
    data, core dumps and volumes of types without local storage, unless these have their own key.
    Its policy must let CloudWatch Logs use it. Default: AWS's keys."""
    log_retention_days: Annotated[int | None, Option(LOG_RETENTION, 365)] = None
    """Days for which the stacks' log groups keep logs. Default: 7 for functions of custom
    resources, else 30."""
    function_role_arn: Annotated[str | None, Option(ROLE_ARN, f"{_ROLE}low-latency-functions")] = (
        None
    )
    """Role that runs the functions; the stack attaches the permissions they need. Default: one
    least-privilege role for each."""
    flow_log_role_arn: Annotated[str | None, Option(ROLE_ARN, f"{_ROLE}flow-logs")] = None
    """Role that delivers the new VPC's flow log. Default: a new one."""
    function_subnet_ids: Annotated[
        Sequence[str], Option(SUBNET_ID, ["subnet-0123456789abcdef0"])
    ] = ()
    """Subnets for the functions that do not run in the client zones' subnets, for accounts that
    refuse functions outside a VPC. From there they must reach the APIs of CloudFormation,
    CloudWatch, EC2, Lambda and SageMaker, and S3, where CloudFormation waits for answers; with
    models of the Hugging Face Hub also the internet. Default: these functions run outside a VPC."""
    function_security_group_ids: Annotated[
        Sequence[str], Option(SECURITY_GROUP_ID, ["sg-0123456789abcdef0"])
    ] = ()
    """Security groups of these functions; they must let HTTPS out. Default: none; needed with
    function_subnet_ids."""
    code_signing_config_arn: Annotated[
        str | None,
        Option(
            CODE_SIGNING_ARN,
            "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-0123456789abcdef0",
        ),
    ] = None
    """Lambda code signing configuration of every function. The functions' code is not signed, so
    its policy must be Warn. Default: none."""
    wait_for_interfaces: Annotated[bool, Option()] = True
    """On delete, wait with a Lambda function until SageMaker's network interfaces have gone.
    Without it, deleting a stack that makes the subnets or the security group fails until they have
    gone, and has to be repeated. Default: true."""
    encryption_key: kms.IKey | None = None
    """In place of ``kms_key_arn`` a key of the app, also for the environments of the warm-up's
    functions and for :class:`AlarmTopic`. A key that is made in the app gets the statements that
    CloudWatch Logs and alarms need in its policy; the policy of another key has to have them, and
    to leave the rest to IAM policies of the account. Default: none."""
    function_role: iam.IRole | None = None
    """In place of ``function_role_arn`` a role of the app, which CDK can change. Default: none."""
    flow_log_role: iam.IRole | None = None
    """In place of ``flow_log_role_arn`` a role of the app. Default: none."""
    function_subnets: Sequence[ec2.ISubnet] = ()
    """In place of ``function_subnet_ids`` subnets of the app. Default: none."""
    function_security_groups: Sequence[ec2.ISecurityGroup] = ()
    """In place of ``function_security_group_ids`` security groups of the app. Default: none."""

    def apply_to(self, scope: Construct) -> None:
        """Hold for everything that is made below the scope from now on; the nearest scope wins.

        What all endpoints of a stack share (two functions) follows the first of them: apply it to
        the stack, so that there is one answer.
        """
        setattr(scope, APPLIED, self)
        setattr(scope.node.root, APPLIED_SOMEWHERE, True)

    def _rules(self) -> Iterator[Finding]:
        """One key, one role of each kind, and subnets with security groups."""
        for made, named in (
            ("encryption_key", "kms_key_arn"),
            ("function_role", "function_role_arn"),
            ("flow_log_role", "flow_log_role_arn"),
            ("function_subnets", "function_subnet_ids"),
            ("function_security_groups", "function_security_group_ids"),
        ):
            yield from self._excludes(made, (named,), "both say the same")
        for subnets, groups in (
            ("function_subnet_ids", "function_security_group_ids"),
            ("function_subnets", "function_security_groups"),
        ):
            why = "Lambda takes subnets and security groups together"
            yield from self._needs(subnets, groups, why)
            yield from self._needs(groups, subnets, why)
