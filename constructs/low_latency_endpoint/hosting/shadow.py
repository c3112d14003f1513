"""A shadow variant: it gets copies of the production variant's requests, and answers nobody.

What AWS documents, and what it leaves open, is said where it is used. Sources: SageMaker API
reference, ``CreateEndpointConfig``; developer guide, "Testing models with shadow variants" and
"Shadow tests".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from constructs import Construct

from ..facts.rules import SHADOW_OF_ONE_VARIANT
from ..synthesis.annotations import warn
from ..synthesis.template_values import is_token
from .variant import ProductionVariant

_EXCLUSIONS = (
    "AWS excludes it from shadow tests (shadow-tests-exclusions), and does not say whether an "
    "endpoint configuration with a shadow variant is refused"
)

ROLLING_WITH_SHADOW = (
    "AWS excludes endpoints with several variants from rolling updates "
    "(deployment-guardrails-exclusions), and does not say whether a shadow variant counts. Take "
    "canary, linear or all_at_once, or try it in a test account."
)


def check_shadow(
    configuration: Construct,
    variants: Sequence[ProductionVariant],
    shadow: ProductionVariant,
    where: str,
) -> None:
    """Refuse a shadow beside several production variants; warn of what may not work."""
    if len(variants) != 1:
        raise SHADOW_OF_ONE_VARIANT.error(
            got=f"{shadow.name} beside {', '.join(variant.name for variant in variants)}",
            allowed="one production variant and one shadow variant",
            where=where,
        )
    production = variants[0]
    if not (is_token(shadow.weight) or is_token(production.weight)) and not (
        0 < shadow.weight <= production.weight
    ):
        warn(
            configuration,
            f"shadowWeight:{shadow.name}",
            f"The shadow variant's weight is {shadow.weight:g}, the production variant's "
            f"{production.weight:g}. Over the production variant's weight it is taken for the "
            "share of requests that are copied, so it should be above 0 and at most "
            f"{production.weight:g}; AWS documents an example with equal weights only.",
        )
    for feature in sorted(set(_excluded(production, shadow))):
        warn(configuration, f"shadowExclusion:{feature}", f"{feature}: {_EXCLUSIONS}.")


def _excluded(*variants: ProductionVariant) -> Iterator[str]:
    for variant in variants:
        for model in variant.models:
            if model.shape == "multi-model":
                yield "multi-model endpoint"
            elif model.shape == "pipeline":
                yield "several containers"
        if any(each.name.startswith("ml.inf1.") for each in variant.instance_types):
            yield "Inf1"
