"""What each setting that the endpoints share touches: the stack, the network, PrivateLink."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...facts.subnets import network_blocks
from ...options.option import Effect
from ..plan_report import fleet_with_addresses
from ..stack import Settings
from .claims import claims, same_place
from .endpoint_fields import PLANNED, PLANNED_BY_ZONES, Consequence, alone_changed, both_texts

_Shared = Callable[[Settings, Settings], Iterator[Consequence]]

MODELS_MOVE = "models name their subnets: a new model and endpoint configuration"
NEW_LINK = "the interface endpoint: connections through the old one end, and the zonal URLs change"


def subnet_blocks(settings: Settings) -> dict[str, str]:
    """The block of each zone's subnet in the stack's own VPC; empty in one that exists."""
    network = settings.network
    if network.vpc_id is not None:
        return {}
    return network_blocks(
        network.cidr,
        settings.client_zones.zones,
        fleet_with_addresses(settings),
        network.subnet_prefix_length,
    )


def both(before: Settings, after: Settings) -> tuple[str, ...]:
    """Keys of the endpoints that are there before and after."""
    return tuple(key for key in after.endpoints if key in before.endpoints)


def same_vpc(before: Settings, after: Settings) -> bool:
    """Whether the VPC stays: the same that exists, or the stack's own with the same range."""
    was, now = before.network, after.network
    return (was.vpc_id, was.cidr) == (now.vpc_id, now.cidr)


def subnets(before: Settings, after: Settings) -> Iterator[Consequence]:
    """What becomes of the subnets, and of the models in them."""
    if not same_vpc(before, after):
        yield from _vpc(before, after)
        return
    keys = both(before, after)
    old, new = subnet_blocks(before), subnet_blocks(after)
    zones = before.client_zones.zones, after.client_zones.zones
    moved = {zone: block for zone, block in new.items() if old.get(zone) != block}
    taken = [
        f"{block} of {zone} overlaps {there} of {owner}"
        for zone, block in moved.items()
        for owner, there in old.items()
        if ipaddress.IPv4Network(block).overlaps(ipaddress.IPv4Network(there))
    ]
    if taken:
        yield Consequence(
            Effect.REFUSED,
            "EC2 refuses the new subnets: CloudFormation makes them before it deletes the old "
            f"ones, and {taken[0]}; deploy it as another stack",
            keys,
        )
    elif any(zone in old for zone in moved):
        replaced = ", ".join(f"{zone} {old[zone]} -> {new[zone]}" for zone in moved if zone in old)
        yield Consequence(Effect.REPLACED, f"subnets: {replaced}; {MODELS_MOVE}", keys)
    listed = before.network.subnets != after.network.subnets
    if zones[0] != zones[1] or listed:
        gone = [zone for zone in zones[0] if zone not in zones[1]]
        if gone:
            yield Consequence(
                Effect.DELETED,
                f"what the stack has in {', '.join(gone)}, with the zonal URLs: callers that use "
                "those fail, and other callers there cross zones",
            )
        yield Consequence(Effect.DEPLOYMENT, MODELS_MOVE, keys)


def _vpc(before: Settings, after: Settings) -> Iterator[Consequence]:
    keys = both(before, after)
    if before.network.vpc_id is None:
        yield Consequence(
            Effect.REPLACED if after.network.vpc_id is None else Effect.DELETED,
            "the stack's VPC: callers in it lose the interface endpoint, and while anything else "
            "is left in it CloudFormation cannot delete it",
        )
    if before.private_link.interface_endpoint_id is None:
        yield Consequence(Effect.REPLACED, NEW_LINK)
    yield Consequence(Effect.DEPLOYMENT, f"into the other VPC; {MODELS_MOVE}", keys)


def _zones(before: Settings, after: Settings) -> Iterator[Consequence]:
    yield Consequence(Effect.IN_PLACE, "the interface endpoint's subnets")
    yield from subnets(before, after)
    for key in both(before, after):
        alone = alone_changed(before, key, ("client_zones",), after.client_zones)
        for name in PLANNED_BY_ZONES:
            planned = PLANNED[name]
            was, now = planned.of(before, key), planned.of(after, key)
            if was != now and (alone is None or planned.of(alone, key) != was):
                text = f"{key}, {planned.words} {both_texts(was, now)}"
                yield Consequence(planned.effect, text, (key,))


