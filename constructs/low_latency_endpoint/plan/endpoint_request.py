"""What a plan starts from: one request, checked when it is made, whoever makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from ..errors import rule
from ..errors.frozen import dataclass
from ..facts.container_metrics import METRICS_OF_SERVER, server_of
from ..facts.images import check_ami_runs_on, check_image_runs_on, needed_inference_ami
from ..facts.instance_types import InstanceFacts, instance_facts, not_known
from ..facts.limits import (
    CLIENT_ZONE_COUNT,
    IMAGE_URI,
    INFERENCE_AMI,
    INSTANCE_TYPE,
    PAYLOAD,
    ROUTING_STRATEGY,
    ZONE_ID,
    ZONE_NAME,
    Range,
    number_range,
)
from ..facts.rules import ZONE_NAMED_TWICE
from ..facts.token_values import check_known, is_token
from ..facts.warm_up_rules import WARM_UP_REQUESTS
from ..facts.zones import check_zones_in_region, is_stand_in, region_of_zone
from ..options.instance_pools import PlannedPool, check_pools
from ..options.latency_target import LatencyTarget
from ..options.scaling import InstanceCounts, ScalingOptions, whole_seconds
from ..options.throughput import MeasuredThroughput
from ..options.token_traffic import TokenTraffic
from ..options.variant import RoutingStrategy
from .decisions import PlanWarning
from .decode_pace import check_itl
from .hub_serving import HubServing
from .scaling_pace import INSTANCE_SECONDS, start_floor
from .variant_shares import VariantShare

LATENCY_KIND = rule(
    "LLE804",
    "the latency target has the wrong type",
    fix="Pass LatencyTarget(p99=Duration.millis(200)), or leave it out.",
)
THROUGHPUT_KIND = rule(
    "LLE805",
    "the measured throughput has the wrong type",
    fix="Pass MeasuredThroughput(peak_tps=..., tps_per_instance=...), or leave it out.",
)
LIST_KIND = rule(
    "LLE806", "a list of texts is expected", fix='Pass a list, even for one item: ["use1-az1"].'
)
STREAM_NEEDED = rule(
    "LLE809",
    "an endpoint that does not stream its answers has no tokens to time or to plan",
    fix="Let it stream: leave streaming out, or state it as true. For whole answers state targets "
    "of the whole call (p99), and no tokens.",
)
TOKENS_KIND = rule(
    "LLE898",
    "the tokens have the wrong type",
    fix="Pass TokenTraffic(input=512, output=128), or leave them out.",
)
TOKENS_ABOVE_CONTEXT = rule(
    "LLE897",
    "prompt and answer are longer than the context that the server is given",
    fix="State shorter ones, or a longer context_length, on a type that has room for it.",
)
OVERHEAD_SHARE = number_range(
    "LLE821",
    "the share of the target kept for overhead",
    0.01,
    0.9,
    whole=False,
    source="",
    fix="Give the share for network and SageMaker's overhead.",
)
# Words in an image's name that stand for servers of generative models
_GENERATIVE = ("vllm", "sglang", "tgi", "-lmi", "tensorrtllm", "llama", "llm")


@dataclass(frozen=True, kw_only=True)
class EndpointRequest:
    """Callers, target, throughput and choices: all that :func:`.latency_plan.make_plan` reads.

    Parameters
    ----------
    client_zones : sequence of str
        Zone IDs or zone names in which callers run; 2 to 16.
    instance_type : str
        The variant's instance type; with pools the slowest of them, for which everything is
        sized. One that the table does not know gives a warning.
    latency : LatencyTarget, optional
        What callers must see. Without it no alarms are planned.
    throughput : MeasuredThroughput, optional
        What a load test found. Without it the fleet is assumed, not derived, and does not scale.
    images : sequence of str
        Images of the containers, as URI or ``repository:tag``; checked against the type.
    inference_ami : str, optional
        The inference AMI version, when one is chosen. By default the one that CUDA 13 images
        need, else SageMaker's own.
    routing : RoutingStrategy, optional
        Your routing strategy; by default the rule's.
    instances : InstanceCounts
        Your numbers of instances; by default the rules'.
    scaling : ScalingOptions
        How they follow the load; by default as the rules say.
    overhead_share : float, optional
        Share of the target kept for network and SageMaker's overhead, 0.01 to 0.9. By default 0.2.
    warm_up_requests : int, optional
        By default enough to reach every worker; 0 for none.
    payload_bytes : int, optional
        Size of the largest request, checked against AWS's limits.
    streaming : bool, optional
        Whether responses are streamed. By default where tokens, or targets on them, are stated.
    tokens : TokenTraffic, optional
        Tokens of prompts and answers, of a language model. Without them capacity is counted in
        calls alone, and how many requests the KV cache holds is not known.
    generative : bool, optional
        Whether answers differ much in length. By default read from the images' names.
    metrics_server : str, optional
        Whose metrics the container publishes, ``vllm`` or ``sglang``; by default read from the
        images' names. Alarms on tokens ask for them.
    instance_pools : sequence of PlannedPool
        All types that the variant may run on, where they are several; by default
        ``instance_type`` alone.
    hub_serving : HubServing, optional
        How the model is served, where it is one of the Hugging Face Hub.
    share : VariantShare, optional
        The part of the endpoint's traffic that ``throughput`` is, where it has several variants.

    Attributes
    ----------
    doubts : tuple of PlanWarning
        What is doubtful about the instance type and the images.

    Raises
    ------
    ConfigurationError
        ``LLE1xx`` zones, ``LLE33x`` images, ``LLE4xx`` variant, ``LLE8xx`` the rest, of it
        ``LLE809`` for tokens of what is not streamed, ``LLE825`` for CDK's tokens, ``LLE996`` for a server without known metrics, ``LLE897`` for
        requests that are longer than the model's context, ``LLE899`` for a target between tokens
        that is shorter than reading the weights takes.
    """

    client_zones: Sequence[str]
    instance_type: str
    latency: LatencyTarget | None = None
    throughput: MeasuredThroughput | None = None
    images: Sequence[str] = ()
    inference_ami: str | None = None
    routing: RoutingStrategy | None = None
    instances: InstanceCounts = field(default_factory=InstanceCounts)
    scaling: ScalingOptions = field(default_factory=ScalingOptions)
    overhead_share: float | None = None
    warm_up_requests: int | None = None
    payload_bytes: int | None = None
    streaming: bool | None = None
    tokens: TokenTraffic | None = None
    metrics_server: str | None = None
    generative: bool | None = None
    instance_pools: Sequence[PlannedPool] = ()
    share: VariantShare | None = None
    hub_serving: HubServing | None = None
    doubts: tuple[PlanWarning, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client_zones", _checked_zones(self.client_zones))
        check_known(INSTANCE_TYPE, self.instance_type, "instance_type")
        if self.latency is not None and not isinstance(self.latency, LatencyTarget):
            raise LATENCY_KIND.error(
                got=repr(self.latency), allowed="a LatencyTarget", where="latency"
            )
        if self.throughput is not None and not isinstance(self.throughput, MeasuredThroughput):
            raise THROUGHPUT_KIND.error(
                got=repr(self.throughput), allowed="a MeasuredThroughput", where="throughput"
            )
        if self.routing is not None and not isinstance(self.routing, RoutingStrategy):
            raise ROUTING_STRATEGY.rule.error(
                got=repr(self.routing), allowed="a RoutingStrategy", where="routing"
            )
        object.__setattr__(self, "images", _listed(self.images, "images"))
        for index, image in enumerate(self.images):
            IMAGE_URI.check(image, f"images[{index}]")
        if self.inference_ami is not None and not isinstance(self.inference_ami, str):
            raise INFERENCE_AMI.rule.error(
                got=repr(self.inference_ami), allowed=INFERENCE_AMI.allowed, where="inference_ami"
            )
        object.__setattr__(self, "instance_pools", tuple(self.instance_pools))
        check_pools(self.instance_pools, self.instance_type, self.throughput)
        if self.metrics_server is not None:
            METRICS_OF_SERVER.check(self.metrics_server, "metrics_server")
        self._check_tokens()
        object.__setattr__(self, "doubts", tuple(self._doubts()))
        _optional(OVERHEAD_SHARE, self.overhead_share, "overhead_share")
        _optional(WARM_UP_REQUESTS, self.warm_up_requests, "warm_up_requests")
        _optional(PAYLOAD, self.payload_bytes, "payload_bytes")

    def _check_tokens(self) -> None:
        """Tokens are those of a stream, and fit into the model's context; sets ``streaming``."""
        if self.tokens is not None and not isinstance(self.tokens, TokenTraffic):
            raise TOKENS_KIND.error(got=repr(self.tokens), allowed="a TokenTraffic", where="tokens")
        if self.streaming is False and self.of_tokens:
            what = "tokens" if self.tokens else "targets of ttft or itl"
            raise STREAM_NEEDED.error(
                got=f"no streaming, with {what}",
                allowed=f"streaming, or no {what}",
                where="streaming",
            )
        object.__setattr__(self, "streaming", bool(self.streaming) or self.of_tokens)
        if self.latency is not None and self.hub_serving is not None:
            check_itl(self.latency, self.hub_serving)
        if self.tokens is None or self.hub_serving is None:
            return
        contexts = [each.fit.context for each in self.hub_serving.containers]
        context = min((each for each in contexts if each is not None), default=None)
        ordinary = math.ceil(self.tokens.mean_input + self.tokens.mean_output)
        if context is not None and ordinary > context:
            raise TOKENS_ABOVE_CONTEXT.error(
                got=f"{ordinary:,} tokens of prompt and answer, on average",
                allowed=f"at most {context:,}",
                where="tokens",
            )

    @property
    def of_tokens(self) -> bool:
        """Whether it states tokens or targets on them, as for a language model that streams."""
        return self.tokens is not None or (self.latency is not None and self.latency.of_tokens)

    @property
    def facts(self) -> InstanceFacts | None:
        """What is known of the instance type."""
        return instance_facts(self.instance_type)

    @property
    def endpoint_throughput(self) -> MeasuredThroughput | None:
        """That of the whole endpoint, whatever this variant's share of it is."""
        return self.throughput if self.share is None else self.share.endpoint

    @property
    def is_rare(self) -> bool:
        """Whether a minute, the alarms' and scaling's period, has less than a call even at the peak.

        A percentile is then that of a single call; and an instance has to be idle for the most part.
        """
        whole = self.endpoint_throughput
        return whole is not None and whole.peak_tps < min(1 / 60, whole.tps_per_instance / 10)

    @property
    def burstable(self) -> bool:
        """Whether a type is one that does not scale."""
        return any(facts and facts.burstable for facts in map(instance_facts, self.types))

    @property
    def types(self) -> tuple[str, ...]:
        """All types that the variant may run on, the one that everything is sized for first."""
        pools = (each.instance_type for each in self.instance_pools)
        return tuple(dict.fromkeys((self.instance_type, *pools)))

    @property
    def _types_of_images(self) -> tuple[str, ...]:
        """The types that the plan's images run on: not those of pools with a model of their own."""
        if not self.instance_pools:
            return (self.instance_type,)
        return tuple(each.instance_type for each in self.instance_pools if not each.own_model)

    @property
    def weight_bytes(self) -> int:
        """Of the weights that an instance loads; 0 where they are not known."""
        found = self.hub_serving.containers if self.hub_serving else ()
        return max((each.fit.weight_bytes for each in found), default=0)

    @property
    def start_seconds(self) -> int:
        """From the decision to add an instance until it serves, as stated or assumed."""
        least = max(INSTANCE_SECONDS, start_floor(self.weight_bytes))
        return whole_seconds(self.scaling.instance_start) or least

    @property
    def workers(self) -> tuple[str, int]:
        """What serves one request at a time on an instance, and how many of them there are."""
        facts = self.facts
        kinds = (
            (
                ("Neuron core", facts.neuron_cores),
                ("accelerator", facts.accelerator_count),
                ("vCPU", facts.vcpus),
            )
            if facts
            else ()
        )
        return next(((kind, count) for kind, count in kinds if count), ("instance", 1))

    @cached_property
    def needed_ami(self) -> str | None:
        """The inference AMI that the images need on their types."""
        asked = needed_inference_ami([(self.images, name) for name in self._types_of_images])
        if asked is None and self.hub_serving is not None:
            return self.hub_serving.container.inference_ami
        return asked

    @property
    def is_generative(self) -> bool:
        """Whether answers differ much in length: as stated, or by the images' names."""
        if self.generative is not None:
            return self.generative
        if self.of_tokens:
            return True
        names = [image.rpartition("/")[2].lower() for image in self.images]
        return any(word in name for name in names for word in _GENERATIVE)

    @property
    def server_of_metrics(self) -> str | None:
        """Whose metrics the container publishes: as stated, or by the images' names; else None."""
        if self.metrics_server is not None:
            return self.metrics_server
        images = [*self.images]
        if self.hub_serving is not None:
            images.append(self.hub_serving.container.repository)
        return server_of(images)

    @property
    def response_limit_seconds(self) -> int:
        """How long SageMaker waits for a response: 60 s, or 8 minutes of streaming."""
        return 480 if self.streaming else 60

    def _doubts(self) -> list[PlanWarning]:
        """What is doubtful about the type and its images; refused, when they do not fit."""
        found = []
        ami = self.inference_ami or self.needed_ami
        if ami is not None and not INFERENCE_AMI.holds(ami):
            found.append(
                PlanWarning(
                    "unknown-inference-ami",
                    f"the inference AMI {ami!r} is not in this version's list",
                )
            )
        elif ami is not None:
            for name in self.types:
                check_ami_runs_on(ami, name, "inference_ami")
        for index, image in enumerate(self.images):
            texts = [
                text
                for name in self._types_of_images
                for text in check_image_runs_on(image, name, ami, f"images[{index}]")
            ]
            found += [
                PlanWarning(f"image-{index}-{number}", text)
                for number, text in enumerate(dict.fromkeys(texts))
            ]
        found += [
            PlanWarning(
                f"unknown-instance-type-{name}",
                f"{not_known(name)}: nothing about it could be checked",
            )
            for name in self.types[1:]
            if instance_facts(name) is None
        ]
        if self.hub_serving is not None:
            found += [
                PlanWarning(f"hugging-face-{number}", text)
                for number, text in enumerate(self.hub_serving.warnings)
            ]
        if self.facts is None:
            found.insert(
                0,
                PlanWarning(
                    "unknown-instance-type",
                    f"{not_known(self.instance_type)}: nothing about its processors, accelerators "
                    "and storage could be checked",
                ),
            )
        elif self.facts.note and self.facts.vcpus and "network card" not in self.facts.note:
            found.append(
                PlanWarning(
                    "uncertain-instance-type",
                    f"the facts of {self.instance_type} are less certain: {self.facts.note}",
                )
            )
        return found


def burstable_types(request: EndpointRequest) -> list[str]:
    """The types that do not scale."""
    known = ((name, instance_facts(name)) for name in request.types)
    return [name for name, facts in known if facts and facts.burstable]


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
        known = is_token(zone) or ZONE_ID.holds(zone) or ZONE_NAME.holds(zone)
        if not (known or (isinstance(zone, str) and is_stand_in(zone))):
            raise ZONE_ID.rule.error(
                got=repr(zone),
                where=where,
                allowed="a zone ID such as use1-az4, or a zone name such as us-east-1a",
            )
    if len(set(zones)) < len(zones):
        raise ZONE_NAMED_TWICE.error(
            got=", ".join(zones), allowed="each zone once", where="client_zones"
        )
    regions = [region for region in map(region_of_zone, zones) if region]
    if regions:
        check_zones_in_region(zones, regions[0], "client_zones")
    return zones


def _optional(limit: Range, value: Any, where: str) -> None:
    if value is not None:
        check_known(limit, value, where)
