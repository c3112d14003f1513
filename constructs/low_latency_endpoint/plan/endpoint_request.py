"""What a plan starts from: the load, the client zones, and what one variant serves on which types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated

from ..errors import rule
from ..errors.findings import located, path_of
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.container_metrics import METRICS_OF_SERVER, server_of
from ..facts.limits import CLIENT_ZONE_COUNT, PEAK_TPS, ZONE_ID, ZONE_NAME
from ..facts.rules import ZONE_NAMED_TWICE
from ..facts.token_values import is_token
from ..facts.warm_up_rules import WARM_UP_REQUESTS
from ..facts.zones import check_zones_in_region, is_stand_in, region_of_zone
from ..options.alarms import ErrorLimit, PeriodObjective, SlowLimit, WindowOptions
from ..options.argument_kinds import checked_arguments
from ..options.deployment import DeploymentPolicy
from ..options.load import LoadOptions
from ..options.option import Option
from ..options.scaling import whole_seconds
from ..options.throughput import MeasuredThroughput, stated
from ..options.variant import RoutingStrategy, check_pools
from ..report.numbers import plain_number
from .request_size import RequestSize, request_size
from .scaling_pace import INSTANCE_SECONDS, SCALE_OUT_SECONDS, rise_seconds, start_floor
from .serving import Serving
from .token_floors import check_itl

STREAM_NEEDED = rule(
    "LLE809",
    "token options are set, but streaming is off",
    fix="Set streaming to true or leave it out. For whole answers, set a latency target of the "
    "whole call (p99) and remove the token options.",
)
TOKENS_ABOVE_CONTEXT = rule(
    "LLE897",
    "prompt and answer are longer than the context that the server is given",
    fix="State shorter lengths, or a longer context_length on an instance type with enough memory.",
)
# Words in an image's name that stand for servers of generative models
_GENERATIVE = ("vllm", "sglang", "tgi", "-lmi", "tensorrtllm", "llama", "llm")


@dataclass(frozen=True, kw_only=True)
class VariantShare:
    """The part of an endpoint's traffic that one of several variants gets."""

    variant: str
    weight: float
    # the weights of all production variants together; of a shadow, the production variant's
    of: float
    shadow: bool = False  # whether it gets copies
    endpoint: MeasuredThroughput | None = None  # that of the whole endpoint
    # the instance type whose throughput is taken for this variant's, where it runs on another and
    # states none
    measured_on: str = ""
    # whether the throughput of another model is taken for this variant's, which states none
    measured_with_another_model: bool = False

    @property
    def fraction(self) -> Fraction:
        """The part, 0 to 1: more than all requests cannot be copied."""
        return min(stated(self.weight) / stated(self.of), Fraction(1))

    @property
    def text(self) -> str:
        """The share in words."""
        what = "the requests, copied" if self.shadow else "the requests"
        return f"{plain_number(float(self.fraction * 100), 4)} % of {what} (weight {plain_number(self.weight)} of {plain_number(self.of)})"

    def throughput(self, measured: MeasuredThroughput | None) -> MeasuredThroughput | None:
        """What the variant has to hold of the endpoint's load; None for no requests at all."""
        if measured is None:
            return None
        peak = float(stated(measured.peak_tps) * self.fraction)
        if not PEAK_TPS.holds(peak):
            return None
        return replace(
            measured,
            peak_tps=peak,
            from_tps=_part(measured.from_tps, self.fraction),
            rise_tps_per_minute=_part(measured.rise_tps_per_minute, self.fraction),
            peaks={
                name: replace(other, tps=_part_of_peak(other.tps, self.fraction))
                for name, other in measured.peaks.items()
            },
        )


def _part(value: float | None, fraction: Fraction) -> float | None:
    return None if value is None else float(stated(value) * fraction)