def _flow_log_role(before: Settings, after: Settings) -> Iterator[Consequence]:
    if after.network.vpc_id is None and after.network.flow_log:
        yield Consequence(Effect.REPLACED, _FLOW_LOG)


def _private_dns(before: Settings, after: Settings) -> Iterator[Consequence]:
    was, now = (settings.private_link.private_dns is not False for settings in (before, after))
    if now and not was:
        text = "from now on the VPC's callers reach it by SageMaker Runtime's own name"
        yield Consequence(Effect.IN_PLACE, text)
    elif was and not now:
        yield Consequence(
            Effect.DELETED,
            "private DNS: callers that use SageMaker Runtime's own name no longer reach it, and "
            "need the zonal URLs",
        )


def _callers(before: Settings, after: Settings) -> Iterator[Consequence]:
    was, now = (settings.private_link.allow_cidrs for settings in (before, after))
    own = {after.network.cidr} if after.network.vpc_id is None else {"the VPC's"}
    lost = sorted(set(was or own) - set(now or own))
    rules = "the rules of the security group"
    if lost:
        text = f"{rules}: callers in {', '.join(lost)} can no longer connect"
        yield Consequence(Effect.DELETED, text)
    elif set(was or own) != set(now or own):
        yield Consequence(Effect.IN_PLACE, rules)


def _interface_endpoint(before: Settings, after: Settings) -> Iterator[Consequence]:
    was, now = (settings.private_link.interface_endpoint_id for settings in (before, after))
    if was is None:
        yield Consequence(
            Effect.DELETED,
            "the stack's own interface endpoint: connections through it end, and callers come "
            "through the other one from then on",
        )
    elif now is None:
        yield Consequence(Effect.NEW, "an interface endpoint of the stack's own")
    else:
        yield Consequence(
            Effect.REPLACED, f"{was} by {now}: other zonal URLs, and {was} is no longer served"
        )


def _security_group(before: Settings, after: Settings) -> Iterator[Consequence]:
    was, now = (settings.private_link.security_group_id for settings in (before, after))
    if was is None:
        yield Consequence(Effect.NEW, f"the rules of {now}")
    else:
        text = f"the stack's rules of {was}: callers can no longer connect through that group"
        yield Consequence(Effect.DELETED, text)


def _streaming(before: Settings, after: Settings) -> Iterator[Consequence]:
    text = "the rules of the security group, and the interface endpoint's policy"
    if after.private_link.bidirectional_streaming:
        yield Consequence(Effect.IN_PLACE, text)
    else:
        yield Consequence(Effect.DELETED, f"{text}: callers that stream both ways fail")


def _owner(before: Settings, after: Settings) -> Iterator[Consequence]:
    text = "whose subnets the models' roles name, and who opens groups"
    yield Consequence(Effect.IN_PLACE, text)
    adopted = after.private_link.security_group_id
    if adopted and before.network.owner is None:
        yield Consequence(
            Effect.DELETED,
            f"the stack's rules of {adopted}: callers can no longer connect until its owner "
            "opens the group",
        )


def _hosted_zone(before: Settings, after: Settings) -> Iterator[Consequence]:
    was, now = (settings.private_link.hosted_zone_vpc_ids for settings in (before, after))
    lost = sorted(set(was) - set(now))
    if not was:
        yield Consequence(Effect.NEW, "a private hosted zone")
    elif lost:
        what = "the hosted zone's VPCs" if now else "the private hosted zone"
        yield Consequence(Effect.DELETED, f"{what}: callers in {', '.join(lost)} lose the name")
    else:
        yield Consequence(Effect.IN_PLACE, "the hosted zone's VPCs")


def _key(before: Settings, after: Settings) -> Iterator[Consequence]:
    yield Consequence(Effect.IN_PLACE, "the key of log groups, functions and dead letters")
    for key in both(before, after):
        now = after.endpoints[key]
        captured = any(
            group is not None and group.kms_key_arn is None
            for group in (now.data_capture, now.core_dump)
        )
        volume = PLANNED["volume_key"].of
        if captured or volume(before, key) != volume(after, key):
            yield Consequence(
                Effect.DEPLOYMENT,
                f"the key of {key}'s volumes, captured data or core dumps: a new endpoint "
                "configuration",
                (key,),
            )


def another_stack(before: Settings, after: Settings) -> bool:
    """Whether two files surely describe two stacks; what a profile decides may be the same."""
    return before.stack_name != after.stack_name or not same_place(before, after)


