"""Several variants behind one endpoint: what share of its traffic each gets, and asks of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import AWS_DOCS, rule
from ..facts.limit_kinds import check_known
from ..facts.limits import GUIDE, VARIANT_WEIGHT
from ..facts.rules import ALL_WEIGHTS_ZERO, SHADOW_OF_ONE_VARIANT, VARIANT_NAMED_TWICE
from ..options.scaling import InstanceCounts, ScalingOptions
from ..options.throughput import MeasuredThroughput, stated
from ..options.variant import FurtherOptions, PlannedPool, planned_for
from .endpoint_request import EndpointRequest, VariantShare
from .hub_serving import HubServing, also_on

AB_TESTING = AWS_DOCS + GUIDE + "model-ab-testing.html"
SHADOWS = AWS_DOCS + GUIDE + "model-shadow-deployment.html"

TPS_WITHOUT_PEAK = rule(
    "LLE434",
    "a further variant has a throughput, but the endpoint has none",
    fix="State the endpoint's throughput with its peak, or remove the variant's throughput.",
)
COUNTS_ARE_KEPT_BY_ALL = rule(
    "LLE435",
    "keep_counts is set on a further variant",
    fix="Set it in the endpoint's own scaling, for all variants.",
    source="https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateEndpoint.html",
)


def shares_of(
    weights: Sequence[tuple[str, float]],
    throughput: MeasuredThroughput | None,
    *,
    shadow: str | None = None,
    where: str = "",
) -> dict[str, VariantShare]:
    """The share of each variant by its name, the first variant's first; none of a lone variant.

    A shadow has the last of the weights.
    """
    if shadow is not None and len(weights) > 2:
        others = ", ".join(name for name, _ in weights[:-1])
        raise SHADOW_OF_ONE_VARIANT.error(
            got=f"{shadow} beside {others}",
            allowed="one production variant and one shadow variant",
            where=where,
        )
    if len(weights) == 1:
        return {}
    names = [name for name, _ in weights]
    for index, (name, weight) in enumerate(weights):
        if name in names[:index]:
            raise VARIANT_NAMED_TWICE.error(got=name, allowed="different names", where=where)
        check_known(VARIANT_WEIGHT, weight, f"{where}, variant {name}".lstrip(", "))
    production = [(name, weight) for name, weight in weights if name != shadow]
    of = float(sum(stated(weight) for _, weight in production))
    if not of:
        raise ALL_WEIGHTS_ZERO.error(
            got=", ".join(f"{name}: 0" for name, _ in production),
            allowed="at least one weight above 0",
            where=where,
        )
    return {
        name: VariantShare(
            variant=name, weight=weight, of=of, shadow=name == shadow, endpoint=throughput
        )
        for name, weight in weights
        if not (shadow and name == names[0])  # it serves all requests, as a lone variant does
    }


def first_request(request: EndpointRequest, share: VariantShare | None) -> EndpointRequest:
    """What the first variant asks of the plan, of what the endpoint does."""
    if share is None:
        return request
    return replace(request, share=share, throughput=share.throughput(request.throughput))


def further_request(
    request: EndpointRequest,
    options: FurtherOptions,
    share: VariantShare,
    *,
    instance_type: str | None = None,
    instance_pools: Sequence[PlannedPool] = (),
    images: Sequence[str] | None = None,
    hub: HubServing | None = None,
) -> EndpointRequest:
    """What a variant beside the first asks of the plan, where the endpoint asks for ``request``.

    Without an instance type it runs on the first variant's; without images it serves its model.
    """
    first, measured = request.serving, request.throughput
    for name in ("tps_per_instance", "safety_factor", "concurrency_per_instance"):
        if measured is None and getattr(options, name) is not None:
            raise TPS_WITHOUT_PEAK.error(
                got=f"{name} of {share.variant}, no throughput of the endpoint",
                allowed="both, or none",
                where=name,
            )
    elsewhere = instance_type not in (None, first.instance_type)
    tps = options.tps_per_instance
    if tps is None and instance_pools:
        tps = planned_for(instance_pools).tps_per_instance
    if measured is not None and tps is None:
        share = replace(
            share,
            measured_on=first.instance_type if elsewhere else "",
            measured_with_another_model=images is not None,
        )
    if measured is not None:
        if elsewhere or options.tps_per_instance is not None:  # measured on another, or of another
            measured = replace(measured, concurrency_per_instance=None)
        given: dict[str, Any] = {
            "tps_per_instance": tps,
            "safety_factor": options.safety_factor,
            "concurrency_per_instance": options.concurrency_per_instance,
        }
        measured = replace(
            measured, **{key: each for key, each in given.items() if each is not None}
        )
    changed: dict[str, Any] = {}
    if instance_type is not None:
        changed |= {
            "instance_type": instance_type,
            "instance_pools": instance_pools,
            "inference_ami": None,
        }
    if options.inference_ami is not None:
        changed["inference_ami"] = options.inference_ami.version
    if images is not None:
        changed |= {"images": images, "hub": hub}
    elif instance_type is not None and first.hub is not None:
        types = [pool.instance_type for pool in instance_pools] or [instance_type]
        changed["hub"] = also_on(first.hub, types, volume_gib=None, where="instance_type")
    return replace(
        request,
        share=share,
        throughput=share.throughput(measured),
        instances=options.instances or InstanceCounts(),
        scaling=_scaling(request, options, share.variant),
        routing=options.routing or request.routing,
        serving=replace(first, **changed),
    )


def _scaling(request: EndpointRequest, options: FurtherOptions, name: str) -> ScalingOptions:
    """Its own, or how the first one scales, without that one's set times and steps."""
    if options.scaling is None:
        return replace(request.scaling, schedule=(), steps=None, keep_counts=None)
    if options.scaling.keep_counts is not None:
        raise COUNTS_ARE_KEPT_BY_ALL.error(
            got=f"keep_counts of {name}",
            allowed="keep_counts of the endpoint's scaling",
            where="keep_counts",
        )
    return options.scaling
