"""Checks before a deploy: would it work in this account? Read-only; unreadable is ``unknown``."""

from __future__ import annotations

from ...account.calls import Account
from ...account.sessions import ClientFactory
from ...settings import Settings, planned_variants
from ..checking.checks import OnCheck, Report, run_checks
from . import (  # noqa: F401
    account_checks,
    capacity_checks,
    data_checks,
    image_checks,
    link_checks,
    permission_checks,
    subnet_checks,
    update_checks,
)
from .context import PreflightContext


def run_preflight(
    settings: Settings,
    client: ClientFactory,
    region: str,
    *,
    what: str = "",
    deploying_role: str | None = None,
    on_check: OnCheck | None = None,
) -> Report:
    """Check an account before a deploy; read-only. Without ``deploying_role``, CDK's is asked about."""
    variants = list(planned_variants(settings))
    context = PreflightContext(
        settings, variants, Account(client, region), deploying_role=deploying_role
    )
    return run_checks("LLP", what or settings.stack_name, context, on_check)