def _another_stack(before: Settings, after: Settings) -> Iterator[Consequence]:
    if not another_stack(before, after):
        yield Consequence(
            Effect.NOT_KNOWN,
            "the same stack only where the AWS CLI's profile says what the other file states",
        )
        return
    keys = both(before, after)
    theirs = set(claims(before))
    taken = [claim for claim in claims(after) if claim in theirs]
    if taken and same_place(before, after):
        yield Consequence(
            Effect.REFUSED,
            f"a stack {after.stack_name} beside {before.stack_name}, which has "
            f"{', '.join(map(str, taken))}",
            keys,
        )
    else:
        yield Consequence(
            Effect.NEW,
            "another stack, in which everything is made anew; "
            f"{before.stack_name} stays until you delete it",
            keys,
        )


def _always(effect: Effect, text: str) -> _Shared:
    return lambda before, after: iter([Consequence(effect, text)])


def _in_place(text: str) -> _Shared:
    return _always(Effect.IN_PLACE, text)


def _part(of: Callable[[Settings], Any], *, new: str, gone: str, replaced: str = "") -> _Shared:
    """Of something that the stack has, or has not."""

    def consequences(before: Settings, after: Settings) -> Iterator[Consequence]:
        was, now = of(before), of(after)
        if was and now and was != now:
            yield Consequence(Effect.REPLACED, replaced)
        elif was and not now:
            yield Consequence(Effect.DELETED, gone)
        elif now and not was:
            yield Consequence(Effect.NEW, new)

    return consequences


_POLICY = _in_place("the interface endpoint's policy")
_FLOW_LOG = "the flow log; callers see nothing of it"

#: By the setting's beginning; the longest that fits counts.
SHARED_FIELDS: Mapping[str, _Shared] = {
    "stack_name": _another_stack,
    "region": _another_stack,
    "account": _another_stack,
    "client_zones": _zones,
    "network.vpc_id": subnets,
    "network.owner": _owner,
    "network.subnets": subnets,
    "network.cidr": subnets,
    "network.subnet_prefix_length": subnets,
    "network.flow_logs": _part(
        lambda settings: settings.network.flow_log,
        new="a flow log",
        gone="the flow log, with its role and log group; callers see nothing of it",
        replaced=_FLOW_LOG,
    ),
    "network.s3_prefix_list": _in_place("the rules of the models' security group"),
    "network.narrow_s3": _in_place("the S3 endpoint's policy"),
    "network.s3_buckets": _in_place("the S3 endpoint's policy"),
    "private_link.interface_endpoint_id": _interface_endpoint,
    "private_link.security_group_id": _security_group,
    "private_link.allow_cidrs": _callers,
    "private_link.hosted_zone_vpc_ids": _hosted_zone,
    "private_link.fips": _always(
        Effect.REPLACED, f"{NEW_LINK}; callers need the other name of the service"
    ),
    "private_link.private_dns": _private_dns,
    "private_link.bidirectional_streaming": _streaming,
    "private_link.endpoint_policy": _POLICY,
    "private_link.narrow_policy": _POLICY,
    "private_link.openai": _POLICY,
    "private_link.sagemaker_api": _part(
        lambda settings: settings.private_link.sagemaker_api,
        new="an interface endpoint for the SageMaker API",
        gone="the interface endpoint for the SageMaker API: its callers lose it",
    ),
    "parameters": _part(
        lambda settings: settings.parameters,
        new="SSM parameters for callers",
        gone="the SSM parameters: callers that read them find none",
        replaced="the SSM parameters: callers that read the old names find none",
    ),
    "alarm_topic_arn": _in_place("whom the alarms notify"),
    "safeguards.kms_key_arn": _key,
    "safeguards.log_retention_days": _in_place("the log groups' retention"),
    "safeguards.function_role_arn": _in_place("the functions' roles"),
    "safeguards.flow_log_role_arn": _flow_log_role,
    "safeguards.function_subnet_ids": _in_place("the functions' subnets, and their roles"),
    "safeguards.function_security_group_ids": _in_place("the functions' security groups"),
    "safeguards.code_signing_config_arn": _in_place("the functions' code signing"),
    "safeguards.wait_for_interfaces": _in_place(
        "whether deleting the stack waits for SageMaker's network interfaces, or has to be repeated"
    ),
    "tags": _in_place("the tags"),
    "prices": _always(
        Effect.NOTHING, "prices change what the plan says of costs, and nothing of the stack"
    ),
}
