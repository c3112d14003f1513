"""Checks before a deploy: would it work in this account?

:func:`run_preflight` reads, and never changes, what the settings' stack needs: credentials, zones,
network, quotas, images, model data, permissions, and what is deployed already. What the
credentials may not read is ``unknown``. See docs/reference/preflight.md for the checks and the permissions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...account.calls import Account
from ...account.sessions import ClientFactory
from ...settings import Settings, planned_variants
from ..checking.checks import Check, run_checks
from ..checking.results import Report
from . import (
    account_checks,
    capacity_checks,
    data_checks,
    image_checks,
    link_checks,
    permission_checks,
    query_checks,
    subnet_checks,
    takeover_checks,
    update_checks,
    zone_checks,
)
from .context import Fetch, PlannedEndpoint, PreflightContext, fetch

__all__ = ["CHECKS", "ENDPOINT_CHECKS", "run_preflight"]

CHECKS: tuple[Check[PreflightContext], ...] = (
    *account_checks.CHECKS,
    *zone_checks.CHECKS,
    *link_checks.CHECKS,
    *subnet_checks.CHECKS,
    *takeover_checks.CHECKS,
    *capacity_checks.CHECKS,
    *permission_checks.CHECKS,
    *query_checks.CHECKS,
)
"""Checks of what the endpoints share; each runs once."""

ENDPOINT_CHECKS: tuple[Check[PlannedEndpoint], ...] = (
    *capacity_checks.ENDPOINT_CHECKS,
    *image_checks.ENDPOINT_CHECKS,
    *data_checks.ENDPOINT_CHECKS,
    *permission_checks.ENDPOINT_CHECKS,
    *update_checks.ENDPOINT_CHECKS,
)
"""Checks of one endpoint; each runs once for each endpoint of the settings."""


def run_preflight(
    settings: Settings,
    client: ClientFactory,
    region: str,
    *,
    what: str = "",
    fetch: Fetch = fetch,
    on_check: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Check an account before a deploy; read-only."""
    variants = list(planned_variants(settings))
    context = PreflightContext(settings, variants, Account(client, region), fetch=fetch)
    steps: list[tuple[Check[Any], Any, str]] = [(each, context, "") for each in CHECKS]
    steps += [
        (each, endpoint, endpoint.key) for each in ENDPOINT_CHECKS for endpoint in context.endpoints
    ]
    return run_checks(what or settings.stack_name, context.account, steps, on_check)
