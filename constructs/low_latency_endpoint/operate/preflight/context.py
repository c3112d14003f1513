"""What the checks before a deploy work on: settings, plans, and the account they go to."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...account.calls import Account
from ...account.network import resolve
from ...plan.latency_plan import Plan
from ...settings import ContainerSettings, EndpointSettings, Settings, instances_in_update

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
    """The stack that a settings file describes, and the account it goes to.

    Attributes
    ----------
    settings : Settings
    plans : mapping of str to Plan
        By the endpoint's key.
    account : Account
    fetch : callable
        URL to its body, for the configurations of images.
    resolve : callable
        Name to its addresses, as this machine sees them.
    """

    settings: Settings
    plans: Mapping[str, Plan]
    account: Account
    fetch: Fetch = fetch
    resolve: Callable[[str], Sequence[str]] = resolve

    @property
    def runtime_service(self) -> str:
        """The endpoint service behind the interface endpoint."""
        fips = "-fips" if self.settings.private_link.fips else ""
        return service_name(self.account, f"sagemaker.runtime{fips}")

    @property
    def largest_fleet(self) -> int:
        """The most instances that all endpoints have together, outside of updates."""
        return sum(each.largest_fleet for each in self.endpoints)

    @property
    def endpoints(self) -> tuple[PlannedEndpoint, ...]:
        """One context per endpoint, in the order of the file."""
        return tuple(PlannedEndpoint(self, key) for key in self.settings.endpoints)


@dataclass(frozen=True)
class PlannedEndpoint:
    """One endpoint of the settings file."""

    stack: PreflightContext
    key: str

    @property
    def account(self) -> Account:
        """The account that the stack goes to."""
        return self.stack.account

    @property
    def settings(self) -> EndpointSettings:
        """The endpoint's settings."""
        return self.stack.settings.endpoints[self.key]

    @property
    def plan(self) -> Plan:
        """The endpoint's plan."""
        return self.stack.plans[self.key]

    @property
    def containers(self) -> Iterator[tuple[str, ContainerSettings]]:
        """What outcomes about a container say of it, where there are several; and the container."""
        several = len(self.settings.containers) > 1
        for index, each in enumerate(self.settings.containers):
            yield f"container {index}" if several else "", each

    @property
    def largest_fleet(self) -> int:
        """The most instances outside of updates."""
        return self.plan.largest_fleet

    @property
    def instances_during_update(self) -> int:
        """The most instances while a new version takes over, or is rolled back."""
        return instances_in_update(self.largest_fleet, self.settings)
