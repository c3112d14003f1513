"""What the constructs would refuse about one endpoint's settings as given, with each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors.findings import Finding, Place, breaches
from ..plan import limits
from ..plan.deployments import check_guardrails, rolls_back
from ..plan.images import ARCHITECTURE_OF_PLATFORM, check_built_image_runs_on
from ..plan.metrics import metric_facts, metrics
from ..plan.published_metrics import METRIC_OF_ALARM, check_published, endpoint_shape
from .model_base import items_of, mapping_of
from .variant_checks import stated_variants, variants_and_first


def containers_of(endpoint: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers as mappings; empty ones where they are something else."""
    return [
        mapping_of({"container": each}, "container") for each in items_of(endpoint, "containers")
    ]


def all_stated_containers(endpoint: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The containers of all models of an endpoint as mappings, each with its place."""
    for place, stated in (((), endpoint), *stated_variants(endpoint)):
        for index, container in enumerate(containers_of(stated)):
            yield (*place, "containers", index), container


def endpoint_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """What the parts of an endpoint demand of each other."""
    for place, stated in variants_and_first(given):
        name = stated.get("instance_type")
        if not (isinstance(name, str) and limits.INSTANCE_TYPE.holds(name)):
            continue
        yield from _metrics(stated, name)
        yield from _guardrails(mapping_of(stated, "deployment"), name)
        for below, error in _platforms(stated, name):
            own = place and not items_of(_at(given, place), "containers")
            yield ((*place, "instance_type") if own else (*place, *below)), error
        if not place:
            yield from _rollback_alarms(stated, name)


def _at(given: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    for name in place:
        given = mapping_of(given, str(name))
    return given


def _metrics(given: Mapping[str, Any], instance_type: str) -> Iterator[Finding]:
    """Alarms watch what such an endpoint publishes."""
    containers = containers_of(given)
    shape = endpoint_shape(
        len(containers), multi_model=any(each.get("multi_model") is True for each in containers)
    )
    stated = mapping_of(given, "alarms")
    known = {each.name for each in metrics()}
    learned = {
        ("anomalies", metric): metric
        for metric in mapping_of(stated, "anomalies")
        if metric in known
    }
    of_option = {(option,): metric for option, metric in METRIC_OF_ALARM.items()}
    for place, metric in (of_option | learned).items():
        if place[0] in stated:
            yield from breaches(
                ("alarms", *place),
                lambda metric=metric: check_published(
                    metric_facts(metric), shape=shape, instance_types=[instance_type]
                ),
            )


def _guardrails(deployment: Mapping[str, Any], instance_type: str) -> Iterator[Finding]:
    kinds = [kind for kind in ("canary", "linear", "rolling", "all_at_once") if kind in deployment]
    back = deployment.get("rollback_on_alarms") is True
    for kind in kinds[:1] or ["all_at_once"] * back:
        yield from breaches(
            ("deployment",),
            lambda kind=kind: check_guardrails(kind.upper(), [instance_type], rolls_back=back),
        )


def _platforms(given: Mapping[str, Any], instance_type: str) -> Iterator[Finding]:
    """Images are built for the instances' processors."""
    for index, container in enumerate(containers_of(given)):
        image = mapping_of(container, "image")
        platform = image.get("platform") if "asset" in image else None
        if isinstance(platform, str) and platform in ARCHITECTURE_OF_PLATFORM:
            yield from breaches(
                ("containers", index, "image", "platform"),
                check_built_image_runs_on,
                ARCHITECTURE_OF_PLATFORM[platform],
                instance_type,
            )


def _rollback_alarms(given: Mapping[str, Any], instance_type: str) -> Iterator[Finding]:
    """Every threshold on ModelLatency, and the one on errors, is a rollback alarm too."""
    thresholds = mapping_of(mapping_of(given, "alarms"), "model_latency")
    stated = mapping_of(given, "deployment").get("rollback_on_alarms")
    if thresholds and rolls_back(stated, [instance_type]):
        yield from breaches(
            ("alarms", "model_latency"), limits.ROLLBACK_ALARM_COUNT.check, len(thresholds) + 1
        )
