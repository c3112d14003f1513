"""Is the instance type offered, does the quota hold the fleet twice, may functions run?

No API lists the types that SageMaker hosts in a region. Service Quotas has one quota per type,
named ``ml.g5.xlarge for endpoint usage``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...account.calls import Account
from ...account.stacks import stack_description, template_resources
from ...errors.shell_words import shell_word
from ...facts.warm_up_rules import LEAST_UNRESERVED, least_unreserved
from ...report.numbers import readable
from ...settings import instances_in_update
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from .context import PlannedEndpoint, PreflightContext

_QUOTAS = "/servicequotas/latest/userguide/intro.html"
_SAGEMAKER_QUOTAS = "/general/latest/gr/sagemaker.html"


def _quota(account: Account, instance_type: str) -> tuple[Mapping[str, Any] | None, str]:
    """The type's quota, and whether its value is the account's own or AWS's default."""
    name = f"{instance_type} for endpoint usage"
    # Quotas whose applied value Service Quotas does not know are in the second list only.
    for operation, kind in (
        ("list_service_quotas", "applied"),
        ("list_aws_default_service_quotas", "AWS's default"),
    ):
        for quota in account.every("service-quotas", operation, "Quotas", ServiceCode="sagemaker"):
            if quota["QuotaName"] == name:
                return quota, kind
    return None, ""


def _types(context: PlannedEndpoint) -> Iterator[tuple[str, str]]:
    several = len(context.types) > 1
    return ((name if several else "", name) for name in context.types)


@endpoint_check(
    "LLP301",
    "The instance type is offered for hosting in the region",
    how="Reads the type's quota. Warns if it has none.",
    source=_QUOTAS,
    each=_types,
)
def type_offered(context: PlannedEndpoint, instance_type: str) -> Outcome:
    quota, _ = _quota(context.account, instance_type)
    if quota is None:
        return warned(
            f'Service Quotas has no quota "{instance_type} for endpoint usage" in '
            f"{context.account.region}: the type is probably not offered there",
            "Choose a type with a quota, or try this type: no AWS page says that a "
            "type without a quota is not offered.",
        )
    return passed(f"{instance_type} has an endpoint quota in {context.account.region}")


def _needed(context: PreflightContext) -> Iterator[tuple[str, str, int, int]]:
    """Each instance type twice, and how many of it all endpoints need during an update, and at most."""
    needed: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    for endpoint in context.endpoints:
        for variant in endpoint.variants:
            most = variant.plan.largest_fleet
            for kind in variant.plan.request.serving.types:  # any pool may have to serve alone
                needed[kind] += instances_in_update(most, endpoint.settings)
                largest[kind] += most
    return ((kind, kind, count, largest[kind]) for kind, count in needed.items())


@check(
    "LLP302",
    "The quota covers twice the largest fleet",
    how=("Adds up all endpoints of a type. A rolling deployment needs the fleet and one batch."),
    source=_SAGEMAKER_QUOTAS,
    each=_needed,
)
def quota_holds(
    context: PreflightContext, instance_type: str, needed: int, largest: int
) -> Outcome:
    quota, known = _quota(context.account, instance_type)
    if quota is None:
        return unknown("there is no such quota: see LLP301")
    problem = quota.get("ErrorReason")
    if problem or quota.get("Value") is None:
        why = (problem or {}).get("ErrorMessage", "no value")
        return unknown(f"the quota's value is not available: {why}")
    value = quota["Value"]
    evidence = (
        f"quota {readable(value)} ({known}), {largest} at most in service, {needed} during an "
        "update; other endpoints of the account count too"
    )
    code = quota.get("QuotaCode", "")
    if value >= needed:
        return passed(evidence)
    ask = (
        f"Ask for {needed} or more: `aws service-quotas request-service-quota-increase "
        f"--service-code sagemaker --quota-code {shell_word(code)} --desired-value {needed}`."
    )
    return failed(evidence, ask)


_FUNCTIONS = 2  # of a warm-up: controller and sender
_EXECUTIONS_QUOTA = "L-B99A9384"  # Lambda's "Concurrent executions"


@check(
    "LLP303",
    "Lambda has concurrency for the warm-up",
    how=(
        "`reserved_concurrency` must leave 100 executions unreserved, or all of a smaller "
        "quota. Warns below a quota of 100, as in new accounts."
    ),
    source="/lambda/latest/dg/configuration-concurrency.html",
)
def functions_may_run(context: PreflightContext) -> Outcome | None:
    """What is to be reserved leaves what AWS keeps unreserved, and the quota is no new account's.

    What the deployed stack reserves already is given back, or kept, by an update.
    """
    warmed = [
        endpoint.settings.warm_up
        for endpoint in context.endpoints
        if endpoint.settings.warm_up and endpoint.settings.warm_up.requests != 0
    ]
    if not warmed:
        return None
    limit = context.account.read("lambda", "get_account_settings")["AccountLimit"]
    quota, unreserved = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    wanted = sum(_FUNCTIONS * (warm_up.reserved_concurrency or 0) for warm_up in warmed)
    more = max(0, wanted - _reserved(context)) if wanted else 0
    left, least = unreserved - more, least_unreserved(quota)
    ask = (
        f"ask for a larger quota: `aws service-quotas request-service-quota-increase "
        f"--service-code lambda --quota-code {_EXECUTIONS_QUOTA} --desired-value 1000`."
    )
    if more and left < least:
        return failed(
            f"{more} more reserved of {unreserved} executions leave {left}, AWS keeps at "
            f"least {least} unreserved",
            f"Write a lower `reserved_concurrency`, or {ask}",
        )
    evidence = (
        f"{more} more reserved of {unreserved} executions leave {left} for all other functions"
        if wanted
        else f"nothing is reserved; {unreserved} executions for all functions without a reservation"
    )
    if quota < LEAST_UNRESERVED:
        return warned(
            f"{evidence}: a quota of {quota} executions, shared with every function in "
            "the account, may throttle the warm-up",
            "A warm-up that is throttled tries again until its timeout. To be safe, " + ask,
        )
    return passed(evidence)


def _reserved(context: PreflightContext) -> int:
    """Executions that the functions of the deployed stack reserve."""
    name = context.settings.stack_name
    if stack_description(context.account, name) is None:
        return 0
    found = (
        resource.get("Properties", {}).get("ReservedConcurrentExecutions")
        for resource in template_resources(context.account, name).values()
        if resource.get("Type") == "AWS::Lambda::Function"
    )
    return sum(int(count) for count in found if count)
