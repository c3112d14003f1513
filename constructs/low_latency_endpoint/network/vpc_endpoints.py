"""VPC endpoints: their service and their VPC, their policies, and what a policy named before its
last change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aws_cdk import CfnResource, Stack, Token
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..synthesis.arns import arn, endpoint_arn
from ..synthesis.construct_tree import TreePart, stack_of
from ..synthesis.lambda_functions import shared_function
from ..synthesis.rights import Own, allow, document
from ..synthesis.template_values import is_token, pseudo_parameters

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


def service_name_of(endpoint: ec2.CfnVPCEndpoint) -> str:
    """The end of the service's name; the beginning may be a function of CloudFormation."""
    name: Any = stack_of(endpoint).resolve(endpoint.service_name)
    while isinstance(name, dict) and "Fn::Join" in name:
        name = name["Fn::Join"][1][-1]
    return str(name)


def stands_in(endpoint: ec2.CfnVPCEndpoint, vpc_id: str, stack: Stack) -> bool:
    """Whether the endpoint is one of the VPC's, which is of this stack."""
    if endpoint.vpc_id == vpc_id:
        return True
    # The same import of another stack's VPC, made twice, gives two tokens.
    return bool(
        is_token(vpc_id)
        and stack == stack_of(endpoint)
        and stack.resolve(vpc_id) == stack.resolve(endpoint.vpc_id)
    )


class FormerNames(TreePart):
    """Remembers, for each kind in ``names``, which ARNs a policy named until its last change."""

    # CloudFormation changes a policy that is part of another resource (a VPC endpoint's) in place,
    # before it makes what the new one names, and long before it deletes what the former one named.
    # So such a policy names both: this custom resource answers with what CloudFormation says that
    # its properties were, or with an ARN that is named now where nothing went.

    def __init__(self, scope: Construct, id: str, *, kinds: Sequence[str]) -> None:
        super().__init__(scope, id)
        function = shared_function(
            self,
            "FormerNames",
            "former_names",
            description="Tells CloudFormation which names a policy had before its last change",
            statements=[],
        )
        self._resource = CfnResource(
            self,
            "Resource",
            type="Custom::FormerNames",
            properties={"ServiceToken": function.arn, "ServiceTimeout": "120"},
        )
        own = self._resource.logical_id  # get_att and Fn.split are three calls for each kind
        self.names: Mapping[str, list[str]] = {
            kind: Token.as_list({"Fn::Split": [",", {"Fn::GetAtt": [own, kind]}]}) for kind in kinds
        }

    def now(self, named: Mapping[str, Sequence[str]]) -> None:
        """Say what is named now, for each kind at least one ARN."""
        self._resource.add_override("Properties", {kind: list(named[kind]) for kind in self.names})


def invoke_actions(*, bidirectional_streaming: bool = False) -> tuple[str, ...]:
    """What a caller needs; all there is where the action of one of its calls is not known."""
    return (_EVERY_INVOKE_ACTION,) if bidirectional_streaming else INVOKE_ACTIONS


class LinkPolicy:
    """What may be done through a link: wide, or narrow to what it serves and served before
    (:class:`FormerNames`), since callers of an endpoint that goes call it to its end."""

    def __init__(
        self,
        link: Construct,
        resource: ec2.CfnVPCEndpoint,
        *,
        narrow: bool,
        bidirectional_streaming: bool,
        openai: bool,
        guests: Guests,
    ) -> None:
        self._link, self._resource = link, resource
        self._actions = invoke_actions(bidirectional_streaming=bidirectional_streaming)
        self._openai = openai
        self._guests = guests.statements()
        self._served: list[str] = []
        self._former = FormerNames(link, "FormerlyServed", kinds=[_SERVED]) if narrow else None
        if self._former is not None:
            self._limit_to(self._former, [arn("sagemaker", "endpoint/*")])
        else:
            resource.policy_document = _account_policy(self._guests)

    def serve(self, endpoint_name: str, components: Sequence[str]) -> None:
        if self._former is None:
            return
        self._add(self._former, endpoint_arn(self._link, endpoint_name))
        for name in components:
            self._add(self._former, arn("sagemaker", f"inference-component/{name}"))

    def _add(self, former: FormerNames, served: str) -> None:
        if served not in self._served:
            self._served.append(served)
            self._limit_to(former, self._served)

    def _limit_to(self, former: FormerNames, resources: Sequence[str]) -> None:
        policy = _policy(
            self._actions,
            [resources, former.names[_SERVED]],
            openai=self._openai,
            more=self._guests,
        )
        former.now({_SERVED: resources})
        self._resource.policy_document = policy


class Guests(NamedTuple):
    """Accounts to which the VPC's subnets are shared: each calls its own endpoints."""

    accounts: Sequence[str] = ()
    organization: str | None = None

    def statements(self) -> list[dict[str, Any]]:
        """A wide statement for the accounts, and one for the organization."""
        statements = []
        if self.accounts:
            own = {"StringEquals": {"aws:PrincipalAccount": list(self.accounts)}}
            statements.append(_guest_statement(self.accounts, own))
        if self.organization:
            of_all = {"StringEquals": {"aws:PrincipalOrgID": self.organization}}
            statements.append(_guest_statement("*", of_all))
        return statements


def _guest_statement(accounts: Sequence[str], condition: dict[str, Any]) -> dict[str, Any]:
    partition, region, _ = pseudo_parameters()
    resources: list[str] = []
    for account in accounts:
        resources += _runtime_resources(Own(partition, region, account))
    actions = (_EVERY_INVOKE_ACTION,)
    return allow(actions, resources, principal={"AWS": "*"}, condition=condition)


def _runtime_resources(own: Own) -> list[str]:
    return [own.arn("sagemaker", f"{kind}/*") for kind in ("endpoint", "inference-component")]


def _account_policy(guests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every call that the runtime's name answers, for this account's principals: what callers need
    who came by another way until private DNS led them here."""
    resources = _runtime_resources(Own(*pseudo_parameters()))
    return _policy((_EVERY_INVOKE_ACTION,), [resources], openai=True, more=guests)


def _policy(
    actions: Sequence[str],
    resources: Sequence[Sequence[str]],
    *,
    openai: bool,
    more: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    own = {"StringEquals": {"aws:PrincipalAccount": pseudo_parameters()[2]}}
    statements = [
        allow(actions, resource, principal={"AWS": "*"}, condition=own) for resource in resources
    ]
    if openai:
        statements.append(
            allow([CALL_WITH_BEARER_TOKEN], "*", principal={"AWS": "*"}, condition=own)
        )
    return document(*statements, *more)