def _part_of_peak(tps: float, fraction: Fraction) -> float:
    """The part of another peak, which is not nothing where the usual one is not."""
    return max(float(stated(tps) * fraction), float(PEAK_TPS.minimum or 0))


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class EndpointRequest(LoadOptions):
    """The load, the client zones and the instances: all that :func:`.latency_plan.make_plan` reads.

    Raises:
        ConfigurationError: ``LLE1xx`` for zones, ``LLE432`` and ``LLE433`` for pools, ``LLE807`` for
            values of another kind, ``LLE809`` for tokens of an answer that is not streamed,
            ``LLE820`` and ``LLE822`` for numbers out of range, ``LLE825`` for CDK's tokens,
            ``LLE897`` for requests that are longer than the model's context, ``LLE899`` for a
            target between tokens that is shorter than reading the weights takes, ``LLE996`` for a
            server without known metrics.
    """

    client_zones: Sequence[str]
    """Zone IDs or zone names in which callers run; 2 to 16."""
    serving: Serving
    """The variant's instance types, and what they serve."""
    routing: RoutingStrategy | None = None
    """Your routing strategy. Default: the rule's."""
    warm_up_requests: Annotated[int | None, Option(WARM_UP_REQUESTS, planned=True)] = None
    """Fewest requests of a warm-up; 0 for none. Default: enough to reach every worker."""
    metrics_server: Annotated[str | None, Option(METRICS_OF_SERVER)] = None
    """Whose metrics the container publishes, vllm or sglang. Default: read from the images' names.
    """
    share: VariantShare | None = None
    """The part of the endpoint's traffic that throughput is. Default: all of it."""
    warm_up_bytes: int | None = None
    """Size of the warm-up's largest payload, which callers' requests are assumed to have if
    payload_bytes is not stated."""
    canary_bytes: int | None = None
    """Size of the canary's payload; None without a canary."""
    alarm_window: WindowOptions = WindowOptions()
    """What is stated of the periods of the alarms. Default: the rate decides."""
    error_limit: ErrorLimit | None = ErrorLimit()
    """When the alarm on server errors goes off; None without one."""
    slow_limit: SlowLimit | None = None
    """What the alarms on slow requests hold them to; None without one."""
    period_objective: PeriodObjective | None = None
    """What a service level objective holds the periods to; None without one."""
    least_first_tokens: int = 20
    """First tokens in five minutes below which no alarm on tokens goes off."""
    deployment: DeploymentPolicy | None = None
    """How a new version takes over. Default: a canary, or all at once on Inf1."""
    private_dns: bool | None = True
    """Whether the interface endpoint answers the runtime's own name; None where nobody says it.
    Default: yes."""

    @property
    def request_size(self) -> RequestSize | None:
        """The size of the callers' requests, stated or assumed."""
        return request_size(self.payload_bytes, self.warm_up_bytes)

    @property
    def peak_tps(self) -> float | None:
        """The variant's requests per second at the peak; None if not known."""
        return self.throughput.peak_tps if self.throughput else None

    @property
    def quiet_tps(self) -> float | None:
        """The variant's requests per second at the lowest peak of the day; None if not known."""
        return self.throughput.quietest[1] if self.throughput else None

    @property
    def overhead_share(self) -> float | None:
        """The stated share of the target that is kept for overhead."""
        return self.latency.overhead_share if self.latency else None

    def __post_init__(self) -> None:
        self._settle()
        # Places are those of settings and keywords: who reads the error has not made a request.
        for place, error in self._findings():
            raise located(error, path_of(place))
        for name in ("warm_up_bytes", "canary_bytes"):
            # How large a payload may be is checked where it is stated.
            limits.PAYLOAD.check(min(getattr(self, name) or 0, 0), name)
        _check_zones(self.client_zones)
        serving = self.serving
        check_pools(serving.instance_pools, serving.instance_type, self.throughput)
        self._check_tokens()

    def _check_tokens(self) -> None:
        """Tokens are those of a stream, and fit into the model's context."""
        if self.streaming is False and self.of_tokens:
            what = "tokens" if self.tokens else "targets of ttft or itl"
            raise STREAM_NEEDED.error(
                got=f"no streaming, with {what}",
                allowed=f"streaming, or no {what}",
                where="streaming",
            )
        hub = self.serving.hub
        if hub is None:
            return
        if self.latency is not None:
            check_itl(self.latency, hub)
        if self.tokens is None:
            return
        contexts = [container.fit.context for container in hub.containers]
        context = min((context for context in contexts if context is not None), default=None)
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
    def streams(self) -> bool:
        """Whether callers stream answers: as stated, or because tokens are."""
        return bool(self.streaming) or self.of_tokens

    @property
    def endpoint_throughput(self) -> MeasuredThroughput | None:
        """That of the whole endpoint, whatever this variant's share of it is."""
        return self.throughput if self.share is None else self.share.endpoint

    @property
    def peaks_raise_minimum(self) -> bool:
        """Whether ``throughput.peaks`` can raise the minimum: no schedule of your own stands beside."""
        return not self.scaling.schedule

    @property
    def is_rare(self) -> bool:
        """Whether a minute, the alarms' and scaling's period, has less than a call even at the peak.

        A percentile is then that of a single call; and an instance has to be idle for the most part.
        """
        whole = self.endpoint_throughput
        return whole is not None and whole.highest_tps < min(1 / 60, whole.tps_per_instance / 10)

    @property
    def start_seconds(self) -> int:
        """From the decision to add an instance until it serves, as stated or assumed."""
        least = max(INSTANCE_SECONDS, start_floor(self.serving.weight_bytes))
        return whole_seconds(self.scaling.instance_start) or least

    @property
    def scale_out_seconds(self) -> int:
        """The cooldown after scaling out, as stated or the default."""
        cooldown = whole_seconds(self.scaling.scale_out_cooldown)
        return SCALE_OUT_SECONDS if cooldown is None else cooldown

    @property
    def rise_seconds(self) -> int:
        """How far scaling lags behind traffic that goes on rising."""
        return rise_seconds(self.start_seconds, self.scale_out_seconds)

    @property
    def is_generative(self) -> bool:
        """Whether answers differ much in length: with tokens, or by the images' names."""
        if self.of_tokens:
            return True
        names = [image.rpartition("/")[2].lower() for image in self.serving.images]
        return any(word in name for name in names for word in _GENERATIVE)

    @property
    def server_of_metrics(self) -> str | None:
        """Whose metrics the container publishes: as stated, or by the images' names; else None."""
        if self.metrics_server is not None:
            return self.metrics_server
        images = [*self.serving.images]
        if self.serving.hub is not None:
            images.append(self.serving.hub.container.repository)
        return server_of(images)

    @property
    def response_limit_seconds(self) -> int:
        """How long SageMaker waits for a response: 60 s, or 8 minutes of streaming."""
        return 480 if self.streams else 60


def _check_zones(zones: Sequence[str]) -> None:
    """Raise unless these are 2 to 16 zones of one Region, each named once."""
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
