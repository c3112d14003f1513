"""Payloads name a model where the endpoint has many, and none where it has one."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors.findings import Place, located
from ..hosting.endpoint_interface import IEndpoint
from ..options.warm_up import WarmUpPayload, rules_of_targets


def check_targets(endpoint: IEndpoint, payloads: Sequence[WarmUpPayload], where: str) -> None:
    """Raise LLE928 or LLE929 for a payload that SageMaker would refuse.

    Nothing is checked of an endpoint whose variants are not known, or are of several kinds.
    """
    shapes = {variant.shape for variant in endpoint.all_variants}
    if len(shapes) != 1:
        return
    multi_model = shapes == {"multi-model"}
    targets: dict[Place, WarmUpPayload] = {
        ("payload", index): payload for index, payload in enumerate(payloads)
    }
    for _, error in rules_of_targets(targets, multi_model=multi_model, direct=False):
        raise located(error, where)
