"""Route 53: moto takes record sets that exclude each other, and a reference twice.

Source: API reference, ResourceRecordSet and CreateHostedZone. The words are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moto.route53.exceptions import ResourceRecordAlreadyExists, Route53ClientError
from moto.route53.models import Route53Backend

from .replacing import around

_ROUTING = ("Weight", "Region", "Failover", "GeoLocation", "MultiValueAnswer")
"""What a record set of each routing policy has that moto keeps."""
_UNIQUE = ("Region", "Failover", "GeoLocation")
_MOST_WEIGHTED = 100
_Groups = dict[tuple[str, str], dict[str | None, Mapping[str, Any]]]
"""The record sets of each name and type, by their identifiers."""


@around(Route53Backend)
def create_hosted_zone(
    original: Callable[..., Any], self: Any, name: str, *rest: Any, **named: Any
) -> Any:
    """Refuse the reference of another zone."""
    reference = named.get("caller_reference")
    if reference and reference in {zone.caller_reference for zone in self.zones.values()}:
        words = f"A hosted zone has already been created with the specified caller reference {reference}."
        raise Route53ClientError("HostedZoneAlreadyExists", words)
    return original(self, name, *rest, **named)


@around(Route53Backend)
def change_resource_record_sets(
    original: Callable[..., Any], self: Any, zoneid: str, change_list: list[dict[str, Any]]
) -> Any:
    """Refuse changes after which record sets would exclude each other."""
    zone = self.get_hosted_zone(zoneid)
    groups = _groups_of(zone)
    changed = {_change(groups, change): change for change in change_list}
    for name, kind in changed:
        problems = [*_problems_of_group([*groups[name, kind].values()])]
        if kind == "CNAME" and name == _plain(zone.name) and groups[name, kind]:
            problems.append("a CNAME is not permitted at the apex of its zone")
        for problem in problems:
            words = f"RRSet with DNS name {name}., type {kind} cannot be created: {problem}"
            raise Route53ClientError("InvalidChangeBatch", words)
    return original(self, zoneid, change_list)


def _plain(name: str) -> str:
    return name.strip(".").lower()


def _groups_of(zone: Any) -> _Groups:
    groups: _Groups = {}
    for record in zone.rrsets:
        stated = {
            "SetIdentifier": record.set_identifier,
            "Weight": record.weight,
            "Region": record.region,
            "Failover": record.failover,
            "GeoLocation": record.geo_location,
            "MultiValueAnswer": record.multi_value_answer,
            "TTL": record.ttl,
        }
        group = groups.setdefault((_plain(record.name), record.type), {})
        group[record.set_identifier] = stated
    return groups


def _change(groups: _Groups, change: Mapping[str, Any]) -> tuple[str, str]:
    """Apply a change, and give the name and type that it is of."""
    stated = change["ResourceRecordSet"]
    key = (_plain(stated["Name"]), stated["Type"])
    group, identifier = groups.setdefault(key, {}), stated.get("SetIdentifier")
    if change["Action"] == "DELETE":
        group.pop(identifier, None)
        return key
    if change["Action"] == "CREATE" and identifier in group:
        raise ResourceRecordAlreadyExists(name=f"{key[0]}.", _type=key[1])
    group[identifier] = stated
    return key


def _problems_of_group(group: list[Mapping[str, Any]]) -> Iterator[str]:
    """Say why record sets of one name and type are not taken together."""
    policies = {_policy(stated) for stated in group}
    if len(policies) > 1:
        yield "other record sets of the name and type have another routing policy"
    for name in _UNIQUE:
        values = [str(stated[name]) for stated in group if stated.get(name)]
        if len(values) != len(set(values)):
            yield f"two have the same {name}"
    if policies == {"Weight"}:
        if len(group) > _MOST_WEIGHTED:
            yield f"there are more than {_MOST_WEIGHTED} weighted ones"
        if len({str(stated.get("TTL")) for stated in group}) > 1:
            yield "weighted ones have the same TTL"


def _policy(stated: Mapping[str, Any]) -> str:
    unknown = "other" if stated.get("SetIdentifier") else "simple"
    return next((name for name in _ROUTING if stated.get(name) is not None), unknown)
