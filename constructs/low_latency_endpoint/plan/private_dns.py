"""What names callers use and what answers them, with private DNS, without, and where it is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import AWS_DOCS
from ..facts.zones import dns_suffix
from .decisions import Decision
from .plan import Plan

_PRIVATELINK = AWS_DOCS + "/sagemaker/latest/dg/realtime-endpoints-privatelink.html"
_NAMES = AWS_DOCS + "/vpc/latest/privatelink/privatelink-access-aws-services.html"

_ANSWERS = {
    True: "an interface endpoint in every client zone; by SageMaker's page private DNS answers "
    "with the caller's own zone, by PrivateLink's general page round robin",
    False: "an interface endpoint in every client zone, without private DNS: the runtime's own name "
    "does not lead to it. Callers use its own names: the zonal name of their zone, which answers "
    "with that zone alone, or the regional name, which answers with any zone",
    None: "an interface endpoint that exists, whose private DNS is not known here: with it callers "
    "use the runtime's own name, without it the interface endpoint's own names",
}
_NOTES = {
    True: "not seen on AWS: check what the name resolves to in each zone; the zonal DNS names "
    "hold callers to a zone in any case",
    False: "0 with the zonal names, 0 to 1 with the regional name. A settings file's stack has them "
    "in its outputs ZonalUrl and RegionalUrl",
    None: "low-latency verify reads whether it has private DNS; the zonal DNS names hold callers to "
    "a zone in any case",
}
_KEPT = {
    True: "AWS says that private DNS keeps an invocation in its zone, but not whether the routing "
    "strategy prefers it",
    False: "AWS says that private DNS keeps an invocation in its zone, but not whether calls by the "
    "interface endpoint's own names stay there, nor whether the routing strategy prefers a zone",
}
OWN_NAMES = "callers use its own names (outputs ZonalUrl and RegionalUrl), as private DNS is off"


def zone_hops(plan: Plan) -> Iterator[Decision[Any]]:
    """The expected changes of zone: to the interface endpoint, and from there to an instance."""
    request, zones = plan.request, len(plan.request.client_zones)
    answers = request.private_dns
    inputs = {"client zones": zones, "private DNS": "not known" if answers is None else answers}
    yield Decision(
        name="zone_hops_caller_to_interface_endpoint",
        value="0 to 1",
        unit="hops",
        rule=_ANSWERS[answers],
        inputs=inputs,
        source=_PRIVATELINK if answers else _NAMES,
        note=_NOTES[answers],
    )
    yield Decision(
        name="zone_hops_interface_endpoint_to_instance",
        value="0 to 1",
        unit="hops",
        rule=f"an instance in every client zone; {_KEPT[answers is not False]}",
        inputs={"minimum instances": plan.fleet.minimum, **inputs},
        source=_PRIVATELINK,
        note=f"if routing takes no account of zones, {1 - 1 / zones:.0%} of the requests "
        "change zone",
    )


def takeover(services: Sequence[str], region: str | None, *, narrow: bool | None) -> str:
    """What private DNS does to an existing VPC's other callers; ``narrow`` is None without a policy.

    ``services`` are those of the interface endpoints, such as ``sagemaker.runtime``; ``region`` is
    None where only the deployment knows it.
    """
    names = " and ".join(_own_name(service, region) for service in services)
    policy = {
        None: "",
        True: "Its policy refuses every other endpoint; narrow_policy=False lets the account's "
        "others through. ",
        False: "Its policy refuses roles and endpoints of other accounts; endpoint_policy=False "
        "lets them through. ",
    }[narrow]
    return (
        f"In this existing VPC, private DNS makes {names} resolve to this interface "
        "endpoint for every caller, including callers of other SageMaker endpoints. "
        "Its security group lets in only `callers` and the peers of allow_from(...); a settings "
        "file's lets in `private_link.allow_cidrs`, by default the VPC's range: "
        "calls of others time out. Callers in zones without one of its subnets may "
        f"not resolve the name at all. {policy}Let the VPC's callers in with "
        "allow_from(ec2.Peer.ipv4(<the VPC's range>)). Or set private_dns=False, and "
        "give this endpoint's callers its zonal URLs. private_dns=True confirms that "
        "this is intended. In a settings file these options stand under private_link, such as "
        "`private_link: {private_dns: true}`."
    )


def _own_name(service: str, region: str | None) -> str:
    """The name that private DNS answers, as far as it is known."""
    kind, label = service.split(".")
    suffix = dns_suffix(region) if region else "<suffix>"
    return f"{label}.{kind}.{region or '<region>'}.{suffix}"
