"""What callers need of an endpoint: names, URLs, client settings, as outputs or as parameters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aws_cdk import CfnOutput
from constructs import Construct

from ..network.private_link import RuntimePrivateLink
from ..plan.plan import Plan


class ForCallers(NamedTuple):
    """One value that callers need: its output, the name of its parameter, and what it is."""

    output: str
    parameter: str
    value: str
    description: str


def values_for_callers(
    endpoint_name: str, link: RuntimePrivateLink, plan: Plan
) -> Iterator[ForCallers]:
    """Name, URLs and client settings."""
    yield ForCallers(
        "EndpointName", "endpoint-name", endpoint_name, "EndpointName of InvokeEndpoint"
    )
    yield ForCallers(
        "RegionalUrl",
        "url",
        link.url,
        "With private DNS, answered inside the VPC by the interface endpoint"
        if link.private_dns
        else "The interface endpoint in all zones: callers need it, or their ZonalUrl",
    )
    for zone, name in link.zonal_dns_names.items():
        yield ForCallers(
            f"ZonalUrl-{zone}",
            f"zonal-url/{zone}",
            f"https://{name}",
            f"For callers in {zone}: stays in the zone",
        )
    client = {
        "max_pool_connections": plan.caller_connections,
        "tcp_keepalive": True,
        "keepalive_seconds": plan.caller_keepalive_seconds,
    }
    yield ForCallers(
        "ClientSettings",
        "client-settings",
        json.dumps({key: value for key, value in client.items() if value is not None}),
        "For botocore's Config, so that no call waits for a connection",
    )


def output(scope: Construct, values: Iterable[ForCallers]) -> None:
    """Make a stack output of each value."""
    for each in values:
        CfnOutput(scope, each.output, value=each.value, description=each.description)


def publish(scope: Construct, prefix: str, values: Iterable[ForCallers]) -> None:
    """Make an SSM parameter of each value, named by the prefix and its key."""
    from aws_cdk import aws_ssm as ssm  # few endpoints have parameters

    for each in values:
        ssm.CfnParameter(
            scope,
            each.parameter.replace("/", "-"),
            type="String",
            name=f"{prefix}/{each.parameter}",
            value=each.value,
            description="Of a low-latency SageMaker endpoint, for its callers",
        )
