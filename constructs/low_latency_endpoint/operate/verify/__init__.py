"""Checks after a deploy: is it as planned? Reads services and network; unseen is ``unknown``."""

from __future__ import annotations

from contextlib import suppress

from ...account.calls import Account
from ...account.deployed_endpoints import meant_stack
from ...account.sessions import ClientFactory, Unreadable
from ..checking.checks import OnCheck, Report, run_checks
from . import alarm_checks, fleet_checks, path_checks  # noqa: F401
from .context import Machine, VerificationContext

__all__ = ["Machine", "run_verification"]


def run_verification(
    stack_name: str,
    client: ClientFactory,
    region: str,
    *,
    machine: Machine | None = None,
    on_check: OnCheck | None = None,
) -> Report:
    """Check a deployed stack against its plan; read-only."""
    account = Account(client, region)
    with suppress(Unreadable):
        account.identity()  # without credentials nothing else is asked
    with suppress(Unreadable):
        stack_name = meant_stack(account, stack_name)
    context = VerificationContext(stack_name, account, machine or Machine())
    return run_checks("LLV", stack_name, context, on_check)
