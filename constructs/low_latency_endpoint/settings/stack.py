"""The settings of one stack: what its endpoints share, and the endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from ..errors import did_you_mean
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.prices import PRICED_ITEM, Price
from ..options.network import ClientZones, NetworkOptions, PrivateLinkOptions
from ..options.option import Option, Options
from ..options.rules import ENDPOINT_KEY, NO_SUCH_ENDPOINT, STACK_NAME, TOPIC_ARN
from ..options.safeguards import Safeguards
from . import stack_checks
from .endpoint import EndpointSettings
from .prices import PRICES
from .stack_checks import region_of

__all__ = ["Settings", "region_of"]


@dataclass(frozen=True, kw_only=True)
class Settings(Options):
    """One stack: shared network and PrivateLink, and one or several endpoints.

    Args:
        stack_name: Name of the CloudFormation stack. Default: LowLatencyEndpoint.
        region: Region to deploy to. Default: that of the AWS CLI's profile.
        account: Account to deploy to, twelve digits in quotes. Default: that of the AWS CLI's profile.
        client_zones: Where the callers run: everything else goes into the same zones.
        network: The VPC. Default: a new one with one isolated subnet in each client zone.
        private_link: How callers reach SageMaker Runtime. Default: a new interface endpoint with private DNS in the client zones, open to the VPC.
        parameters: Prefix of SSM parameters with what callers need: endpoint-name, url, zonal-url/<zone> and client-settings of each endpoint, such as /low-latency/sentiment/url. Default: none; the stack's outputs say the same.
        alarm_topic_arn: SNS topic that the alarms notify. Default: they notify nobody.
        safeguards: Key, log retention and roles for everything that the stacks make. Default: AWS's keys, short retentions, a role for each.
        tags: Tags of everything in the stack, up to 50.
        prices: Prices in US dollars; they change nothing of the stack. file: what low-latency prices wrote. Your own prices beside it win, such as an hour of an instance type, or of interface_endpoint in one zone; the example's is made up. Default: AWS's list prices, where this library has them: it has none of instance types.
        endpoints: The endpoints by a key of your choice, the construct's id. They share the network and the interface endpoint.
    """

    stack_name: Annotated[str, Option(STACK_NAME, "LowLatencyEndpoint")] = "LowLatencyEndpoint"
    region: Annotated[str | None, Option(limits.REGION, "us-east-1")] = None
    account: Annotated[str | None, Option(limits.ACCOUNT, "123456789012")] = None
    client_zones: Annotated[ClientZones, Option(example={"ids": ["use1-az1", "use1-az2"]})]
    network: Annotated[NetworkOptions, Option(example={"vpc_id": "vpc-0123456789abcdef0"})] = field(
        default_factory=NetworkOptions
    )
    private_link: Annotated[
        PrivateLinkOptions, Option(example={"allow_cidrs": ["10.0.0.0/16"]})
    ] = field(default_factory=PrivateLinkOptions)
    parameters: Annotated[str | None, Option(limits.PARAMETER_PREFIX, "/low-latency")] = None
    alarm_topic_arn: Annotated[
        str | None, Option(TOPIC_ARN, "arn:aws:sns:us-east-1:123456789012:on-call")
    ] = None
    safeguards: Annotated[Safeguards, Option(example={"log_retention_days": 365})] = field(
        default_factory=Safeguards
    )
    tags: Annotated[
        Mapping[str, str], Option(limits.TAG_VALUE, {"team": "nlp"}, keys=limits.TAG_KEY)
    ] = field(default_factory=dict)
    prices: Annotated[
        Mapping[str, Price],
        Option(example={"file": "prices-us-east-1.csv", "ml.m5.12xlarge": 1.0}, keys=PRICED_ITEM),
        *PRICES,
    ] = field(default_factory=dict)
    endpoints: Annotated[
        Mapping[str, EndpointSettings], Option(example={"sentiment": "..."}, keys=ENDPOINT_KEY)
    ]

    _rules_of_region = stack_checks.rules_of_region
    _rules_of_subnets = stack_checks.rules_of_subnets
    _rules_of_room = stack_checks.rules_of_room
    _rules_of_link = stack_checks.rules_of_link
    _rules_of_hosted_zones = stack_checks.rules_of_hosted_zones
    _rules_of_buckets = stack_checks.rules_of_buckets
    _rules_of_tags = stack_checks.rules_of_tags
    _rules_of_stack_name = stack_checks.rules_of_stack_name
    _rules_of_keys = stack_checks.rules_of_keys
    _rules_of_endpoint_names = stack_checks.rules_of_endpoint_names
    _rules_of_endpoints = stack_checks.rules_of_endpoints

    def key_of(self, name: str) -> str:
        """The key of an endpoint, by that key or by its name at AWS."""
        named = {each.endpoint_name or key: key for key, each in self.endpoints.items()}
        named |= {key: key for key in self.endpoints}
        if name not in named:
            fix = f"{did_you_mean(name, named)} {NO_SUCH_ENDPOINT.fix}".strip()
            raise NO_SUCH_ENDPOINT.error(got=name, allowed=", ".join(named), fix=fix)
        return named[name]
