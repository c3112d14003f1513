"""What the checks after a deploy work on: a stack, and where this process runs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from low_latency_client.zone import ClientZone, find_client_zone

from ...account.calls import Account
from ...account.endpoints import (
    DeployedEndpoint,
    DeployedVariant,
    describe_endpoint,
    describe_model,
    read_endpoint,
)
from ...account.network import adopted_interface_endpoint, describe_subnets, resolve, vpc_endpoints
from ...account.sessions import Unreadable
from ...account.stacks import StackEndpoint, stack_endpoints, stack_ids, template_resources

TLS_SECONDS = 5
_LINK = "AWS::EC2::VPCEndpoint"


def own_address() -> str | None:
    """This machine's address on its default route; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a range for documentation: routed, never reached
            return str(probe.getsockname()[0])
        except OSError:
            return None


def tls_names(host: str) -> list[str]:
    """Connect with TLS as callers do, and give the names that the certificate covers."""
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, 443), timeout=TLS_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        certificate: Mapping[str, Any] = secured.getpeercert() or {}
    return [str(value) for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]


@dataclass(frozen=True)
class Machine:
    """Where this process runs, and how it sees the network; each part can be replaced."""

    resolve: Callable[[str], Sequence[str]] = resolve
    own_address: Callable[[], str | None] = own_address
    client_zone: Callable[[], ClientZone | None] = find_client_zone
    tls_names: Callable[[str], Sequence[str]] = tls_names


@dataclass(frozen=True)
class VerificationContext:
    stack_name: str
    account: Account
    machine: Machine = field(default_factory=Machine)

    @property
    def endpoints(self) -> tuple[VerifiedEndpoint, ...]:
        return tuple(
            VerifiedEndpoint(self, endpoint)
            for endpoint in stack_endpoints(self.account, self.stack_name)
        )

    @property
    def resources(self) -> dict[str, Mapping[str, Any]]:
        return template_resources(self.account, self.stack_name)

    def ids(self, kind: str) -> dict[str, str]:
        return stack_ids(self.account, self.stack_name, kind)

    @property
    def client_zones(self) -> tuple[str, ...]:
        """The zones of the callers: those of all plans; by ID or by name, as they were given."""
        zones = (
            zone for endpoint in self.endpoints for zone in endpoint.stated.plan.get("subnets", ())
        )
        return tuple(dict.fromkeys(zones))


@dataclass(frozen=True)
class VerifiedEndpoint:
    stack: VerificationContext
    stated: StackEndpoint

    @property
    def account(self) -> Account:
        return self.stack.account

    @property
    def key(self) -> str:
        """What reports call it."""
        return self.stated.name

    @property
    def where(self) -> tuple[Account, str, StackEndpoint]:
        """What tells the endpoint to those who read what its stack states."""
        return self.account, self.stack.stack_name, self.stated

    def planned(self, name: str, variant: str = "") -> Any:
        """A value in the template's plan of a variant; ``None`` without one."""
        return self.stated.plan_of(variant).get(name)

    def read(self) -> DeployedEndpoint | None:
        return read_endpoint(self.account, self.stated.name)

    @property
    def variants(self) -> dict[str, DeployedVariant]:
        """Production variants by name; none where there is no such endpoint."""
        endpoint = self.read()
        return endpoint.variants if endpoint else {}

    def settled(self) -> None:
        """Raise :class:`Unreadable` while an update is under way: two fleets have no one answer."""
        described = describe_endpoint(self.account, self.stated.name)
        update = DeployedEndpoint(described, {}).update if described else None
        if update is not None:
            raise Unreadable(
                f"{update.words}: what is described is the fleet before it",
                "Verify again when it has ended.",
            )


def describe_interface_endpoints(context: VerificationContext) -> list[Mapping[str, Any]]:
    """The stack's interface endpoints for the runtime, else those in the model's VPC."""
    own = set(context.ids(_LINK).values())
    vpc_ids = {
        subnet["VpcId"]
        for endpoint in context.endpoints
        for subnets in model_subnets(endpoint).values()
        for subnet in subnets
    }
    if vpc_ids:
        found = vpc_endpoints(context.account, vpc_ids)
    else:  # a variant that hosts inference components has no model
        stated = (adopted_interface_endpoint(context.account, each) for each in sorted(own))
        found = [endpoint for endpoint in stated if endpoint is not None]
    runtime = [
        endpoint
        for endpoint in found
        if endpoint["VpcEndpointType"] == "Interface"
        and endpoint["ServiceName"].endswith((".sagemaker.runtime", ".sagemaker.runtime-fips"))
    ]
    return [each for each in runtime if each["VpcEndpointId"] in own] or runtime


def stated_interface_endpoint(
    context: VerificationContext, link: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What the template states of an interface endpoint; nothing when it is not the stack's."""
    made = (
        context.resources.get(logical, {}).get("Properties", {})
        for logical, physical in context.ids(_LINK).items()
        if physical == link["VpcEndpointId"]
    )
    return next(made, {})


def model_subnets(context: VerifiedEndpoint) -> dict[str, list[Mapping[str, Any]]]:
    """Variant name to the subnets of its model."""
    model_subnets = {}
    for name, variant in context.variants.items():
        if variant.model_name:
            model = describe_model(context.account, variant.model_name)
            model_subnets[name] = describe_subnets(
                context.account, model.get("VpcConfig", {}).get("Subnets", ())
            )
    return model_subnets


def inside(address: str | None, blocks: Sequence[str]) -> bool:
    """Whether an address lies in one of the blocks.

    >>> inside("10.0.3.4", ["10.0.0.0/16"]), inside(None, ["10.0.0.0/16"])
    (True, False)
    """
    return address is not None and any(
        IPv4Address(address) in IPv4Network(block) for block in blocks
    )
