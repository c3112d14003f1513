"""Is the instance type offered, and does the quota hold the fleet twice?

No API lists the types that SageMaker hosts in a region. Service Quotas has one quota per type,
named ``ml.g5.xlarge for endpoint usage``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..checking.account import Account, Unreadable
from ..checking.checks import check
from ..checking.results import Outcome, failed, passed, unknown, warned
from .context import EndpointContext, PreflightContext

__all__ = ["CHECKS", "ENDPOINT_CHECKS"]

_QUOTAS = "/servicequotas/latest/userguide/intro.html"
_SAGEMAKER_QUOTAS = "/general/latest/gr/sagemaker.html"


def _quota(account: Account, instance_type: str) -> tuple[Mapping[str, Any] | None, str]:
    """The type's quota, and whether its value is the account's own or AWS's default."""
    name = f"{instance_type} for endpoint usage"
    # Quotas whose applied value Service Quotas does not know are in the second list only.
    for operation, kind in (("list_service_quotas", "applied"),
                            ("list_aws_default_service_quotas", "AWS's default")):
        for quota in account.every("service-quotas", operation, "Quotas",
                                   ServiceCode="sagemaker"):
            if quota["QuotaName"] == name:
                return quota, kind
    return None, ""


@check("LLP301", "The instance type is offered for hosting in the region", source=_QUOTAS)
def type_offered(context: EndpointContext) -> Iterator[Outcome]:
    """Judged by its quota, since no API says it."""
    instance_type = context.settings.instance_type
    quota, _ = _quota(context.account, instance_type)
    if quota is None:
        yield warned(f"Service Quotas has no quota \"{instance_type} for endpoint usage\" in "
                     f"{context.account.region}: the type is probably not offered there",
                     "Choose a type that has one, or try it out: no page of AWS's says that a "
                     "type without a quota is not offered.")
    else:
        yield passed(f"{instance_type} has an endpoint quota in {context.account.region}")


@check("LLP302", "The quota holds the largest fleet twice", source=_SAGEMAKER_QUOTAS)
def quota_holds(context: PreflightContext) -> Iterator[Outcome]:
    """All endpoints of one type share the type's quota; a blue/green update needs two fleets."""
    needed: dict[str, int] = {}
    largest: dict[str, int] = {}
    for each in context.endpoints:
        kind = each.settings.instance_type
        needed[kind] = needed.get(kind, 0) + each.instances_during_update
        largest[kind] = largest.get(kind, 0) + each.largest_fleet
    for kind, count in needed.items():
        yield _holds(context.account, kind, count, largest[kind])


def _holds(account: Account, instance_type: str, needed: int, largest: int) -> Outcome:
    try:
        quota, known = _quota(account, instance_type)
    except Unreadable as refusal:
        return unknown(refusal.evidence, refusal.mend, about=instance_type)
    if quota is None:
        return unknown("there is no such quota: see LLP301", about=instance_type)
    problem = quota.get("ErrorReason")
    if problem or quota.get("Value") is None:
        return unknown(f"the quota's value is not available: "
                       f"{(problem or {}).get('ErrorMessage', 'no value')}", about=instance_type)
    value = quota["Value"]
    evidence = (f"quota {value:g} ({known}), {largest} at most in service, {needed} during an "
                "update; other endpoints of the account count too")
    code = quota.get("QuotaCode", "")
    if value >= needed:
        return passed(evidence, about=instance_type)
    ask = (f"Ask for {needed} or more: `aws service-quotas request-service-quota-increase "
           f"--service-code sagemaker --quota-code {code} --desired-value {needed}`.")
    return failed(evidence, ask, about=instance_type)


CHECKS = (quota_holds,)
ENDPOINT_CHECKS = (type_offered,)
