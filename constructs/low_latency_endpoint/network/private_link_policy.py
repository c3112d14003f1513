"""What callers may do: the invoke actions of IAM, and the policy of an interface endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.limits import ENDPOINT_POLICY_LENGTH
from ..synthesis.asked_once import path_of, region_of
from ..synthesis.findings import pseudo_parameters
from ..synthesis.former_names import LONGEST_ANSWER, FormerNames
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

_SERVED = "Served"


def invoke_actions(*, bidirectional_streaming: bool = False) -> tuple[str, ...]:
    """What a caller needs; all there is where the action of one of its calls is not known."""
    return (_EVERY_INVOKE_ACTION,) if bidirectional_streaming else INVOKE_ACTIONS


class LinkPolicy:
    """What may be done through a link: wide once and for all, or narrow to what it serves.

    A narrow one also lets through what was served until the last change (:class:`FormerNames`):
    callers of an endpoint that is renamed or removed call it as long as it is there.
    """

    def __init__(
        self,
        link: Construct,
        resource: ec2.CfnVPCEndpoint,
        *,
        narrow: bool,
        bidirectional_streaming: bool,
        openai: bool,
    ) -> None:
        self._link, self._resource = link, resource
        self._actions = invoke_actions(bidirectional_streaming=bidirectional_streaming)
        self._openai = openai
        self._served: list[str] = []
        self._former = FormerNames(link, "FormerlyServed", kinds=[_SERVED]) if narrow else None
        if narrow:
            self._limit_to([arn("sagemaker", "endpoint/*")])
        else:
            resource.policy_document = _account_policy()

    def serve(self, endpoint_name: str, components: Sequence[str]) -> None:
        if self._former is None:
            return
        self._add(endpoint_arn(self._link, endpoint_name))
        for name in components:
            self._add(arn("sagemaker", f"inference-component/{name}"))

    def _add(self, served: str) -> None:
        if served not in self._served:
            self._served.append(served)
            self._limit_to(self._served)

    def _limit_to(self, resources: Sequence[str]) -> None:
        assert self._former is not None
        policy = _policy(
            self._actions, [resources, self._former.names[_SERVED]], openai=self._openai
        )
        ENDPOINT_POLICY_LENGTH.check(
            least_length(policy, region_of(self._link)) + LONGEST_ANSWER,
            f"{path_of(self._link)}, serving {len(resources)} endpoints",
        )
        self._former.now({_SERVED: resources})
        self._resource.policy_document = policy


def _account_policy() -> dict[str, Any]:
    """Lets this account's principals make every call that the runtime's name answers.

    That is what callers need who came by another way until private DNS led them here: endpoints
    and inference components of the account, asynchronous, streaming and OpenAI-compatible calls.
    """
    resources = [arn("sagemaker", "endpoint/*"), arn("sagemaker", "inference-component/*")]
    return _policy((_EVERY_INVOKE_ACTION,), [resources], openai=True)


def _policy(
    actions: Sequence[str], resources: Sequence[Sequence[str]], *, openai: bool
) -> dict[str, Any]:
    own = {"StringEquals": {"aws:PrincipalAccount": pseudo_parameters()[2]}}
    statements = [allow(actions, each, principal={"AWS": "*"}, condition=own) for each in resources]
    if openai:
        statements.append(
            allow([CALL_WITH_BEARER_TOKEN], "*", principal={"AWS": "*"}, condition=own)
        )
    return document(*statements)
