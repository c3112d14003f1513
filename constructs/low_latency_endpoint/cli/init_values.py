"""What ``low-latency init`` writes down: given by its options, or read from the account."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from ..errors import LowLatencyEndpointError

if TYPE_CHECKING:
    from ..account.calls import Account
    from .init import InitOptions

NAMES = {
    "text-classification": "sentiment",
    "language-model": "chat",
    "hugging-face": "hub",
    "inferentia2": "scorer",
}
HUGGING_FACE = "hugging-face"
_LEAST_ZONES = 2


@dataclass(frozen=True)
class InitValues:
    """What the files say."""

    template: str
    name: str
    model_data: str  # in S3; with the template of the Hub, the model's name there
    region: str
    zones: list[str]  # IDs, or names
    zones_are_said: bool  # whether somebody said where the callers run
    account: str | None
    vpc_id: str | None
    # the existing VPC's subnet of each zone; empty where they are looked up by name
    subnets: dict[str, str]
    others: dict[str, list[str]]  # further subnets of each zone that would do


def init_values(options: InitOptions) -> InitValues:
    """Put together what is given and what the account has."""
    from ..facts.zones import region_of_zone

    template, vpc_id = options.template.value, options.vpc_id
    of_hub = template == HUGGING_FACE
    if (options.model_data and of_hub) or (options.model and not of_hub):
        raise typer.BadParameter("--model goes with hugging-face, --model-data with the others")
    zones = _listed(options.zones)
    account = _account(options, zones)
    region = options.region or (zones and region_of_zone(zones[0])) or (account and account.region)
    subnets, others = _subnets(options, zones, account)
    if not zones:
        zones = list(subnets) if vpc_id or not account else _first_zones(account)
    account_id = options.account or (account.account_id() if account else None)
    needed = {
        "--model" if of_hub else "--model-data": options.model or options.model_data,
        "--region": region,
        "--zones": zones,
    }
    if vpc_id:  # is looked up, in an account that is known in a pull request too
        needed["--account"] = account_id
        if _by_id(zones):
            needed["--subnets"] = list(subnets)
    if missing := [option for option, value in needed.items() if not value]:
        raise typer.BadParameter(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
            + ("" if account else " With credentials and boto3 more is found.")
        )
    return InitValues(
        template,
        options.name or NAMES[template],
        str(options.model or options.model_data),
        str(region),
        zones,
        bool(options.zones or vpc_id),
        account_id,
        vpc_id,
        {zone: subnets[zone] for zone in zones if zone in subnets},
        others,
    )


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _by_id(zones: Sequence[str]) -> bool:
    return any("-az" in zone for zone in zones)


def _account(options: InitOptions, zones: Sequence[str]) -> Account | None:
    """The account of the credentials, where boto3, credentials and a region are there."""
    try:
        from ..account.calls import Account
        from ..account.sessions import open_clients
        from ..facts.zones import region_of_zone
    except ModuleNotFoundError:
        if options.profile:
            raise
        return None
    usual = (region_of_zone(zones[0]) if zones else None) or os.environ.get("CDK_DEFAULT_REGION")
    try:
        client, region = open_clients(options.profile, options.region, usual)
        account = Account(client, region)
        account.account_id()
    except LowLatencyEndpointError:
        if options.profile:
            raise
        return None
    return account


def _first_zones(account: Account) -> list[str]:
    from ..account.network import describe_zones

    with suppress(LowLatencyEndpointError):
        found = [
            zone
            for zone in describe_zones(account)
            if zone.get("ZoneType", "availability-zone") == "availability-zone"
        ]
        return sorted(zone["ZoneId"] for zone in found)[:_LEAST_ZONES]
    return []


def _subnets(
    options: InitOptions, zones: Sequence[str], account: Account | None
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The subnet of each zone: as given, else the one with the most room and no internet gateway."""
    if options.vpc_id is None:
        if options.subnets:
            raise typer.BadParameter("--subnets goes with --vpc-id")
        return {}, {}
    if options.subnets:
        given = _listed(options.subnets)
        if len(given) != len(zones):
            raise typer.BadParameter("--subnets needs --zones, and one subnet for each of them")
        return dict(zip(zones, given, strict=True)), {}
    if account is None:
        return {}, {}
    from ..account.network import route_table, subnets_of_vpc, way_out

    try:
        found = subnets_of_vpc(account, options.vpc_id)
        private = [
            each for each in found if way_out(route_table(account, each)) != "internet gateway"
        ]
    except LowLatencyEndpointError:
        return {}, {}
    if not found:
        raise typer.BadParameter(
            f"{options.vpc_id} has no subnets in {account.region}, or is not there"
        )
    in_zone: dict[str, list[Mapping[str, Any]]] = {}
    key = "AvailabilityZone" if zones and not _by_id(zones) else "AvailabilityZoneId"
    for each in sorted(private, key=lambda one: -int(one.get("AvailableIpAddressCount", 0))):
        in_zone.setdefault(each[key], []).append(each)
    wanted = [zone for zone in (zones or sorted(in_zone)) if zone in in_zone]
    return (
        {zone: str(in_zone[zone][0]["SubnetId"]) for zone in wanted},
        {zone: [str(each["SubnetId"]) for each in in_zone[zone][1:]] for zone in wanted},
    )
