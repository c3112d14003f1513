"""What a plan starts from, checked once, so that the rules can take it at its word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import rule
from .decisions import PlanWarning
from .durations import seconds_of
from .images import check_ami_runs_on, check_image_runs_on, needed_inference_ami
from .instance_types import InstanceFacts, instance_facts
from .latency_target import LatencyTarget
from .limits import (
    CLIENT_ZONE_COUNT,
    COOLDOWN_SECONDS,
    GUIDE,
    IMAGE_URI,
    INFERENCE_AMI,
    INSTANCE_TYPE,
    SCALING_TARGET,
    ZONE_ID,
    ZONE_NAME,
    Range,
)
from .routing import check_routing
from .rules import SCALING_IS_OFF, ZONE_NAMED_TWICE
from .throughput import MeasuredThroughput
from .zones import check_zones_in_region, region_of_zone

__all__ = ["PlanInputs", "checked_inputs"]

MODEL_BODY_BYTES = 6_291_456  # the API model's maximum
LARGEST_BODY_BYTES = 25 * 1024 * 1024  # the guide's "25 MB", read generously

LATENCY_KIND = rule(
    "LLE804", "the latency target is of another kind",
    mend="Pass LatencyTarget(p99=Duration.millis(200)), or leave it out.",
)
THROUGHPUT_KIND = rule(
    "LLE805", "the measured throughput is of another kind",
    mend="Pass MeasuredThroughput(peak_tps=..., tps_per_instance=...), or leave it out.",
)
LIST_KIND = rule(
    "LLE806", "a list of texts is expected",
    mend="Pass a list, even for one item: [\"use1-az1\", \"use1-az2\"].",
)
PAYLOAD = Range(
    rule("LLE820", "the payload is larger than SageMaker takes",
         mend="Send a reference to the data in S3, compress it, or use an asynchronous endpoint.",
         source=GUIDE + "deploy-model-options.html"),
    "the payload", 0, LARGEST_BODY_BYTES, "bytes",
)
OVERHEAD_SHARE = Range(
    rule("LLE821", "the share of the target kept for overhead is out of range",
         mend="Give the share of the latency target that network and SageMaker's overhead may use.",
         source=""),
    "the overhead share", 0.01, 0.9, "", False,
)
WARM_UP_REQUESTS = Range(
    rule("LLE822", "the number of warm-up requests is out of range",
         mend="Give how many requests the warm-up sends after a deploy; 0 leaves it out.",
         source=""),
    "the number of warm-up requests", 0, 1_000_000, "requests",
)

# Words in an image's name that stand for servers of generative models
_GENERATIVE = ("vllm", "sglang", "tgi", "-lmi", "tensorrtllm", "llama", "llm")


@dataclass(frozen=True)
class PlanInputs:
    """Checked inputs of :func:`.latency_plan.make_plan`; ``None`` means that the rule decides."""

    zones: tuple[str, ...]
    instance_type: str
    facts: InstanceFacts | None
    latency: LatencyTarget | None
    throughput: MeasuredThroughput | None
    images: tuple[str, ...]
    inference_ami: str | None
    needed_ami: str | None
    generative: bool
    streaming: bool
    routing: str | None
    min_instances: int | None
    initial_instances: int | None
    max_instances: int | None
    scaling: bool
    max_concurrency: float | None
    scale_out_seconds: int | None
    scale_in_seconds: int | None
    overhead_share: float | None
    warm_up_requests: int | None
    payload_bytes: int | None

    @property
    def response_limit_seconds(self) -> int:
        """How long SageMaker waits for a response: 60 s, or 8 minutes of streaming."""
        return 480 if self.streaming else 60


def checked_inputs(
    *,
    client_zones: Sequence[str],
    instance_type: str,
    latency: LatencyTarget | None,
    throughput: MeasuredThroughput | None,
    images: Sequence[str],
    inference_ami: str | None,
    routing: str | None,
    prefix_length: int | None,
    concurrency_threshold: int | None,
    min_instances: int | None,
    initial_instances: int | None,
    max_instances: int | None,
    scaling: bool,
    max_concurrency_per_instance: float | None,
    scale_out_cooldown: Any,
    scale_in_cooldown: Any,
    overhead_share: float | None,
    warm_up_requests: int | None,
    payload_bytes: int | None,
    streaming: bool,
    generative: bool | None,
) -> tuple[PlanInputs, list[PlanWarning]]:
    """The inputs after every check that needs no decision, and the warnings met on the way."""
    zones = _checked_zones(client_zones)
    INSTANCE_TYPE.check(instance_type, "instance_type")
    if latency is not None and not isinstance(latency, LatencyTarget):
        raise LATENCY_KIND.error(got=repr(latency), allowed="a LatencyTarget", where="latency")
    if throughput is not None and not isinstance(throughput, MeasuredThroughput):
        raise THROUGHPUT_KIND.error(got=repr(throughput), allowed="a MeasuredThroughput",
                                    where="throughput")
    if routing is not None or prefix_length is not None or concurrency_threshold is not None:
        check_routing(routing or "RANDOM", prefix_length=prefix_length,
                      concurrency_threshold=concurrency_threshold, where="routing")
    if not scaling:
        _check_nothing_scales(
            max_concurrency_per_instance=max_concurrency_per_instance,
            scale_out_cooldown=scale_out_cooldown, scale_in_cooldown=scale_in_cooldown,
        )
    for index, image in enumerate(_listed(images, "images")):
        IMAGE_URI.check(image, f"images[{index}]")
    if inference_ami is not None and not isinstance(inference_ami, str):
        raise INFERENCE_AMI.rule.error(got=repr(inference_ami), allowed=INFERENCE_AMI.allowed,
                                       where="inference_ami")
    needed_ami = needed_inference_ami([(images, instance_type)])
    warnings = _image_warnings(images, instance_type, inference_ami or needed_ami)
    facts = instance_facts(instance_type)
    if facts is None:
        warnings.insert(0, PlanWarning(
            "unknown-instance-type",
            f"{instance_type} is not in this version's table: nothing about its processors, "
            "accelerators and storage could be checked",
        ))
    elif facts.note and facts.vcpus and "network card" not in facts.note:
        warnings.append(PlanWarning(
            "uncertain-instance-type",
            f"the facts of {instance_type} are less certain: {facts.note}",
        ))
    inputs = PlanInputs(
        zones=zones,
        instance_type=instance_type,
        facts=facts,
        latency=latency,
        throughput=throughput,
        images=tuple(images),
        inference_ami=inference_ami,
        needed_ami=needed_ami,
        generative=_is_generative(images) if generative is None else generative,
        streaming=streaming,
        routing=routing,
        min_instances=min_instances,
        initial_instances=initial_instances,
        max_instances=max_instances,
        scaling=scaling,
        max_concurrency=_concurrency(max_concurrency_per_instance),
        scale_out_seconds=_cooldown(scale_out_cooldown, "scale_out_cooldown"),
        scale_in_seconds=_cooldown(scale_in_cooldown, "scale_in_cooldown"),
        overhead_share=_optional(OVERHEAD_SHARE, overhead_share, "overhead_share"),
        warm_up_requests=_optional(WARM_UP_REQUESTS, warm_up_requests, "warm_up_requests"),
        payload_bytes=_optional(PAYLOAD, payload_bytes, "payload_bytes"),
    )
    return inputs, warnings


def _check_nothing_scales(**stated: Any) -> None:
    """What a policy would do, where there is none, would be dropped in silence."""
    for name, value in stated.items():
        if value is not None:
            raise SCALING_IS_OFF.error(got=f"scaling=False with {name}",
                                       allowed=f"scaling=False without {name}", where=name)


def _concurrency(value: float | None) -> float | None:
    # The CDK's number tokens are doubles near -1.9e289; what they stand for is not known yet.
    if isinstance(value, float) and value < -1e280:
        return value
    return None if value is None else SCALING_TARGET.check(value, "max_concurrency_per_instance")


def _listed(value: Any, where: str) -> tuple[Any, ...]:
    """The items; a lone text would otherwise pass as a list of letters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise LIST_KIND.error(got=repr(value), allowed="a list or tuple", where=where)
    return tuple(value)


