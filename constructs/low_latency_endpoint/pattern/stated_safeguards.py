"""Key, log retention and roles that the settings state, for all of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from ..synthesis.safeguards import Safeguards

if TYPE_CHECKING:
    from ..settings import SafeguardSettings


def safeguards_in(stack: Stack, stated: SafeguardSettings) -> None:
    """Hold for everything that the stack makes from now on."""

    def role(id: str, arn: str | None) -> iam.IRole | None:
        return iam.Role.from_role_arn(stack, id, arn) if arn else None

    Safeguards(
        encryption_key=kms.Key.from_key_arn(stack, "EncryptionKey", stated.kms_key_arn)
        if stated.kms_key_arn
        else None,
        log_retention_days=stated.log_retention_days,
        function_role=role("FunctionRole", stated.function_role_arn),
        flow_log_role=role("FlowLogRole", stated.flow_log_role_arn),
    ).apply_to(stack)
