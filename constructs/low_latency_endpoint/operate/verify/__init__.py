"""Checks after a deploy: is it as planned?

:func:`run_verification` compares the template's plan (metadata ``LowLatencyEndpoint::Plan``) with
what the services say, and looks at the network from where it runs. Only reads; what the
credentials may not read, or cannot be seen from outside the VPC, is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...account.calls import Account
from ...account.sessions import ClientFactory, Unreadable
from ...account.stacks import STACK_EXISTS, stack_description, stack_endpoints
from ..checking.checks import Check, check, run_checks
from ..checking.results import Outcome, Report, passed, unknown, warned
from . import alarm_checks, fleet_checks, path_checks, query_alarm_checks, zone_checks
from .context import Machine, VerificationContext, VerifiedEndpoint

__all__ = ["CHECKS", "ENDPOINT_CHECKS", "Machine", "run_verification"]


@check("LLV102", "The template has endpoints, with their plans", how="Unknown without a plan.")
def _has_plans(context: VerificationContext) -> list[Outcome]:
    """Without the template nothing can be compared."""
    found = stack_endpoints(context.account, context.stack_name)
    without = [each.name for each in found if not each.plan]
    if not found:
        return [warned("the template has no SageMaker endpoint", "Name the stack that has it.")]
    if without:
        return [
            unknown(
                f"no plan for {', '.join(without)}: what LowLatencyEndpoint makes has "
                "one, in the endpoint's metadata"
            )
        ]
    return [passed(f"{len(found)} with a plan: {', '.join(each.name for each in found)}")]


def _without_endpoints(each: Check[VerifiedEndpoint]) -> Check[VerificationContext]:
    """Stand in for an endpoint's check when the endpoints cannot be read, and say why."""

    def find(context: VerificationContext) -> list[Outcome]:
        return [unknown(f"{endpoint.key} was not checked") for endpoint in context.endpoints]

    return Check(each.id, each.title, each.how, each.source, find)


CHECKS: tuple[Check[VerificationContext], ...] = (
    _has_plans,
    *zone_checks.CHECKS,
    *path_checks.CHECKS,
    *alarm_checks.CHECKS,
    *query_alarm_checks.CHECKS,
)
"""Checks of what the endpoints share; each runs once."""

ENDPOINT_CHECKS: tuple[Check[VerifiedEndpoint], ...] = (
    *zone_checks.ENDPOINT_CHECKS,
    *path_checks.ENDPOINT_CHECKS,
    *fleet_checks.ENDPOINT_CHECKS,
    *alarm_checks.ENDPOINT_CHECKS,
)
"""Checks of one endpoint; each runs once for each endpoint of the stack."""


def run_verification(
    stack_name: str,
    client: ClientFactory,
    region: str,
    *,
    machine: Machine | None = None,
    on_check: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Check a deployed stack against its plan; read-only."""
    account = Account(client, region)
    context = VerificationContext(stack_name, account, machine or Machine())
    with suppress(Unreadable):
        account.identity()  # without credentials nothing else is asked
    with suppress(Unreadable):
        if stack_description(account, stack_name) is None:
            raise STACK_EXISTS.error(
                got=stack_name, allowed="the name of a deployed stack", where=stack_name
            )
    steps: list[tuple[Check[Any], Any, str]] = [(each, context, "") for each in CHECKS]
    try:
        steps += [
            (each, endpoint, endpoint.key)
            for each in ENDPOINT_CHECKS
            for endpoint in context.endpoints
        ]
    except Unreadable:
        # Which endpoints there are is not known: each of their checks says so.
        steps += [(_without_endpoints(each), context, "") for each in ENDPOINT_CHECKS]
    return run_checks(stack_name, account, steps, on_check)
