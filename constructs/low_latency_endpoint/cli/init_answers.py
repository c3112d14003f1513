"""What ``low-latency init`` has to know: given, found in the account, asked, or listed as missing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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


@dataclass
class Answers:
    """What the files say.

    Attributes
    ----------
    zones : list of str
        IDs, or names.
    subnets : dict of str to str
        The existing VPC's subnet of each zone; empty where they are looked up by name.
    others : dict of str to list of str
        Further subnets of each zone that would do.
    zones_are_said : bool
        Whether somebody said where the callers run.
    """

    template: str
    name: str
    model_data: str
    """In S3; with the template of the Hub, the model's name there."""
    region: str
    zones: list[str]
    account: str | None = None
    vpc_id: str | None = None
    subnets: dict[str, str] = field(default_factory=dict)
    others: dict[str, list[str]] = field(default_factory=dict)
    zones_are_said: bool = True


def answers(options: InitOptions, *, ask: bool) -> Answers:
    """Put together what is known, and ask for the rest.

    Raises
    ------
    typer.BadParameter
        With all options that are missing, where nobody can be asked.
    """
    from ..plan.zones import region_of_zone

    template = options.template.value
    name = options.name or NAMES[template]
    zones = _listed(options.zones)
    account = _account(options, zones)
    missing: dict[str, str] = {}

    def asked(option: str, given: str | None, question: str, default: str | None = None) -> str:
        if given or (default and not ask):
            return str(given or default)
        if ask:
            return str(typer.prompt(question, default=default)).strip()
        missing[option] = question
        return ""

    of_hub = template == HUGGING_FACE
    if (options.model_data and of_hub) or (options.model and not of_hub):
        raise typer.BadParameter("--model goes with hugging-face, --model-data with the others")
    model_data = asked(
        "--model" if of_hub else "--model-data",
        options.model or options.model_data,
        _QUESTIONS[template],
    )
    known = options.region or (zones and region_of_zone(zones[0])) or (account and account.region)
    region = asked("--region", known or None, "Region, such as us-east-1")
    vpc_id = options.vpc_id
    if vpc_id is None and ask and account is not None:
        vpc_id = _chosen_vpc(account)
    subnets, others = _subnets(options, zones, vpc_id, account)
    if not zones and subnets:
        zones = list(subnets)
    if not zones:
        zones = _listed(
            asked(
                "--zones",
                None,
                "Zones of the callers, two or more, IDs such as use1-az1,use1-az2",
                ",".join(_first_zones(account)) if account and not vpc_id else None,
            )
        )
    if vpc_id and not subnets and _by_id(zones):
        wanted = asked("--subnets", options.subnets, f"Subnets of {vpc_id} in {', '.join(zones)}")
        subnets = dict(zip(zones, _listed(wanted), strict=False))
    account_id = options.account or (account.account_id() if account else None)
    if vpc_id:  # is looked up, in an account that is known in a pull request too
        account_id = asked("--account", account_id, f"Account of {vpc_id}, twelve digits")
    if missing:
        raise typer.BadParameter(
            "nobody can be asked here, and these are not known: "
            + "; ".join(f"{option} ({what})" for option, what in missing.items())
            + ("" if account else ". With credentials and boto3 more is found.")
        )
    return Answers(
        template,
        name,
        model_data,
        region,
        zones,
        account_id,
        vpc_id,
        {zone: subnets[zone] for zone in zones if zone in subnets},
        others,
        zones_are_said=bool(options.zones or vpc_id or ask),
    )


_QUESTIONS = {
    "text-classification": "The packed model in S3, such as s3://my-bucket/model.tar.gz",
    "language-model": "The prefix of the model's files in S3, such as s3://my-bucket/qwen/",
    HUGGING_FACE: "The model's name on the Hub, such as Qwen/Qwen3-8B",
    "inferentia2": "The packed model, compiled for Neuron, in S3, such as s3://my-bucket/m.tar.gz",
}


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _by_id(zones: Sequence[str]) -> bool:
    return any("-az" in zone for zone in zones)


def _account(options: InitOptions, zones: Sequence[str]) -> Account | None:
    """The account of the credentials, where boto3, credentials and a region are there."""
    try:
        from ..account.calls import Account
        from ..account.sessions import open_clients
        from ..plan.zones import region_of_zone
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


def _chosen_vpc(account: Account) -> str | None:
    from ..account.network import vpcs

    with suppress(LowLatencyEndpointError):
        found = vpcs(account)
        for vpc in found:
            names = [tag["Value"] for tag in vpc.get("Tags", ()) if tag["Key"] == "Name"]
            typer.echo(" ".join(["  ", vpc["VpcId"], vpc["CidrBlock"], *names]))
        if found:
            answer = typer.prompt("The VPC that the callers run in, or new", default="new")
            return None if answer.strip() == "new" else str(answer).strip()
    return None


def _subnets(
    options: InitOptions, zones: Sequence[str], vpc_id: str | None, account: Account | None
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The subnet of each zone: as given, else the one with the most room and no internet gateway."""
    if vpc_id is None:
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
        found = subnets_of_vpc(account, vpc_id)
        private = [
            each for each in found if way_out(route_table(account, each)) != "internet gateway"
        ]
    except LowLatencyEndpointError:
        return {}, {}
    if not found:
        raise typer.BadParameter(f"{vpc_id} has no subnets in {account.region}, or is not there")
    in_zone: dict[str, list[Mapping[str, Any]]] = {}
    key = "AvailabilityZone" if zones and not _by_id(zones) else "AvailabilityZoneId"
    for each in sorted(private, key=lambda one: -int(one.get("AvailableIpAddressCount", 0))):
        in_zone.setdefault(each[key], []).append(each)
    wanted = [zone for zone in (zones or sorted(in_zone)) if zone in in_zone]
    return (
        {zone: str(in_zone[zone][0]["SubnetId"]) for zone in wanted},
        {zone: [str(each["SubnetId"]) for each in in_zone[zone][1:]] for zone in wanted},
    )
