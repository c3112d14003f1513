"""The paths from functions in a VPC to SageMaker Runtime, as a test sets them for each zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..admission import Admit, Refused
from .blueprints import zone_name

ORDERS = ("zone", "round robin")
"""Which addresses the regional names give: the caller's zone's, or those of all zones at random.

SageMaker's guide says that private DNS keeps to the caller's zone, PrivateLink's that the answers go
round robin. Sources: SageMaker developer guide, "Real-time inference with AWS PrivateLink"; PrivateLink
guide, "Access an AWS service using an interface VPC endpoint".
"""
_LONGEST_DELAY = 60_000.0  # milliseconds


@dataclass(frozen=True)
class Path:
    """The path to the interface endpoint's address in one zone."""

    delay: float = 0.0  # seconds, for each round trip
    lost: bool = False  # whether nothing comes back


@dataclass(frozen=True)
class Paths:
    """What a test has set; every other path is as fast as this machine."""

    region: str
    by_zone: Mapping[str, Path] = field(default_factory=dict)
    order: str = "zone"

    def zone(self, given: str) -> str:
        """Give a zone's name from its name or ID."""
        name = zone_name(given, self.region)
        if name is None:
            raise ValueError(f"{self.region} has no zone {given}")
        return name

    def with_path(self, zone: str, delay_ms: float, lost: bool) -> Paths:
        """Give these paths, with another one to a zone."""
        if not 0 <= delay_ms <= _LONGEST_DELAY:  # NaN too
            raise ValueError(f"delay_ms must be from 0 to {_LONGEST_DELAY:.0f}: {delay_ms}")
        path = Path(delay_ms / 1000, lost)
        return replace(self, by_zone={**self.by_zone, self.zone(zone): path})

    def with_order(self, order: str) -> Paths:
        """Give these paths, with another order of the regional names' answers."""
        if order not in ORDERS:
            raise ValueError(f"the names' order is one of {', '.join(ORDERS)}: {order}")
        return replace(self, order=order)


def domain_of(region: str) -> str:
    """Give what all names of SageMaker Runtime in a Region have in common."""
    return f"runtime.sagemaker.{region}"


def admit_names(admit: Admit, region: str) -> Admit:
    """Admit requests to AWS's own names of SageMaker Runtime too, which no foreign page can have."""
    domain = domain_of(region)
    ours = (f"{domain}.amazonaws.com", f".{domain}.vpce.amazonaws.com")

    def judge(target: str, headers: Mapping[str, str], port: int) -> Refused | None:
        if headers.get("host", "").lower().partition(":")[0].endswith(ours):
            headers = {**headers, "host": f"localhost:{port}"}
        return admit(target, headers, port)

    return judge
