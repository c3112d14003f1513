"""What becomes of an endpoint, by what CloudFormation does with its resources."""

from __future__ import annotations

from .effects import Effect, EndpointOutcome
from .refusals import refused_variants, taken_name
from .resource_changes import Resource, ResourceChange, ResourceEffect
from .stack_update import CONFIGURATION, ENDPOINT, GOES, MODEL, StackUpdate

#: What CloudFormation sends with the configuration that serves already.
_WITH_SAME_CONFIGURATION = {
    "DeploymentConfig": "the deployment policy and its rollback alarms",
    "RetainAllVariantProperties": "whether updates keep the number of instances",
    "ExcludeRetainedVariantProperties": "which values of variants an update keeps",
}
_SAME_CONFIGURATION = (
    "an update with the configuration that serves already, which SageMaker may refuse, ignore or "
    "deploy: change it together with the configuration (docs/explanation/updates.md)"
)
_STAYS = EndpointOutcome(Effect.NOTHING, "it stays as it is")
_SERVES_ON = EndpointOutcome(Effect.IN_PLACE, "it serves on with the instances that it has")


def endpoint_outcome(update: StackUpdate, key: str) -> EndpointOutcome:
    """What becomes of one endpoint; the text of a deployment is left to the plan."""
    endpoints = (change for change in update.changes_for(key) if change.kind == ENDPOINT)
    endpoint = next(endpoints, None)
    if endpoint is None:
        return _STAYS
    was, now = _name(update.former(endpoint)), _name(update.later(endpoint))
    if endpoint.effect is ResourceEffect.DELETED:
        text = f"{was}, with its model, alarms and dashboard: whoever invokes it fails"
        return EndpointOutcome(Effect.DELETED, text)
    if endpoint.effect not in (*GOES, ResourceEffect.ADDED):
        return _kept(update, key, endpoint)
    taken = taken_name(update.before, now)
    if taken:
        return EndpointOutcome(Effect.REFUSED, taken)
    if endpoint.effect is ResourceEffect.ADDED:
        return EndpointOutcome(Effect.NEW, f"an endpoint {now}")
    return EndpointOutcome(
        Effect.REPLACED,
        f"{now} comes up beside {was}, then {was} is deleted; whoever invokes it by that name is "
        "served until then, and fails from then on",
    )


def _kept(update: StackUpdate, key: str, endpoint: ResourceChange) -> EndpointOutcome:
    """What becomes of an endpoint that is neither made nor replaced."""
    own = update.changes_for(key)
    if any(change.kind == CONFIGURATION and change.effect in GOES for change in own):
        refusal = refused_variants(update, key)
        return EndpointOutcome(Effect.REFUSED if refusal else Effect.DEPLOYMENT, refusal)
    changed = [name for name in _WITH_SAME_CONFIGURATION if name in endpoint.properties]
    if changed:
        words = ", ".join(_WITH_SAME_CONFIGURATION[name] for name in changed)
        return EndpointOutcome(Effect.NOT_KNOWN, f"{words}: {_SAME_CONFIGURATION}")
    touched = any(change.effect is not ResourceEffect.LEFT for change in own)
    return _SERVES_ON if touched or _models_wait(update, key) else _STAYS


def _models_wait(update: StackUpdate, key: str) -> bool:
    """Whether an endpoint's models wait for what changes, such as what several have on one role."""
    waited: set[str] = set()
    for change in update.changes_for(key):
        if change.kind == MODEL:
            waited |= set(update.former(change).get("DependsOn", ()))
            waited |= set(update.later(change).get("DependsOn", ()))
    changes = (update.changes[name] for name in waited if name in update.changes)
    return any(change.effect is not ResourceEffect.LEFT for change in changes)


def _name(endpoint: Resource) -> str:
    name = endpoint.get("Properties", {}).get("EndpointName")
    return name if isinstance(name, str) else "the endpoint"
