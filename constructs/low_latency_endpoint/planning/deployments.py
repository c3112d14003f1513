"""What deployment guardrails (blue/green traffic shifting, rolling updates) need and exclude."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import AWS_DOCS
from .rules import INF1_HAS_NO_GUARDRAILS

__all__ = [
    "GUARDRAIL_EXCLUSIONS",
    "GuardrailExclusion",
    "check_guardrails",
    "guardrail_exclusions",
    "instances_in_update",
    "takes_guardrails",
]

_EXCLUSIONS = AWS_DOCS + "/sagemaker/latest/dg/deployment-guardrails-exclusions.html"


@dataclass(frozen=True, slots=True)
class GuardrailExclusion:
    """One exclusion.

    Attributes
    ----------
    condition : str
        ``marketplace``, ``inf1``, ``serverless``, ``several-variants`` or ``variant-renamed``.
    policies : tuple of str
        The update policies that it excludes: ``canary``, ``linear``, ``rolling``.
    effect : str
        What happens instead.
    source : str
        Page that says so.
    """

    condition: str
    policies: tuple[str, ...]
    effect: str
    source: str = _EXCLUSIONS


GUARDRAIL_EXCLUSIONS = (
    GuardrailExclusion(
        "marketplace", ("canary", "linear", "rolling"),
        "containers from AWS Marketplace take no guardrails",
    ),
    GuardrailExclusion(
        "inf1", ("canary", "linear", "rolling"),
        "SageMaker falls back to blue/green all at once without a final baking period, in silence",
    ),
    GuardrailExclusion("serverless", ("rolling",), "serverless endpoints take no rolling update"),
    GuardrailExclusion(
        "several-variants", ("rolling",), "endpoints with several variants take no rolling update"
    ),
    GuardrailExclusion(
        "variant-renamed", ("canary", "linear", "rolling"),
        "the new configuration must keep the variant's name",
    ),
)


def guardrail_exclusions(*, family: str = "", variants: int = 1, serverless: bool = False,
                         marketplace: bool = False) -> tuple[GuardrailExclusion, ...]:
    """The exclusions that hold for an endpoint.

    Parameters
    ----------
    family : str
        Instance family, such as ``inf1``.
    variants : int
        Number of production variants.
    serverless, marketplace : bool
        Whether the variant is serverless; whether its container comes from AWS Marketplace.

    Examples
    --------
    >>> [exclusion.condition for exclusion in guardrail_exclusions(family="inf1", variants=2)]
    ['inf1', 'several-variants']
    """
    holds = {
        "marketplace": marketplace,
        "inf1": family == "inf1",
        "serverless": serverless,
        "several-variants": variants > 1,
    }
    return tuple(item for item in GUARDRAIL_EXCLUSIONS if holds.get(item.condition))


def takes_guardrails(instance_type: str) -> bool:
    """Whether SageMaker watches deployments on an instance type.

    Examples
    --------
    >>> takes_guardrails("ml.inf1.xlarge"), takes_guardrails("ml.inf2.xlarge")
    (False, True)
    """
    return not instance_type.startswith("ml.inf1.")


def check_guardrails(kind: str, instance_types: Iterable[str], *, rolls_back: bool,
                     where: str = "") -> None:
    """Raise for guardrails on instance types that SageMaker excludes from them, in silence.

    Parameters
    ----------
    kind : str
        ``CANARY``, ``LINEAR``, ``ROLLING`` or ``ALL_AT_ONCE``.
    instance_types : iterable of str
        What the endpoint may run on.
    rolls_back : bool
        Whether alarms roll the deployment back.
    where : str
        Path of the construct or setting, for the error.

    Raises
    ------
    ConfigurationError
        ``LLE523``.
    """
    excluded = [name for name in instance_types if not takes_guardrails(name)]
    if excluded and (kind != "ALL_AT_ONCE" or rolls_back):
        raise INF1_HAS_NO_GUARDRAILS.error(
            got=f"{kind}{' with rollback alarms' if rolls_back else ''} on {excluded[0]}",
            allowed="ALL_AT_ONCE without alarms", where=where)


def instances_in_update(instances: int, rolling_batch_percent: int | None = None) -> int:
    """The most instances while a new version takes over a fleet, or is rolled back.

    Blue/green runs a second fleet. A rolling update runs one batch more, and so does its rollback,
    but only where the policy says so: without ``RollbackMaximumBatchSize`` "the default value will
    be set to 100% of total capacity which means to bring up the whole capacity of the old fleet at
    once during rollback" (API reference, RollingUpdatePolicy). So ours always says it, or the
    rollback would need room that nobody kept.

    Parameters
    ----------
    instances : int
        The fleet's.
    rolling_batch_percent : int, optional
        The batch of a rolling update; by default the update is blue/green.

    Examples
    --------
    >>> instances_in_update(10, 25), instances_in_update(10)
    (13, 20)
    """
    if rolling_batch_percent is None:
        return 2 * instances
    return instances + -(-instances * rolling_batch_percent // 100)
