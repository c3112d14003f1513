"""What the checks before a deploy work on: settings, plans, and the account they go to."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...account.calls import Account
from ...account.network import resolve
from ...settings import (
    ContainerSettings,
    EndpointSettings,
    PlannedVariant,
    Settings,
    has_own_model,
    served_containers,
)

Fetch = Callable[[str], bytes]

_FETCH_SECONDS = 10
_LARGEST_CONFIGURATION = 4 * 1024 * 1024

# https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html and the
# prefixes that the CDK knows; partitions that neither lists have no entry.
_SERVICE_PREFIXES = {
    "aws": "com.amazonaws",
    "aws-us-gov": "com.amazonaws",
    "aws-cn": "cn.com.amazonaws",
    "aws-iso": "gov.ic.c2s",
    "aws-iso-b": "gov.sgov.sc2s",
}


def fetch(url: str) -> bytes:
    """The body behind a presigned URL of ECR's."""
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as answer:
        return bytes(answer.read(_LARGEST_CONFIGURATION))


def service_name(account: Account, service: str) -> str:
    """The name of a service's endpoint service in the account's partition and region."""
    prefix = _SERVICE_PREFIXES.get(account.partition(), "com.amazonaws")
    return f"{prefix}.{account.region}.{service}"


@dataclass(frozen=True)
class PreflightContext:
    """The stack that a settings file describes, and the account it goes to."""

    settings: Settings
    variants: Sequence[PlannedVariant]  # all of the file
    account: Account
    fetch: Fetch = fetch  # URL to its body, for the configurations of images
    # name to its addresses, as this machine sees them
    resolve: Callable[[str], Sequence[str]] = resolve
    deploying_role: str | None = None  # its ARN; None for CDK's, or else the caller

    @property
    def runtime_service(self) -> str:
        """The endpoint service behind the interface endpoint."""
        fips = "-fips" if self.settings.private_link.fips else ""
        return service_name(self.account, f"sagemaker.runtime{fips}")

    @property
    def fleet_with_addresses(self) -> int:
        """How many instances of all endpoints together the subnets have to have room for."""
        return sum(variant.plan.fleet_with_addresses for variant in self.variants)

    @property
    def endpoints(self) -> tuple[PlannedEndpoint, ...]:
        """One context per endpoint, in the order of the file."""
        return tuple(PlannedEndpoint(self, key) for key in self.settings.endpoints)


@dataclass(frozen=True)
class PlannedModel:
    types: tuple[str, ...]  # the instance types of the variants that serve it
    variant: str  # the variant that has it for its own; empty for the first variant's
    containers: tuple[ContainerSettings, ...]

    @property
    def parts(self) -> Iterator[tuple[str, ContainerSettings]]:
        """What outcomes about a container say of it, where there are several; and the container."""
        for index, container in enumerate(self.containers):
            part = f"container {index}" if len(self.containers) > 1 else ""
            yield ", ".join(filter(None, (self.variant, part))), container


@dataclass(frozen=True)
class PlannedEndpoint:
    stack: PreflightContext
    key: str

    @property
    def account(self) -> Account:
        return self.stack.account

    @property
    def settings(self) -> EndpointSettings:
        return self.stack.settings.endpoints[self.key]

    @property
    def variants(self) -> tuple[PlannedVariant, ...]:
        """The endpoint's variants with their plans, the first one's first."""
        return tuple(variant for variant in self.stack.variants if variant.key == self.key)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                name for variant in self.variants for name in variant.plan.request.serving.types
            )
        )

    @property
    def containers(self) -> Iterator[tuple[str, ContainerSettings]]:
        for model in self.models:
            yield from model.parts

    @property
    def models(self) -> Iterator[PlannedModel]:
        """The first variant's model, and those that other variants have of their own."""
        shared = tuple(
            dict.fromkeys(
                name
                for variant in self.variants
                if not (variant.further and has_own_model(variant.further.settings))
                for name in variant.plan.request.serving.types
            )
        )
        region = self.account.region
        yield PlannedModel(shared, "", served_containers(self.settings, region=region))
        for variant in self.variants:
            if variant.further and has_own_model(variant.further.settings):
                own = served_containers(self.settings, variant.further.settings, region)
                yield PlannedModel(
                    (variant.plan.request.serving.instance_type,), variant.variant, own
                )
