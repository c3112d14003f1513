"""Whether CloudWatch may publish to an alarm's topic: the topic's policy, and its key's.

Source: CloudWatch user guide, "Using Amazon CloudWatch alarms" and its key policy for topics; the
text about the key is AWS's (https://repost.aws/knowledge-center/cloudwatch-configure-alarm-sns).
"""

from __future__ import annotations

from .actions import Right
from .evaluator import Principal
from .judge import check_service

_WHO = Principal("cloudwatch.amazonaws.com")


def why_not_published(topic: str, key: str, alarm: str) -> str | None:
    """Say why CloudWatch cannot publish an alarm; None when it can."""
    _, _, _, region, account, _ = topic.split(":", 5)
    source = {"aws:sourceaccount": account, "aws:sourceowner": account, "aws:sourcearn": alarm}
    if reason := check_service(_WHO, Right("sns:Publish", topic, source), region):
        return (
            "CloudWatch Alarms is not authorized to perform: SNS:Publish on resource: "
            f"{topic} {reason}"
        )
    for action in ("kms:GenerateDataKey", "kms:Decrypt") if key else ():
        if check_service(_WHO, Right(action, key, source), region):
            return (
                "CloudWatch Alarms does not have authorization to access the SNS topic encryption "
                "key."
            )
    return None