def _checked_zones(client_zones: Sequence[str]) -> tuple[str, ...]:
    zones = _listed(client_zones, "client_zones")
    CLIENT_ZONE_COUNT.check(len(zones), "client_zones")
    for index, zone in enumerate(zones):
        where = f"client_zones[{index}]"
        token = isinstance(zone, str) and "${Token[" in zone
        if not (token or ZONE_ID.holds(zone) or ZONE_NAME.holds(zone)):
            raise ZONE_ID.rule.error(
                got=repr(zone), where=where,
                allowed="a zone ID such as use1-az4, or a zone name such as us-east-1a",
            )
    if len(set(zones)) < len(zones):
        raise ZONE_NAMED_TWICE.error(got=", ".join(zones), allowed="each zone once",
                                     where="client_zones")
    regions = [region for region in map(region_of_zone, zones) if region]
    if regions:
        check_zones_in_region(zones, regions[0], "client_zones")
    return zones


def _image_warnings(images: Sequence[str], instance_type: str,
                    ami: str | None) -> list[PlanWarning]:
    found = []
    if ami is not None and not INFERENCE_AMI.holds(ami):
        found.append(PlanWarning(
            "unknown-inference-ami", f"the inference AMI {ami!r} is not in this version's list"
        ))
    elif ami is not None:
        check_ami_runs_on(ami, instance_type, "inference_ami")
    for index, image in enumerate(images):
        where = f"images[{index}]"
        found += [
            PlanWarning(f"image-{index}-{number}", text)
            for number, text in enumerate(check_image_runs_on(image, instance_type, ami, where))
        ]
    return found


def _is_generative(images: Sequence[str]) -> bool:
    names = [image.rpartition("/")[2].lower() for image in images]
    return any(word in name for name in names for word in _GENERATIVE)


def _cooldown(value: Any, where: str) -> int | None:
    if value is None:
        return None
    return int(COOLDOWN_SECONDS.check(seconds_of(value, where), where))


def _optional(limit: Range, value: Any, where: str) -> Any:
    return None if value is None else limit.check(value, where)
