"""The Availability Zones in which the callers run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..plan.argument_kinds import checked_arguments
from ..plan.limits import CLIENT_ZONE_COUNT, ZONE_ID, ZONE_NAME
from ..plan.rules import ZONE_NAMED_TWICE


@checked_arguments
@dataclass(frozen=True, slots=True)
class ClientZones:
    """Zones by ID or by name; make one with :meth:`of_ids` or :meth:`of_names`.

    IDs are preferred: ``use1-az4`` is the same physical zone in every account, while each
    account shuffles what ``us-east-1a`` stands for, so callers in another account can be matched
    by ID only.

    Raises
    ------
    ConfigurationError
        LLE101 or LLE102 for a malformed zone, LLE103 for fewer than two or more than sixteen
        (SageMaker hosting in a VPC needs subnets in two zones), LLE107 for a zone named twice.

    Examples
    --------
    >>> ClientZones.of_ids("use1-az1", "use1-az2").zones
    ('use1-az1', 'use1-az2')
    """

    kind: Literal["id", "name"]
    zones: tuple[str, ...]

    @classmethod
    def of_ids(cls, *zones: str) -> ClientZones:
        """Zones by ID, such as ``use1-az4``."""
        return cls("id", zones)

    @classmethod
    def of_names(cls, *zones: str) -> ClientZones:
        """Zones by name, such as ``us-east-1a``, as this account knows them."""
        return cls("name", zones)

    def __post_init__(self) -> None:
        form = ZONE_ID if self.kind == "id" else ZONE_NAME
        for zone in self.zones:
            form.check(zone)
        CLIENT_ZONE_COUNT.check(len(self.zones))
        for zone in self.zones:
            if self.zones.count(zone) > 1:
                raise ZONE_NAMED_TWICE.error(got=zone, allowed="zones that differ")
