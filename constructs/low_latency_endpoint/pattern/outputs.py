"""Values for callers as stack outputs or parameters, and the plan's explanation as a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import jsii
from aws_cdk import CfnOutput, Stack, Stage
from constructs import Construct, IValidation

from ..network.private_link import RuntimePrivateLink
from ..plan.plan import KEEPALIVE_SECONDS, Plan
from ..synthesis.construct_tree import kept, path_of, stack_of


class CallerValue(NamedTuple):
    """One value that callers need: its output, the name of its parameter, and what it is."""

    output: str
    parameter: str
    value: str
    description: str


def values_for_callers(
    endpoint_name: str, link: RuntimePrivateLink, plan: Plan
) -> Iterator[CallerValue]:
    """Name, URLs and client settings."""
    yield CallerValue(
        "EndpointName", "endpoint-name", endpoint_name, "EndpointName of InvokeEndpoint"
    )
    yield CallerValue(
        "RegionalUrl",
        "url",
        link.url,
        "With private DNS, answered inside the VPC by the interface endpoint"
        if link.private_dns
        else "The interface endpoint in all zones: callers need it, or their ZonalUrl",
    )
    for zone, name in link.zonal_dns_names.items():
        yield CallerValue(
            f"ZonalUrl-{zone}",
            f"zonal-url/{zone}",
            f"https://{name}",
            f"For callers in {zone}: stays in the zone",
        )
    client = {
        "max_pool_connections": plan.caller_connections,
        "tcp_keepalive": True,
        "keepalive_seconds": KEEPALIVE_SECONDS,
    }
    yield CallerValue(
        "ClientSettings",
        "client-settings",
        json.dumps({key: value for key, value in client.items() if value is not None}),
        "For botocore's Config, so that no call waits for a connection",
    )


def output_values(scope: Construct, values: Iterable[CallerValue]) -> None:
    """Make a stack output of each value."""
    for value in values:
        CfnOutput(scope, value.output, value=value.value, description=value.description)


def publish_values(scope: Construct, prefix: str, values: Iterable[CallerValue]) -> None:
    """Make an SSM parameter of each value, named by the prefix and its key."""
    from aws_cdk import aws_ssm as ssm  # few endpoints have parameters

    for value in values:
        ssm.CfnParameter(
            scope,
            value.parameter.replace("/", "-"),
            type="String",
            name=f"{prefix}/{value.parameter}",
            value=value.value,
            description="Of a low-latency SageMaker endpoint, for its callers",
        )


def explain_beside_template(endpoint: Construct, plans: Mapping[str, Plan]) -> None:
    """Let synthesis write ``<stack>.plan.json``: plans by endpoint, and by variant in it."""
    stack = stack_of(endpoint)
    file: _PlanFile = kept(stack, "plan_file", lambda: _PlanFile(stack))
    file.plans[path_of(endpoint)] = plans


@jsii.implements(IValidation)
class _PlanFile:
    """Asked at each synthesis, in stages and tests too, when the assembly's folder is known."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.plans: dict[str, Mapping[str, Plan]] = {}
        stack.node.add_validation(self)

    def validate(self) -> list[str]:
        name = self._stack.template_file.removesuffix("template.json") + "plan.json"
        explained = {
            path: {variant: plan.explanation.to_dict() for variant, plan in plans.items()}
            for path, plans in self.plans.items()
        }
        text = json.dumps(self._stack.resolve(explained), indent=2, allow_nan=False)
        outdir = Stage.of(self._stack).outdir  # type: ignore[union-attr]
        Path(outdir, name).write_text(f"{text}\n", encoding="utf-8")
        return []
