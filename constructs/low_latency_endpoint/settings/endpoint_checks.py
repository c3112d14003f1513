"""What the parts of one endpoint's settings demand of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors.findings import Finding, Place, breaches, finding
from ..facts import limits
from ..facts.deployments import check_guardrails, rolls_back
from ..facts.images import ARCHITECTURE_OF_PLATFORM, check_built_image_runs_on
from ..facts.instance_types import instance_facts
from ..facts.metrics import metric_facts, metrics
from ..facts.rules import (
    ALL_WEIGHTS_ZERO,
    KMS_WITH_LOCAL_STORAGE,
    POOL_TYPE_TWICE,
    ROLLING_NEEDS_ONE_VARIANT,
    SHADOW_OF_ONE_VARIANT,
    VARIANT_NAMED_TWICE,
)
from ..options.container import ContainerSettings
from ..plan.published_metrics import METRIC_OF_ALARM, check_published, endpoint_shape
from .variants import further_variants

if TYPE_CHECKING:
    from .endpoint import EndpointSettings

Running = tuple[Place, Sequence[ContainerSettings], str]


def variants_and_first(endpoint: EndpointSettings) -> Iterator[Running]:
    """Containers and type of each variant, the first one's first, on each of its types: what a
    further one leaves out is the first one's."""
    first, name = endpoint.containers, endpoint.instance_type
    yield (), first, name
    for index, pool in enumerate(endpoint.instance_pools):
        if pool.instance_type != name:
            yield ("instance_pools", index), first, pool.instance_type
    for each in further_variants(endpoint):
        own = each.settings
        if own.containers or own.instance_type:
            yield each.place, own.containers or first, own.instance_type or name


def rules_of_pools(endpoint: EndpointSettings) -> Iterator[Finding]:
    """One to five pools, each with a type and a priority of its own."""
    pools = endpoint.instance_pools
    if endpoint._states("instance_pools"):
        yield from breaches(("instance_pools",), limits.INSTANCE_POOL_COUNT.check, len(pools))
    for part in ("instance_type", "priority"):
        values = [getattr(each, part) for each in pools]
        for index, value in enumerate(values):
            if value in values[:index]:
                yield finding(
                    POOL_TYPE_TWICE,
                    *("instance_pools", index, part),
                    got=value,
                    allowed=f"another {part.replace('_', ' ')} than that of the pools before",
                )


def rules_of_metrics(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Alarms watch what such an endpoint publishes."""
    stated, known = endpoint.alarms, {each.name for each in metrics()}
    watched: dict[Place, str] = {
        (option,): metric for option, metric in METRIC_OF_ALARM.items() if stated._states(option)
    }
    watched |= {("anomalies", metric): metric for metric in stated.anomalies if metric in known}
    for _, containers, name in variants_and_first(endpoint):
        multi_model = any(each.multi_model for each in containers)
        shape = endpoint_shape(len(containers), multi_model=multi_model)
        for place, metric in watched.items():
            yield from breaches(
                ("alarms", *place),
                lambda metric=metric, shape=shape, name=name: check_published(
                    metric_facts(metric), shape=shape, instance_types=[name]
                ),
            )


def rules_of_guardrails(endpoint: EndpointSettings) -> Iterator[Finding]:
    """A deployment with guardrails suits each type."""
    stated = endpoint.deployment
    if stated is None:
        return
    back = stated.rollback_on_alarms is True
    for _, _, name in variants_and_first(endpoint) if any(stated.ways) else ():
        yield from breaches(
            ("deployment",),
            lambda name=name: check_guardrails(stated.kind, [name], rolls_back=back),
        )


def rules_of_platforms(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Images are built for the instances' processors."""
    own = {each.place for each in further_variants(endpoint) if each.settings.containers}
    for place, containers, name in variants_and_first(endpoint):
        for index, container in enumerate(containers):
            image = container.image
            if image.asset is not None and image.platform is not None:
                stands = not place or place in own
                yield from breaches(
                    (*place, "containers", index, "image", "platform")
                    if stands
                    else (*place, "instance_type"),
                    check_built_image_runs_on,
                    ARCHITECTURE_OF_PLATFORM[image.platform],
                    name,
                )


def rules_of_rollback_alarms(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Every threshold on ModelLatency, and the one on errors, is a rollback alarm too."""
    stated = endpoint.alarms.model_latency
    deployment = endpoint.deployment
    back = deployment.rollback_on_alarms if deployment else None
    if isinstance(stated, dict) and rolls_back(back, [endpoint.instance_type]):
        yield from breaches(
            ("alarms", "model_latency"), limits.ROLLBACK_ALARM_COUNT.check, len(stated) + 1
        )


def rules_of_volume_keys(endpoint: EndpointSettings) -> Iterator[Finding]:
    """A key for volumes on types that have storage of their own."""
    if endpoint.kms_key_arn is None or endpoint.kms_key_with_local_storage:
        return
    for place, _, name in variants_and_first(endpoint):
        facts = instance_facts(name)
        if facts and facts.local_storage_gb:
            yield finding(
                KMS_WITH_LOCAL_STORAGE,
                *(place or ("kms_key_arn",)),
                got=f"{facts.name} with {facts.local_storage_gb} GB of local storage",
                allowed="no key, or a type without local storage",
                fix="Remove kms_key_arn, choose another type, or set "
                "kms_key_with_local_storage: true if your account accepts it.",
            )


def rules_of_names(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Names of variants differ."""
    for each in further_variants(endpoint):
        if each.name == endpoint.variant_name:
            yield finding(
                VARIANT_NAMED_TWICE,
                *(("shadow", "name") if each.shadow else each.place),
                got=each.name,
                allowed=f"another name than {endpoint.variant_name}",
            )


def rules_of_shadow(endpoint: EndpointSettings) -> Iterator[Finding]:
    """A shadow stands beside one variant."""
    if endpoint.variants and endpoint.shadow is not None:
        names = ", ".join([endpoint.variant_name, *endpoint.variants])
        yield finding(
            SHADOW_OF_ONE_VARIANT,
            "shadow",
            got=f"{endpoint.shadow.name} beside {names}",
            allowed="variants, or a shadow",
        )


def rules_of_weights(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Somebody gets the requests."""
    if not any([endpoint.variant_weight, *(each.weight for each in endpoint.variants.values())]):
        yield finding(
            ALL_WEIGHTS_ZERO, "variant_weight", got="0 of all", allowed="one weight above 0"
        )


def rules_of_rolling(endpoint: EndpointSettings) -> Iterator[Finding]:
    """A rolling update is of one variant."""
    if (
        endpoint.variants
        and endpoint.deployment
        and endpoint.deployment.rolling_percent is not None
    ):
        yield finding(
            ROLLING_NEEDS_ONE_VARIANT,
            *("deployment", "rolling"),
            got=f"{1 + len(endpoint.variants)} variants",
            allowed="1",
        )
