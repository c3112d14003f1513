"""What shows once the plan is made, in settings that are sound otherwise, each with its place."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ..errors import ConfigurationError
from ..errors.findings import Finding, Place, breaches, finding
from ..errors.opened_files import opened
from ..facts.images import check_image_folder
from ..facts.rules import ASSET_IS_ARCHIVE, NOTHING_TO_MEET, SCALED_VARIANTS_ONLY
from ..facts.subnets import (
    LARGEST_SUBNET,
    SUBNET_HOLDS_FLEET,
    check_fleets_fit_existing,
    network_blocks,
)
from ..facts.warm_up_rules import PAYLOAD_BYTES, PAYLOAD_READABLE
from ..plan.pinned_model import (
    CONTEXT_LENGTH,
    FILE_TOO_LARGE,
    LICENSE,
    LOCK_EDITED,
    LOCK_FILE,
    NOT_PINNED,
    OWN_CODE,
    SERVER,
    TOO_MANY_FILES,
)
from ..plan.plan import Plan
from .endpoint import (
    EndpointSettings,
    FurtherSettings,
    all_containers,
    further_variants,
    instances_in_update,
)
from .stack import Settings
from .variant_plans import images_of, plan_endpoint, plan_further_variant, planned_variants

#: Input of the plan -> setting of the endpoint that holds it.
_PLACES: dict[str, Place] = {
    "instance_type": ("instance_type",),
    "instance_pools": ("instance_pools",),
    "inference_ami": ("inference_ami",),
    "routing": ("routing",),
    "instances.min": ("instances", "min"),
    "instances.initial": ("instances", "initial"),
    "schedule": ("scaling", "schedule"),
    "steps": ("scaling", "steps"),
    "tps_per_instance": ("tps_per_instance",),
    "concurrency_per_instance": ("concurrency_per_instance",),
    "tokens": ("tokens",),
    "streaming": ("streaming",),
    **{f"itl_{each}": ("latency", f"itl_{each}") for each in ("p50", "p90", "p95", "p99")},
    "safety_factor": ("safety_factor",),
    "keep_counts": ("scaling", "keep_counts"),
}


#: What is wrong with a model of the Hub -> setting below hugging_face that says it.
_PLACES_OF_HUB: dict[str, Place] = {
    LOCK_FILE.code: ("lock",),
    LOCK_EDITED.code: ("lock",),
    NOT_PINNED.code: ("model",),
    FILE_TOO_LARGE.code: ("model",),
    TOO_MANY_FILES.code: ("model",),
    LICENSE.code: ("accept_license",),
    CONTEXT_LENGTH.code: ("context_length",),
    OWN_CODE.code: ("trust_remote_code",),
    SERVER.code: ("server",),
}


def plan_checks(settings: Settings, *, files: bool = True) -> Iterator[Finding]:
    """What planning refuses; ``files``: whether the files that settings name can be looked at."""
    plans: dict[str, Plan] = {}
    sound = True
    for key, endpoint in settings.endpoints.items():
        try:
            plans[key] = plan_endpoint(settings, key)
        except ConfigurationError as error:
            sound = False
            yield ("endpoints", key, *_place(error, endpoint)), error
            continue
        for variant in further_variants(endpoint):
            try:
                plan_further_variant(settings, key, variant)
            except ConfigurationError as error:
                sound = False
                below = _place(error, variant.settings)
                yield ("endpoints", key, *variant.place, *below), error
        yield from _alarms(settings, key, plans[key])
        if files:
            for place, missing in _files(endpoint):
                yield ("endpoints", key, *place), missing
    if sound:
        yield from _room(settings)


def _place(error: ConfigurationError, stated: EndpointSettings | FurtherSettings) -> Place:
    """The setting that an error of the plan is about, below the endpoint's or the variant's."""
    if error.code == SUBNET_HOLDS_FLEET.code:
        return ("instances", "max")
    if error.where == "hugging_face" or error.code in _PLACES_OF_HUB:
        return ("hugging_face", *_PLACES_OF_HUB.get(error.code, ()))
    places = {
        **_PLACES,
        **{
            f"images[{place}]": ("containers", index, "image")
            for place, index in enumerate(images_of(stated.containers))
        },
        **{
            f"schedule[{index}]": ("scaling", "schedule", index)
            for index in range(len(stated.scaling.schedule if stated.scaling else ()))
        },
    }
    found = places.get(error.where, ())
    if found and isinstance(stated, FurtherSettings) and not getattr(stated, str(found[0])):
        return ()  # the first variant's, which is sound for that one
    return found


def _alarms(settings: Settings, key: str, plan: Plan) -> Iterator[Finding]:
    """What alarms and objectives rest on is there: instances to start, a threshold to meet."""
    alarms = settings.endpoints[key].alarms
    if alarms.capacity_at_maximum is True and plan.scaling is None:
        yield finding(
            SCALED_VARIANTS_ONLY,
            "endpoints",
            key,
            "alarms",
            "capacity_at_maximum",
            got="true on an endpoint that does not scale",
            allowed="false, or no such line",
            fix="Remove the line, or let the endpoint scale: with throughput, "
            "and a maximum above the minimum.",
        )
    planned = alarms.model_latency == "planned" and not plan.thresholds("ModelLatency")
    if alarms.service_level_objective is not None and planned:
        yield finding(
            NOTHING_TO_MEET,
            *("endpoints", key, "alarms", "service_level_objective"),
            got="no threshold of ModelLatency",
            allowed="an objective with model_latency",
        )


def _files(endpoint: EndpointSettings) -> Iterator[Finding]:
    """What is built, uploaded and sent is there, and is what it should be."""
    for where, container in all_containers(endpoint):
        image, data = container.image, container.data
        if image.asset:
            yield from breaches(
                (*where, "image", "file" if image.file else "asset"),
                check_image_folder,
                image.asset,
                image.file,
            )
        if data and data.asset and not data.asset.is_file():
            yield finding(
                ASSET_IS_ARCHIVE,
                *where,
                "data",
                "asset",
                got=str(data.asset),
                allowed="one .tar.gz file",
            )
    sent = endpoint.warm_up.payloads if endpoint.warm_up else ()
    for index, file in enumerate(each.file for each in sent):
        if file is None:
            continue
        several = (index,) if len(sent) > 1 else ()
        place: Place = ("warm_up", "payload", *several, "file")
        try:
            with opened(file) as payload:
                size = payload.seek(0, io.SEEK_END)
        except OSError as problem:
            yield (
                place,
                PAYLOAD_READABLE.error(
                    got=f"{file} ({problem.strerror})", allowed="a readable file"
                ),
            )
        else:
            yield from breaches(place, PAYLOAD_BYTES.check, size)


def _room(settings: Settings) -> Iterator[Finding]:
    """The subnets have room for all fleets."""
    variants = list(planned_variants(settings))
    zones, network = settings.client_zones.zones, settings.network
    together = sum(variant.plan.fleet_with_addresses for variant in variants)
    largest = max(variants, key=lambda variant: variant.plan.fleet_with_addresses)
    fleet: Place = (*largest.place, "instances", "max")
    if network.vpc_id:
        # How large its subnets are shows when it is looked up; none is larger than the largest.
        in_update = sum(
            instances_in_update(variant.plan.fleet_with_addresses, settings.endpoints[variant.key])
            for variant in variants
        )
        yield from breaches(
            fleet, check_fleets_fit_existing, [LARGEST_SUBNET] * len(zones), together, in_update
        )
        return
    place: Place = fleet
    for name in ("subnet_prefix_length", "cidr"):
        if getattr(network, name) is not None:
            place = ("network", name)
            break
    yield from breaches(
        place, network_blocks, network.cidr, zones, together, network.subnet_prefix_length
    )
