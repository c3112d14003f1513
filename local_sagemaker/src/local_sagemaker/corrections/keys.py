"""KMS: moto uses keys in any state and of any type, and takes policies that lock everybody out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import request
from moto.core.exceptions import JsonRESTError
from moto.kms.models import KmsBackend

from ..admission import access_key
from ..permissions.evaluator import Asked, NotJudged, decide, read_policy
from ..permissions.gate import is_enforced
from ..permissions.principals import ADMINISTRATOR, identify
from .replacing import around

# What fails in which state: https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
_OF_ENABLED = (
    *("encrypt", "generate_data_key", "sign", "verify", "generate_mac", "verify_mac"),
    *("create_grant", "enable_key_rotation", "disable_key_rotation", "rotate_key_on_demand"),
)
_OF_NOT_DELETED = (
    *("enable_key", "disable_key", "schedule_key_deletion", "create_alias", "update_alias"),
    *("update_key_description", "tag_resource", "untag_resource"),
)


@around(KmsBackend, *_OF_ENABLED)
def with_enabled_key(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse a key that is disabled or to be deleted."""
    _check_state(self, named.get("key_id") or given[0], "Disabled", "PendingDeletion")
    return original(self, *given, **named)


@around(KmsBackend, *_OF_NOT_DELETED)
def with_key(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse a key that is to be deleted."""
    names = ("target_key_id", "key_id", "key_id_or_arn", "arn")
    key = next((named[name] for name in names if name in named), None) or given[0]
    _check_state(self, key, "PendingDeletion")
    return original(self, *given, **named)


@around(KmsBackend)
def decrypt(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse a key that is disabled or to be deleted; the ciphertext names it."""
    plaintext, arn = original(self, *given, **named)
    _check_state(self, arn, "Disabled", "PendingDeletion")
    return plaintext, arn


@around(KmsBackend, "enable_key_rotation", "rotate_key_on_demand")
def rotate(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse what is not rotated: API reference, EnableKeyRotation."""
    key = self.keys[self.any_id_to_key_id(named.get("key_id") or given[0])]
    if _kind(key) != "symmetric":
        raise JsonRESTError("UnsupportedOperationException", f"{key.arn} cannot be rotated.")
    return original(self, *given, **named)


@around(KmsBackend)
def update_alias(
    original: Callable[..., Any], self: Any, target_key_id: str, alias_name: str
) -> Any:
    """Refuse a key of another type or usage: API reference, UpdateAlias."""
    target = self.keys[self.any_id_to_key_id(target_key_id)]
    for key in list(self.keys.values()):
        kinds = {(_kind(one), one.key_usage) for one in (key, target)}
        if alias_name in key.aliases and len(kinds) > 1:
            raise JsonRESTError(
                "ValidationException",
                "The current and new KMS key must be the same type (both symmetric or both "
                "asymmetric or both HMAC), and they must have the same key usage.",
            )
    return original(self, target_key_id, alias_name)


def _kind(key: Any) -> str:
    if key.key_spec in ("SYMMETRIC_DEFAULT", "SM4"):
        return "symmetric"
    return "HMAC" if key.key_spec.startswith("HMAC") else "asymmetric"


def _check_state(backend: Any, key_id: str, *refused: str) -> None:
    key = backend.keys.get(backend.any_id_to_key_id(key_id))
    if key is None or key.key_state not in refused:
        return
    if key.key_state == "Disabled":
        raise JsonRESTError("DisabledException", f"{key.arn} is disabled.")
    raise JsonRESTError("KMSInvalidStateException", f"{key.arn} is pending deletion.")


@around(KmsBackend)
def create_key(
    original: Callable[..., Any], self: Any, policy: str | None, *given: Any, **named: Any
) -> Any:
    """Refuse a policy by which the caller could not change it again."""
    _check_lockout(self, "*", policy)
    return original(self, policy, *given, **named)


@around(KmsBackend)
def put_key_policy(original: Callable[..., Any], self: Any, key_id: str, policy: str) -> Any:
    """Likewise: API reference, PutKeyPolicy, BypassPolicyLockoutSafetyCheck."""
    _check_lockout(self, key_id, policy)
    return original(self, key_id, policy)


def _check_lockout(backend: Any, key_id: str, policy: str | None) -> None:
    asked_for, is_judged = request.get_json(force=True), is_enforced(f"http://{request.host}")
    if not policy or asked_for.get("BypassPolicyLockoutSafetyCheck") or not is_judged:
        return
    headers = {name.lower(): value for name, value in request.headers.items()}
    who = identify(access_key(request.full_path, headers) or "")
    account = backend.account_id
    arn = f"arn:aws:kms:{backend.region_name}:{account}:key/{key_id}"
    keys = {**who.keys, "kms:calleraccount": account, "aws:principalaccount": account}
    asked = Asked(who.principal, "kms:PutKeyPolicy", arn, account, keys)
    try:
        given = replace(ADMINISTRATOR.policies, resource=read_policy(policy), resource_decides=True)
        allowed = decide(asked, given).allowed
    except (NotJudged, ValueError):
        return
    if not allowed:
        raise JsonRESTError(
            "MalformedPolicyDocumentException",
            "The new key policy will not allow you to update the key policy in the future.",
        )
