"""IAM's SimulatePrincipalPolicy, answered by the judge of real requests. moto does not have it.

The simulation knows the policies of the role or user, its boundary, and the condition keys that the
request states; a key that is not stated is a missing one.

Source: IAM API reference, SimulatePrincipalPolicy; IAM user guide, "IAM policy testing with the IAM
policy simulator".
"""

from __future__ import annotations

from typing import Any

from .application import Caller, OwnService
from .permissions.evaluator import Asked, decide
from .permissions.principals import Identity, named_identity
from .protocols import ServiceError

_EVERYTHING = ["*"]  # "If this parameter is not provided, then the value defaults to *"
_NOT_SIMULATED = (
    "CallerArn",
    "PermissionsBoundaryPolicyInputList",
    "PolicyInputList",
    "ResourceHandlingOption",
    "ResourceOwner",
    "ResourcePolicy",
)


class _StatedKeys(dict[str, "str | tuple[str, ...]"]):
    """Condition keys of a simulated request; notes those that were asked for and not stated."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        super().__init__()
        self.missing: set[str] = set()
        for entry in entries:
            values = tuple(entry.get("ContextKeyValues") or ())
            is_list = entry.get("ContextKeyType", "").endswith("List")
            self[entry["ContextKeyName"].lower()] = values if is_list else "".join(values[:1])

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self.missing.add(key)
        return super().get(key, default)


def simulate_principal_policy(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """SimulatePrincipalPolicy: each action on each resource, by the policies as they are now."""
    if stated := [name for name in _NOT_SIMULATED if request.get(name)]:
        raise ServiceError(f"{stated[0]} is not emulated by the local AWS", "InvalidAction")
    arn = request["PolicySourceArn"]
    who = named_identity(arn)
    if who is None:
        raise ServiceError(f"There is no role or user {arn}.", "NoSuchEntity", 404)
    return {
        "IsTruncated": False,
        "EvaluationResults": [
            _evaluated(who, action, resource, _StatedKeys(request.get("ContextEntries") or []))
            for action in request["ActionNames"]
            for resource in request.get("ResourceArns") or _EVERYTHING
        ],
    }


def _evaluated(who: Identity, action: str, resource: str, keys: _StatedKeys) -> dict[str, Any]:
    """Give the decision on one action and resource, as IAM calls it."""
    asked = Asked(who.principal, action, resource, who.principal.account, keys)
    decision = decide(asked, who.policies)
    denied = "explicitDeny" if "explicit deny" in decision.reason else "implicitDeny"
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": "allowed" if decision.allowed else denied,
        "MissingContextValues": sorted(keys.missing),
    }


POLICY_SIMULATION = OwnService("iam", {"SimulatePrincipalPolicy": simulate_principal_policy})
