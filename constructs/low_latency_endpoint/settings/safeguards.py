"""Settings of what an organisation asks of everything: key, log retention, roles."""

from __future__ import annotations

from typing import Annotated

from ..options.rules import ENCRYPTION_KEY_ARN, ROLE_ARN
from ..plan.load_test_fleet_rules import LOG_RETENTION
from .fields import Limited
from .model_base import SettingsModel, optional


class SafeguardSettings(SettingsModel):
    """Key, log retention and roles for everything that the stacks make."""

    kms_key_arn: Annotated[str, Limited(ENCRYPTION_KEY_ARN)] | None = optional(
        "KMS key for log groups, the warm-up's dead letters and load-test results; also for "
        "captured data, core dumps and volumes of types without local storage, unless these have "
        "a key. Its policy must let CloudWatch Logs use it. Default: AWS's keys.",
        example="arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    )
    log_retention_days: Annotated[int, Limited(LOG_RETENTION)] | None = optional(
        "How long the stacks' own log groups keep logs. Default: 7 for functions of custom "
        "resources, else 30.",
        example=365,
    )
    function_role_arn: Annotated[str, Limited(ROLE_ARN)] | None = optional(
        "Role that runs the functions; what they need is attached to it. Default: one "
        "for each with the least privilege.",
        example="arn:aws:iam::123456789012:role/low-latency-functions",
    )
    flow_log_role_arn: Annotated[str, Limited(ROLE_ARN)] | None = optional(
        "Role that delivers the new VPC's flow log. Default: a new one.",
        example="arn:aws:iam::123456789012:role/flow-logs",
    )
