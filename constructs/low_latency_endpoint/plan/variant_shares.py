"""Several variants behind one endpoint: what share of its traffic each gets, and asks of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..errors import rule
from ..errors.frozen import dataclass
from ..facts.limits import GUIDE, PEAK_TPS, VARIANT_WEIGHT
from ..facts.rules import ALL_WEIGHTS_ZERO, SHADOW_OF_ONE_VARIANT, VARIANT_NAMED_TWICE
from ..facts.token_values import check_known
from ..options.capacity import stated
from ..options.instance_pools import PlannedPool, planned_for
from ..options.scaling import InstanceCounts, ScalingOptions
from ..options.throughput import MeasuredThroughput
from ..options.variant import FurtherOptions
from ..report.numbers import plain_number
from .hub_serving import HubServing, also_on

if TYPE_CHECKING:
    from .endpoint_request import EndpointRequest

AB_TESTING = GUIDE + "model-ab-testing.html"
SHADOWS = GUIDE + "model-shadow-deployment.html"

TPS_WITHOUT_PEAK = rule(
    "LLE434",
    "the throughput of a further variant needs that of the endpoint",
    fix="State the endpoint's throughput with its peak, or leave the variant's out.",
)
COUNTS_ARE_KEPT_BY_ALL = rule(
    "LLE435",
    "keep_counts is set on a further variant",
    fix="Set it in the endpoint's own scaling, for all variants.",
    source="https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateEndpoint.html",
)


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
        )


def _part(value: float | None, fraction: Fraction) -> float | None:
    return None if value is None else float(stated(value) * fraction)


@dataclass(frozen=True, kw_only=True)
class FurtherRequest:
    """What a variant beside the first asks of the plan; what it leaves out is the first one's."""

    name: str
    weight: float
    instance_type: str | None = None
    instance_pools: Sequence[PlannedPool] = ()
    images: Sequence[str] | None = None  # by default the first one's model is shared
    hub_serving: HubServing | None = None  # of its own model of the Hugging Face Hub
    options: FurtherOptions = field(default_factory=FurtherOptions)
    instances: InstanceCounts = field(default_factory=InstanceCounts)
    scaling: ScalingOptions | None = None  # by default how the first one scales

    @property
    def own_type(self) -> bool:
        """Whether it states where it runs."""
        return self.instance_type is not None or bool(self.instance_pools)


def shares_of(
    first: str,
    weight: float,
    further: Sequence[FurtherRequest],
    shadow: FurtherRequest | None,
    throughput: MeasuredThroughput | None,
    where: str = "",
) -> dict[str, VariantShare]:
    """The share of each variant by its name, the first one's first; none of a lone variant."""
    if shadow is not None and further:
        raise SHADOW_OF_ONE_VARIANT.error(
            got=f"{shadow.name} beside {', '.join([first, *(each.name for each in further)])}",
            allowed="one production variant and one shadow variant",
            where=where,
        )
    beside = [*further, *([shadow] if shadow else [])]
    if not beside:
        return {}
    weights = {first: weight}
    for each in beside:
        if each.name in weights:
            raise VARIANT_NAMED_TWICE.error(got=each.name, allowed="names that differ", where=where)
        weights[each.name] = each.weight
    for name, value in weights.items():
        check_known(VARIANT_WEIGHT, value, f"{where}, variant {name}".lstrip(", "))
    of = float(sum(stated(value) for name, value in weights.items() if not _is(shadow, name)))
    if not of:
        raise ALL_WEIGHTS_ZERO.error(
            got=", ".join(f"{name}: 0" for name in weights if not _is(shadow, name)),
            allowed="one weight above 0",
            where=where,
        )
    return {
        name: VariantShare(
            variant=name, weight=value, of=of, shadow=_is(shadow, name), endpoint=throughput
        )
        for name, value in weights.items()
        if not (shadow and name == first)  # it serves all requests, as a lone variant does
    }


def _is(shadow: FurtherRequest | None, name: str) -> bool:
    return shadow is not None and shadow.name == name


def first_request(request: EndpointRequest, share: VariantShare | None) -> EndpointRequest:
    """What the first variant asks of the plan, of what the endpoint does."""
    if share is None:
        return request
    return replace(request, share=share, throughput=share.throughput(request.throughput))


def further_request(
    request: EndpointRequest, further: FurtherRequest, share: VariantShare
) -> EndpointRequest:
    """What a further variant asks of the plan, where the endpoint asks for ``request``."""
    measured, options = request.throughput, further.options
    ami = options.inference_ami.version if options.inference_ami else None
    for name in ("tps_per_instance", "safety_factor", "concurrency_per_instance"):
        if measured is None and getattr(options, name) is not None:
            raise TPS_WITHOUT_PEAK.error(
                got=f"{name} of {further.name}, no throughput of the endpoint",
                allowed="both, or none",
                where=name,
            )
    pools = tuple(further.instance_pools)
    tps = options.tps_per_instance
    if tps is None and pools:
        tps = planned_for(pools).tps_per_instance
    runs_on = further.instance_type or (planned_for(pools).instance_type if pools else None)
    elsewhere = runs_on not in (None, request.instance_type)
    if measured is not None and tps is None and elsewhere:
        share = replace(share, measured_on=request.instance_type)
    if measured is not None:
        if elsewhere or options.tps_per_instance is not None:  # measured on another, or of another
            measured = replace(measured, concurrency_per_instance=None)
        given = {
            "tps_per_instance": tps,
            "safety_factor": options.safety_factor,
            "concurrency_per_instance": options.concurrency_per_instance,
        }
        measured = replace(
            measured, **{key: each for key, each in given.items() if each is not None}
        )
    changed: dict[str, Any] = {
        "share": share,
        "throughput": share.throughput(measured),
        "instances": further.instances,
        "scaling": _scaling(request, further),
        "inference_ami": ami or (None if further.own_type else request.inference_ami),
    }
    if runs_on is not None:
        changed |= {"instance_type": runs_on, "instance_pools": pools}
    if further.images is not None:
        changed |= {"images": further.images, "hub_serving": further.hub_serving}
    elif runs_on is not None and request.hub_serving is not None:
        changed["hub_serving"] = also_on(
            request.hub_serving,
            [each.instance_type for each in pools] or [runs_on],
            volume_gib=None,
            where="instance_type",
        )
    if options.routing is not None:
        changed["routing"] = options.routing
    return replace(request, **changed)


def _scaling(request: EndpointRequest, further: FurtherRequest) -> ScalingOptions:
    """Its own, or how the first one scales, without that one's set times and steps."""
    if further.scaling is None:
        return replace(request.scaling, schedule=(), steps=None, keep_counts=None)
    if further.scaling.keep_counts is not None:
        raise COUNTS_ARE_KEPT_BY_ALL.error(
            got=f"keep_counts of {further.name}",
            allowed="that of the endpoint's scaling",
            where="keep_counts",
        )
    return further.scaling
