"""What is said of a construct: our warnings, and scanners' findings that we acknowledge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import aws_cdk
import jsii
from aws_cdk import Annotations, CfnResource
from constructs import IConstruct, IValidation

from ..errors import without_tokens
from ..facts.instance_types import unchecked
from ..report.visible import visible_lines
from .construct_tree import kept, root_of, stack_of
from .template_values import is_token, known_at_synth, pseudo_parameters

# aws-cdk-lib 2.269 and later.
_HAS_VALIDATIONS = hasattr(aws_cdk, "Validations")


def acknowledge(construct: IConstruct, *ids: str, reason: str) -> None:
    """Acknowledge findings of cdk-nag and of CDK, which aws-cdk-lib can from 2.269 on."""
    if _HAS_VALIDATIONS:
        with suppress(RuntimeError):
            aws_cdk.Validations.of(construct).acknowledge(
                *(aws_cdk.Acknowledgment(id=finding, reason=reason) for finding in ids)
            )


def acknowledge_in_template(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge findings of checkov (``CKV_...``) and of AWS Guard Rules Registry, each for its
    reason, of which Guard's metadata has no room; once for each resource."""
    # https://www.checkov.io/2.Basics/Suppressing%20and%20Skipping%20Policies.html and
    # https://github.com/aws-cloudformation/aws-guard-rules-registry/blob/main/docs/Using-Guard-Rules-Registry.md
    is_resource = isinstance(construct, CfnResource)
    resource = cast(CfnResource, construct if is_resource else construct.node.default_child)
    of_checkov = [finding for finding in reasons if finding.startswith("CKV_")]
    if of_checkov:
        skips = [{"id": finding, "comment": reasons[finding]} for finding in of_checkov]
        resource.add_metadata("checkov", {"skip": skips})
    of_guard = [finding for finding in reasons if finding not in of_checkov]
    if of_guard:
        resource.add_metadata("guard", {"SuppressedRules": of_guard})


def acknowledge_wildcard_resources(
    construct: IConstruct, resources: Sequence[str], *, reason: str
) -> None:
    """Acknowledge AwsSolutions-IAM5 for these resources alone; the reason is kept as metadata."""
    acknowledgement = _Acknowledgement(construct, resources, reason)
    acknowledgement.validate()
    if not known_at_synth(resources):
        # What another stack has is an import there, which synthesis makes before it validates.
        construct.node.add_validation(acknowledgement)


@jsii.implements(IValidation)
class _Acknowledgement:
    def __init__(self, construct: IConstruct, resources: Sequence[str], reason: str) -> None:
        self._construct, self._resources, self._reason = construct, list(resources), reason

    def validate(self) -> list[str]:
        """Acknowledge the resources as they are spelled now; there is never a complaint."""
        resolved: list[Any] = [_with_names(resource) for resource in self._resources]
        if any(map(is_token, resolved)):
            resolved = stack_of(self._construct).resolve(resolved)
        acknowledge(
            self._construct,
            *(f"AwsSolutions-IAM5[Resource::{_spelled(value)}]" for value in resolved),
            reason=self._reason,
        )
        return []


def _with_names(text: str) -> str:
    """With the names of a stack's own partition, Region and account in place of their tokens."""
    for token, name in zip(pseudo_parameters(), ("Partition", "Region", "AccountId"), strict=True):
        text = text.replace(token, f"<AWS::{name}>")
    return text


def _spelled(value: Any) -> str:
    """A resolved value as cdk-nag spells it in a finding: ``arn:<AWS::Partition>:s3:::a/*``."""
    if isinstance(value, str):
        return value.replace("${", "<").replace("}", ">")  # as Fn::Sub has them
    if isinstance(value, dict):
        ((function, argument),) = value.items()
        if function == "Fn::Join":
            return str(argument[0]).join(_spelled(part) for part in argument[1])
        if function in ("Fn::Sub", "Fn::ImportValue"):
            return _spelled(argument)
        if function == "Fn::GetAtt":
            return f"<{'.'.join(argument)}>"
        if function == "Ref":
            return f"<{argument}>"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def warn_once(construct: IConstruct, id: str, message: str) -> None:
    """As :func:`warn`, for the first construct of an app that it is true of, and no other."""
    said: set[str] = kept(root_of(construct), "warnings_said_once", set)
    if id not in said:
        said.add(id)
        warn(construct, id, f"{message} (Said once for the whole app.)")


def warn_of_unknown_type(construct: IConstruct, name: str) -> None:
    """That the table lacks an instance type, and which one may be meant: once, whoever finds it."""
    said = unchecked(name, "its processors, accelerators and storage")
    assumed = "alarms on its utilization assume one vCPU or GPU"
    warn_once(construct, f"unknownInstanceType:{name}", f"{said}; {assumed}.")


def warn(construct: IConstruct, id: str, message: str) -> None:
    """Add a warning that the CDK CLI prints, and that users acknowledge by its ID.

    Not with CDK's newer Validations, whose warnings ``acknowledge_warning`` does not find.
    """
    text = visible_lines(without_tokens(message))
    Annotations.of(construct).add_warning_v2(f"low-latency-endpoint:{id}", text)
