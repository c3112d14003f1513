"""Judges InvokeEndpoint, as fast as its callers need it: decisions are kept until a policy changes."""

from __future__ import annotations

from ..admission import Credentials
from .actions import rights
from .gate import identity_of
from .judge import check, zonal_endpoints
from .principals import ADMINISTRATOR

_kept: set[tuple[str | None, ...]] = set()
"""What was allowed, and stays so until something is changed."""
_MOST = 10_000
_version = 0


def forget() -> None:
    """Forget what was allowed: something has changed that it may depend on."""
    global _version
    _version += 1
    _kept.clear()


def check_invocation(
    key: str | None,
    credentials: Credentials,
    operation: str,
    endpoint: str,
    component: str | None,
    region: str,
    zone: str | None,
    model: str | None = None,
) -> None:
    asked = (key, operation, endpoint, component, region, zone, model)
    if asked in _kept:
        return
    version, who = _version, identity_of(key, credentials)
    # The account's administrator may do everything, but through an endpoint what that lets through.
    if who is not ADMINISTRATOR or (zone is not None and zonal_endpoints(zone, region)):
        parameters = {
            "EndpointName": endpoint,
            "InferenceComponentName": component,
            "TargetModel": model,
        }
        wanted = rights("sagemaker-runtime", operation, parameters, region, who.principal.account)
        if check(who, wanted, "sagemaker-runtime", region, zone=zone):
            return  # a policy knows the time
    if version == _version and len(_kept) < _MOST:
        _kept.add(asked)
