"""Tags of models, endpoint configurations and endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import CfnTag

from ..facts.limits import TAG_COUNT, TAG_KEY, TAG_VALUE
from ..synthesis.template_values import check


def cfn_tags(tags: Mapping[str, str] | None, where: str) -> list[CfnTag] | None:
    """The tags as CloudFormation takes them; None without any. Errors: LLE509 to LLE511."""
    if not tags:
        return None
    TAG_COUNT.check(len(tags), where)
    for key, value in tags.items():
        check(TAG_KEY, key, where)
        check(TAG_VALUE, value, f"{where}, tag {key}")
    return [CfnTag(key=key, value=value) for key, value in tags.items()]
