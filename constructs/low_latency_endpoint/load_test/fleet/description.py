"""The deployed fleet of an endpoint, as its stack describes it in Systems Manager."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...errors import rule
from ...facts.load_test_fleet_rules import descriptions_path

ONE_FLEET = rule(
    "LLT170",
    "this endpoint has several load-test fleets",
    fix="Delete the stacks of all but one: which of them to start nobody says.",
)
FLEET_DEPLOYED = rule(
    "LLT123",
    "this endpoint has no load-test fleet in this account and region",
    fix="Deploy one: cdk deploy --all -c load-test-fleet=true, or a LoadTestFleet in your app. "
    "Check --region and --profile.",
)


@dataclass(frozen=True)
class FleetDescription:
    """What a run needs to know of the fleet."""

    cluster: str
    #: ARNs of the task definitions.
    master: str
    worker: str
    #: Where tasks run, one subnet for each client zone.
    subnets: tuple[str, ...]
    zones: tuple[str, ...]
    security_group: str
    bucket: str
    log_group: str
    #: What workers in each subnet call; empty when the runtime's own name will do.
    zonal_urls: tuple[str, ...] = ()

    @property
    def region(self) -> str:
        """The fleet's Region."""
        return self.worker.split(":")[3]


def find_fleet(client: Any, endpoint_name: str) -> FleetDescription:
    """Read the description of an endpoint's fleet (LLT123, LLT170)."""
    path = descriptions_path(endpoint_name)
    pages = client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path)
    found = [each for page in pages for each in page["Parameters"]]
    if not found:
        raise FLEET_DEPLOYED.error(
            got=f"no parameter below {path}",
            allowed="a deployed LoadTestFleet",
            where=endpoint_name,
        )
    if len(found) > 1:
        raise ONE_FLEET.error(
            got=", ".join(sorted(each["Name"] for each in found)),
            allowed="one",
            where=endpoint_name,
        )
    name, value = found[0]["Name"], found[0]["Value"]
    try:
        content = json.loads(value)
        content.setdefault("zonal_urls", ())
        fields = {key: content[key] for key in FleetDescription.__dataclass_fields__}
        lists = {key: tuple(fields[key]) for key in ("subnets", "zones", "zonal_urls")}
        return FleetDescription(**{**fields, **lists})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FLEET_DEPLOYED.error(
            got=f"{name} holds {value[:200]!r}",
            where=endpoint_name,
            allowed="the description that this version's LoadTestFleet writes",
            fix="Deploy the fleet again with this version of the library.",
        ) from error
