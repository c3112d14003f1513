"""What each setting of an endpoint touches, and what of an endpoint its plan decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from ...errors import ConfigurationError
from ...errors.findings import Place
from ...facts.deployments import rolls_back
from ...facts.instance_types import instance_facts
from ...options.deployment import DeploymentPolicy, default_deployment
from ...options.effects import PLAN, STAGING, Effect, Touched
from ...options.option import Options, groups_in, options_of
from ...options.variant import FLEET, FurtherOptions, InstanceOptions
from ...plan.plan import Plan
from ..endpoint import EndpointSettings
from ..planned import plan_endpoint, planned_variants
from ..plans import latency_thresholds
from ..stack import Settings
from ..token_alarms import token_alarm_count, token_limits
from ..variants import further_variants
from .stated_values import with_value

#: Of the first variant's model only; those of another one's touch what ``hugging_face`` does.
_OF_HUB_MODEL: Mapping[str, Touched] = {
    "hugging_face.accept_license": Touched((PLAN,)),
    "hugging_face.trust_remote_code": Touched(planned=("server",)),
    "hugging_face.hub_endpoint": Touched((STAGING,)),
    "hugging_face.token_secret_arn": Touched((STAGING,)),
}


def touched_at(place: Place, group: type[Options]) -> Touched:
    """What a setting below a group touches: as it says, or as the nearest group around it does."""
    names = [each for each in place if isinstance(each, str)]
    further = issubclass(group, FurtherOptions)
    if not further and (row := _OF_HUB_MODEL.get(".".join(names[:2]))):
        return row
    found, inside = Touched(), group
    for name in names:
        declared = next((each for each in options_of(inside) if each.name == name), None)
        if declared is None or declared.option is None:
            break
        found = declared.option.touches or found
        below = groups_in(declared.kind)
        if not below:
            break
        inside = below[0]
    if further and hasattr(InstanceOptions, names[0]):
        return found._replace(planned=tuple(each for each in found.planned if each in FLEET))
    return found


class Planned(NamedTuple):
    """What follows from several settings: its effect, its words and its value."""

    effect: Effect
    words: str
    of: Callable[[Settings, str], Any]


def _server(settings: Settings, key: str) -> Any:
    serving = _plan(settings, key).request.serving.hub
    return None if serving is None else dict(serving.container.environment)


def _plan(settings: Settings, key: str) -> Plan:
    return plan_endpoint(settings, key)


def _further(settings: Settings, key: str) -> dict[str, Any]:
    """What the configuration has of the variants beside the first."""
    return {
        f"{each.variant} {name}": value
        for each in planned_variants(settings, key)
        if each.further
        for name, value in {
            "initial instances": each.plan.fleet.initial,
            "inference AMI": each.plan.inference_ami,
            **_routing_of(each.plan),
        }.items()
        if value is not None
    }


def _further_scaling(settings: Settings, key: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in planned_variants(settings, key):
        plan, policy = each.plan, each.plan.scaling
        if each.further is None or policy is None:
            continue
        scaling = plan.request.scaling
        found[each.variant] = f"{plan.fleet.minimum} to {plan.fleet.maximum}"
        found |= {
            f"{each.variant} {name}": value
            for name, value in {
                **_policy_of(plan),
                **_schedule_of(plan),
                "steps": scaling.steps and (scaling.steps.text, scaling.steps.cooldown),
            }.items()
            if value
        }
    return found


def _routing(settings: Settings, key: str) -> dict[str, Any]:
    return _routing_of(_plan(settings, key))


def _routing_of(plan: Plan) -> dict[str, Any]:
    stated = plan.request.routing
    return {
        "strategy": plan.routing,
        "prefix length": stated and stated.prefix_length,
        "concurrency threshold": stated and stated.concurrency_threshold,
    }


def _range(settings: Settings, key: str) -> dict[str, int]:
    plan = _plan(settings, key)
    return {"min": plan.fleet.minimum, "max": plan.fleet.maximum} if plan.scaling else {}


def _scaling(settings: Settings, key: str) -> dict[str, Any]:
    return _policy_of(_plan(settings, key))


def _policy_of(plan: Plan) -> dict[str, Any]:
    policy = plan.scaling
    if policy is None:
        return {}
    return {
        "metric": policy.metric,
        "target": policy.target,
        "scale-out cooldown": timedelta(seconds=policy.scale_out_seconds),
        "scale-in cooldown": timedelta(seconds=policy.scale_in_seconds),
    }


def _schedule(settings: Settings, key: str) -> dict[str, str]:
    return _schedule_of(_plan(settings, key))


def _schedule_of(plan: Plan) -> dict[str, str]:
    stated = plan.request.scaling.schedule
    return {
        each.name: f"{each.text}, {each.expression} in {each.time_zone or 'UTC'}" for each in stated
    }


def _steps(settings: Settings, key: str) -> dict[str, Any]:
    steps = _plan(settings, key).request.scaling.steps
    if steps is None:
        return {}
    return {"adds": steps.text, "periods": steps.periods, "cooldown": steps.cooldown}


def keeps_counts(settings: Settings, key: str) -> bool:
    """Whether an update keeps the number of instances that run, as ``LowLatencyEndpoint`` says."""
    scaling = settings.endpoints[key].scaling
    if scaling.keep_counts is not None:
        return scaling.keep_counts
    return not scaling.enabled or bool(scaled_variants(settings, key))


def scaled_variants(settings: Settings, key: str) -> set[str]:
    """The variants that are scalable targets."""
    return {
        each.variant for each in planned_variants(settings, key) if each.plan.scaling is not None
    }


def scales(settings: Settings, key: str) -> bool:
    """Whether the first variant is a scalable target."""
    return _plan(settings, key).scaling is not None


def types_of(endpoint: EndpointSettings) -> list[str]:
    """The instance types of all variants."""
    further = [each.settings.instance_type for each in further_variants(endpoint)]
    pools = [each.instance_type for each in endpoint.instance_pools]
    return [*(pools or [endpoint.instance_type]), *(name for name in further if name)]


def deployment_of(endpoint: EndpointSettings) -> DeploymentPolicy:
    """How a new version takes over, where nothing is stated too."""
    stated = endpoint.deployment
    if stated is not None:
        return stated
    return default_deployment(types_of(endpoint))


def _deployment(settings: Settings, key: str) -> DeploymentPolicy:
    """How a new version takes over, whoever said so; what rolls it back is a matter of its own."""
    stated = deployment_of(settings.endpoints[key])
    return replace(stated, rollback_on_alarms=None)


def _thresholds(settings: Settings, key: str) -> dict[str, float]:
    return {
        f"{metric} {statistic}": value
        for metric in ("ModelLatency", "OverheadLatency")
        for statistic, value in latency_thresholds(settings, key, metric).items()
    }


def _rollback_alarms(settings: Settings, key: str) -> tuple[str, ...]:
    """The alarms that SageMaker watches in a deployment, which the endpoint names."""
    endpoint = settings.endpoints[key]
    stated = endpoint.deployment
    if not rolls_back(stated.rollback_on_alarms if stated else None, types_of(endpoint)):
        return ()
    watched = (*latency_thresholds(settings, key, "ModelLatency"), "errors")
    return (*watched, *(f"{name} {each}" for name in endpoint.variants for each in watched))


def _token_alarms(settings: Settings, key: str) -> dict[str, Any]:
    """Alarms on tokens: what they watch of each variant, by whose metrics."""
    endpoint = settings.endpoints[key]
    own = endpoint.alarms.tokens
    found: dict[str, Any] = {}
    for variant in planned_variants(settings, key):
        if not variant.shadow and token_alarm_count(endpoint, variant.plan):
            limits = token_limits(endpoint, variant.plan)
            found[variant.variant] = variant.plan.request.server_of_metrics
            found |= {f"{each.measures} {each.percentile}": each.seconds for each in limits}
    others = ("waiting_requests", "kv_cache_use", "minimum_requests")
    stated = {name: getattr(own, name) for name in others} if found else {}
    return found | {name: value for name, value in stated.items() if value is not None}


def _alarms(settings: Settings, key: str) -> dict[str, Any]:
    alarms = settings.endpoints[key].alarms
    apart = {"model_latency", "overhead_latency", "tokens", "actions"}
    given = {name: value for name, value in vars(alarms).items() if name not in apart}
    if given["capacity_at_maximum"] == "scaled":
        given["capacity_at_maximum"] = scales(settings, key)
    types = tuple(sorted(each.instance_type for each in settings.endpoints[key].instance_pools))
    pools = {"types": types} if types else {}  # each has alarms of its own
    return {**pools, **{name: value for name, value in given.items() if value is not None}}


def _warm_up(settings: Settings, key: str) -> dict[str, Any]:
    endpoint = settings.endpoints[key]
    if endpoint.warm_up is None:
        return {}
    requests = max(each.plan.warm_up_requests for each in planned_variants(settings, key))
    return {"requests": requests, "target": endpoint.latency and endpoint.latency.milliseconds}


def _volume_key(settings: Settings, key: str) -> str | None:
    endpoint = settings.endpoints[key]
    known = [instance_facts(name) for name in types_of(endpoint)]
    local = any(facts and facts.local_storage_gb for facts in known)
    local = local and not endpoint.kms_key_with_local_storage
    return endpoint.kms_key_arn or (None if local else settings.safeguards.kms_key_arn)


PLANNED: Mapping[str, Planned] = {
    "initial": Planned(
        Effect.DEPLOYMENT,
        "initial instances",
        lambda settings, key: _plan(settings, key).fleet.initial,
    ),
    "routing": Planned(Effect.DEPLOYMENT, "routing:", _routing),
    "inference_ami": Planned(
        Effect.DEPLOYMENT, "inference AMI", lambda settings, key: _plan(settings, key).inference_ami
    ),
    "server": Planned(Effect.DEPLOYMENT, "what the server is told:", _server),
    "volume_key": Planned(Effect.DEPLOYMENT, "the volumes' key", _volume_key),
    "further": Planned(Effect.DEPLOYMENT, "variants:", _further),
    "further_scaling": Planned(Effect.IN_PLACE, "scaling of variants:", _further_scaling),
    "range": Planned(Effect.IN_PLACE, "the range of scaling:", _range),
    "scaling": Planned(Effect.IN_PLACE, "the scaling policy:", _scaling),
    "schedule": Planned(Effect.IN_PLACE, "set times:", _schedule),
    "steps": Planned(Effect.IN_PLACE, "the step scaling policy:", _steps),
    "thresholds": Planned(Effect.IN_PLACE, "alarms in ms:", _thresholds),
    "alarms": Planned(Effect.IN_PLACE, "alarms:", _alarms),
    "token_alarms": Planned(Effect.IN_PLACE, "alarms on tokens:", _token_alarms),
    "warm_up": Planned(Effect.IN_PLACE, "warm-up:", _warm_up),
    "keeps": Planned(
        Effect.NOT_KNOWN, "whether updates keep the number of instances", keeps_counts
    ),
    "deployment": Planned(Effect.NOT_KNOWN, "the deployment policy:", _deployment),
    "rollback_alarms": Planned(Effect.NOT_KNOWN, "rollback alarms:", _rollback_alarms),
}


#: What follows from the client zones, which all endpoints share.
PLANNED_BY_ZONES = tuple(each for each in FLEET if each != "subnets")


def alone_changed(before: Settings, key: str, place: Place, value: Any) -> Settings | None:
    """The former settings with one of them as it is now; None where they do not hold together."""
    try:
        made: Settings = with_value(before, place, value)
        list(planned_variants(made, key))
    except ConfigurationError:
        return None
    return made
