"""RAM and EC2: subnets that an account shares, and what the participants see of their VPC and may do.

moto knows accounts and resource shares, but with a share nothing is shared. All accounts are in one
organization here, and have the same names of zones.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from moto.ec2.models import ec2_backends
from moto.ec2.responses._base_response import EC2BaseResponse
from moto.ram.exceptions import UnknownResourceException
from moto.ram.models import ResourceAccessManagerBackend, ram_backends
from moto.ram.responses import ResourceAccessManagerResponse
from moto.ram.urls import url_paths
from werkzeug.exceptions import Forbidden

from ..admission import error_xml
from ..connections import ACCOUNT
from ..resources.calls import without
from .replacing import around

_TABLE = yaml.safe_load(Path(__file__).with_name("shared_vpcs.yaml").read_text())
_BY_OTHER_KEYS = {"groups": "vpc_id", "subnets": "availability_zone"}
_ID = re.compile(r'"([a-z]+-[0-9a-f]{8,17})"')


@around(EC2BaseResponse, "_authenticate_and_authorize_normal_action")
def refuse_participant(original: Callable[..., None], self: Any, resource: str) -> None:
    """Refuse what changes an owner's things, or uses them in another way than a participant may.

    The words: https://github.com/ekristen/aws-nuke/issues/497
    """
    operation, theirs = self._get_action(), show(self.ec2_backend)
    use, request = _TABLE["uses"].get(operation, {}), without(self.params, *_TABLE["tells"])
    if "own" not in use or request.get(use["own"]):
        request = without(request, use.get("named"))
    named = theirs.intersection(_ID.findall(json.dumps(request, default=str)))
    if named and not operation.startswith(tuple(_TABLE["reads"])):
        text = (
            f"You are not authorized to perform {operation} operation. A subnet in this vpc is "
            "shared but the provided object is not owned by you"
        )
        raise Forbidden(error_xml("ec2", "UnauthorizedOperation", text).decode())
    original(self, resource)


class _Shown:
    """What a participant sees of a thing of the owner's, whose tags it does not see."""

    id: str
    _owner: str

    @property
    def owner_id(self) -> str:
        return self._owner


def show(backend: Any) -> set[str]:
    """Show a participant what it may see of the VPCs that are shared with it.

    Gives the IDs of all that the owners have in those, seen or not.
    """
    shared = {subnet.id: subnet for subnet in _shared_with(backend)}
    theirs, seen = set(), set()
    for register, thing in _owned(
        {subnet.vpc_id: subnet.ec2_backend for subnet in shared.values()}
    ):
        theirs.add(thing.id)
        if register in _TABLE["seen"] and (register != "subnets" or thing.id in shared):
            seen.add(thing.id)
            shown = copy.copy(thing)
            shown.__class__ = type("Shown", (_Shown, type(thing)), {})
            shown._owner, shown.ec2_backend = thing.owner_id, backend
            kept = getattr(backend, register)
            key = _BY_OTHER_KEYS.get(register)
            (kept[getattr(thing, key)] if key else kept)[thing.id] = shown
    for register in _TABLE["seen"]:
        for things in _registered(backend, register):
            for gone in [t.id for t in list(things.values()) if isinstance(t, _Shown)]:
                if gone not in seen:
                    del things[gone]
    return theirs


def _shared_with(backend: Any) -> Iterator[Any]:
    """Give the subnets that other accounts share with a participant."""
    for owner in {*ram_backends} - {backend.account_id}:
        for share in ram_backends[owner][backend.region_name].resource_shares:
            if share.status == "ACTIVE" and backend.account_id in share.principals:
                for subnets in _registered(ec2_backends[owner][backend.region_name], "subnets"):
                    of_zone = list(subnets.values())
                    yield from (s for s in of_zone if s.arn in share.resource_arns)


def _owned(vpcs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give what the owners of VPCs have in them, each with the name of its register."""
    for owner in set(vpcs.values()):
        for register in (*_TABLE["seen"], *_TABLE["hidden"]):
            for things in _registered(owner, register):
                within = [thing for thing in list(things.values()) if _vpc_of(thing) in vpcs]
                yield from ((register, thing) for thing in within)


def _registered(backend: Any, register: str) -> list[dict[str, Any]]:
    """Give a register of moto's by ID, in parts where it has another key before."""
    kept = getattr(backend, register)
    return list(kept.values()) if register in _BY_OTHER_KEYS else [kept]


def _vpc_of(thing: Any) -> str:
    holder = getattr(thing, "vpc", None) or getattr(thing, "subnet", None) or thing
    return str(getattr(holder, "vpc_id", None) or holder.id)


@around(ResourceAccessManagerBackend, "create_resource_share", "delete_resource_share")
def change_shares(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Show what is shared, or is not any more, to those who have asked for nothing since."""
    answer = original(self, *given, **named)
    _show_all(self.region_name)
    return answer


def _show_all(region: str) -> None:
    for account in {*ec2_backends, ACCOUNT}:
        show(ec2_backends[account][region])


def _associate(self: Any) -> str:
    """Add principals and resources to a share, or take them out: moto does neither."""
    arn, adds = self._get_param("resourceShareArn"), self._get_action().startswith("Associate")
    shares = {share.arn: share for share in self.ram_backend.resource_shares}
    if arn not in shares:
        raise UnknownResourceException(f"ResourceShare {arn} could not be found.")
    parts = {"principals": shares[arn].principals, "resourceArns": shares[arn].resource_arns}
    told = []
    for name, held in parts.items():
        for entity in self._get_param(name, []):
            (held.append if adds else held.remove)(entity)
            kind = "PRINCIPAL" if name == "principals" else "RESOURCE"
            told.append(
                {"resourceShareArn": arn, "associatedEntity": entity, "associationType": kind}
            )
    _show_all(self.region)
    return json.dumps({"resourceShareAssociations": told})


for _name in ("associate", "disassociate"):
    setattr(ResourceAccessManagerResponse, f"{_name}_resource_share", _associate)
    url_paths[f"{{0}}/{_name}resourceshare$"] = ResourceAccessManagerResponse.dispatch
