"""What callers may do: the invoke actions of IAM, and the policy of an interface endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..plan.limits import ENDPOINT_POLICY_LENGTH
from ..synthesis.asked_once import path_of, region_of
from ..synthesis.iam_documents import allow, arn, document, endpoint_arn, least_length

INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
"""What a caller of a real-time endpoint needs. The API's page for the streaming call asks for
``sagemaker:InvokeEndpoint``, IAM lists a separate action: both are granted."""

_EVERY_INVOKE_ACTION = "sagemaker:InvokeEndpoint*"
"""Asynchronous and bidirectional calls too. IAM's name for the bidirectional one was found on no
page of AWS's; public samples grant ``sagemaker:InvokeEndpointWithBidirectionalStream``, which this
covers."""

CALL_WITH_BEARER_TOKEN = "sagemaker:CallWithBearerToken"
"""What callers of the OpenAI-compatible path need beside ``sagemaker:InvokeEndpoint``; it takes
no single resource. See
https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-openai-compatible.html"""


def invoke_actions(*, bidirectional_streaming: bool = False) -> tuple[str, ...]:
    """What a caller needs; all there is where the action of one of its calls is not known."""
    return (_EVERY_INVOKE_ACTION,) if bidirectional_streaming else INVOKE_ACTIONS


class LinkPolicy:
    """What may be done through a link: wide once and for all, or narrow to what it serves."""

    def __init__(
        self,
        link: Construct,
        resource: ec2.CfnVPCEndpoint,
        *,
        narrow: bool,
        bidirectional_streaming: bool,
        openai: bool,
    ) -> None:
        self._link, self._resource, self._narrow = link, resource, narrow
        self._calls = {"bidirectional_streaming": bidirectional_streaming, "openai": openai}
        self._served: list[str] = []
        if narrow:
            self._limit_to([arn("sagemaker", "endpoint/*")])
        else:
            resource.policy_document = _account_policy()

    def serve(self, endpoint_name: str, components: Sequence[str]) -> None:
        if not self._narrow:
            return
        self._add(endpoint_arn(self._link, endpoint_name))
        for name in components:
            self._add(arn("sagemaker", f"inference-component/{name}"))

    def _add(self, served: str) -> None:
        if served not in self._served:
            self._served.append(served)
            self._limit_to(self._served)

    def _limit_to(self, resources: Sequence[str]) -> None:
        policy = _endpoints_policy(resources, **self._calls)
        ENDPOINT_POLICY_LENGTH.check(
            least_length(policy, region_of(self._link)),
            f"{path_of(self._link)}, serving {len(resources)} endpoints",
        )
        self._resource.policy_document = policy


def _endpoints_policy(
    resources: Sequence[str], *, bidirectional_streaming: bool, openai: bool
) -> dict[str, Any]:
    """Lets this account's principals invoke these endpoints and no others."""
    return _policy(
        invoke_actions(bidirectional_streaming=bidirectional_streaming), resources, openai=openai
    )


def _account_policy() -> dict[str, Any]:
    """Lets this account's principals make every call that the runtime's name answers.

    That is what callers need who came by another way until private DNS led them here: endpoints
    and inference components of the account, asynchronous, streaming and OpenAI-compatible calls.
    """
    resources = [arn("sagemaker", "endpoint/*"), arn("sagemaker", "inference-component/*")]
    return _policy((_EVERY_INVOKE_ACTION,), resources, openai=True)


def _policy(actions: Sequence[str], resources: Sequence[str], *, openai: bool) -> dict[str, Any]:
    own = {"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}}
    statements = [allow(actions, resources, principal={"AWS": "*"}, condition=own)]
    if openai:
        statements.append(
            allow([CALL_WITH_BEARER_TOKEN], "*", principal={"AWS": "*"}, condition=own)
        )
    return document(*statements)
