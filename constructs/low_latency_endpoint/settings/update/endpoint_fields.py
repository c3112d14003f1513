"""What each setting of an endpoint touches, and what of an endpoint its plan decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ...errors import ConfigurationError
from ...plan.deployments import takes_guardrails
from ...plan.instance_types import instance_facts
from ...plan.latency_plan import Plan
from ..breach import Place
from ..deployment import CanarySettings, DeploymentSettings
from ..endpoint import EndpointSettings
from ..endpoint_checks import rolls_back
from ..plans import latency_thresholds, plan_endpoint
from ..stack import Settings
from .effects import Effect
from .stated_values import with_value

_GUIDE = "https://docs.aws.amazon.com/sagemaker/latest/dg/"
SCALED_VARIANT_SOURCE = _GUIDE + "endpoint-scaling-update.html"
"""Which changes of a variant that scales `UpdateEndpoint` refuses."""

#: What a variant has without a setting: monitoring's AlarmOptions, which plan no number of it.
ALARM_DEFAULTS: Mapping[str, Any] = {
    "error_rate": 0.01,
    "minimum_invocations": 20,
    "cpu_utilization": 85,
    "memory_utilization": 90,
    "disk_utilization": 90,
    "expect_traffic": False,
    "quiet_during_deployments": False,
}


class Part(NamedTuple):
    """A part of an endpoint that a setting changes, whatever the plan says."""

    effect: Effect
    text: str


MODEL = Part(Effect.DEPLOYMENT, "a new model and endpoint configuration")
CONFIGURATION = Part(Effect.DEPLOYMENT, "a new endpoint configuration")
NAME = Part(Effect.REPLACED, "")  # in words of its own
VARIANT = Part(Effect.DEPLOYMENT, "a new endpoint configuration")
CHECK = Part(Effect.IN_PLACE, "the resource that fails a deployment which SageMaker rolled back")
DASHBOARD = Part(Effect.IN_PLACE, "the dashboard")
WARM_UP = Part(Effect.IN_PLACE, "the warm-up, which sends its requests again to what serves then")
TAGS = Part(Effect.IN_PLACE, "the tags")
PLAN = Part(Effect.NOTHING, "the plan alone checks it")
ADVICE = Part(Effect.NOTHING, "low-latency recommend alone reads it")


class Touched(NamedTuple):
    """What a setting touches: parts in any case, and names of :data:`PLANNED` where they differ."""

    parts: tuple[Part, ...] = ()
    planned: tuple[str, ...] = ()


_FLEET = ("initial", "range", "keeps", "subnets", "warm_up")

#: By the setting's beginning; the longest that fits counts.
ENDPOINT_FIELDS: Mapping[str, Touched] = {
    "endpoint_name": Touched((NAME,)),
    "containers": Touched((MODEL,), ("inference_ami",)),
    "inference_mode": Touched((MODEL,)),
    "network_isolation": Touched((MODEL,)),
    "role_arn": Touched((MODEL,)),
    "instance_type": Touched((VARIANT,), ("inference_ami", *_FLEET)),
    "variant_name": Touched((VARIANT,)),
    "latency": Touched((), ("routing", "thresholds", "rollback_alarms", "warm_up")),
    "throughput": Touched((), ("scaling", *_FLEET)),
    "payload_bytes": Touched((PLAN,)),
    "routing": Touched((), ("routing",)),
    "instances": Touched((), ("scaling", *_FLEET)),
    "scaling": Touched((), ("scaling", *_FLEET)),
    "scaling.schedule": Touched((), ("schedule", "subnets")),
    "scaling.steps": Touched((), ("steps",)),
    "confirm_updates": Touched((CHECK,)),
    "deployment": Touched((), ("deployment", "rollback_alarms")),
    "alarms": Touched((), ("thresholds", "alarms", "rollback_alarms")),
    "dashboard": Touched((DASHBOARD,)),
    "warm_up": Touched((WARM_UP,)),
    "warm_up.requests": Touched((), ("warm_up",)),
    "metrics": Touched((CONFIGURATION,)),
    "startup_health_check_timeout": Touched((CONFIGURATION,)),
    "model_data_download_timeout": Touched((CONFIGURATION,)),
    "volume_size_gib": Touched((CONFIGURATION,)),
    "inference_ami": Touched((), ("inference_ami",)),
    "ssm_access": Touched((CONFIGURATION,)),
    "capacity_reservation_arn": Touched((CONFIGURATION,)),
    "core_dump": Touched((CONFIGURATION,)),
    "kms_key_arn": Touched((), ("volume_key",)),
    "kms_key_with_local_storage": Touched((), ("volume_key",)),
    "data_capture": Touched((CONFIGURATION,)),
    "tags": Touched((TAGS,)),
    "recommendation": Touched((ADVICE,)),
}


class Planned(NamedTuple):
    """What follows from several settings: its effect, its words and its value."""

    effect: Effect
    words: str
    of: Callable[[Settings, str], Any]


def _plan(settings: Settings, key: str) -> Plan:
    return plan_endpoint(settings, key)


def _routing(settings: Settings, key: str) -> dict[str, Any]:
    plan = _plan(settings, key)
    request = plan.request
    return {
        "strategy": plan.routing,
        "prefix length": request.prefix_length,
        "concurrency threshold": request.concurrency_threshold,
    }


def _range(settings: Settings, key: str) -> dict[str, int]:
    plan = _plan(settings, key)
    return {"min": plan.fleet.minimum, "max": plan.fleet.maximum} if plan.scaling else {}


def _scaling(settings: Settings, key: str) -> dict[str, Any]:
    policy = _plan(settings, key).scaling
    if policy is None:
        return {}
    return {
        "metric": policy.metric,
        "target": policy.target,
        "scale-out cooldown": timedelta(seconds=policy.scale_out_seconds),
        "scale-in cooldown": timedelta(seconds=policy.scale_in_seconds),
    }


def _schedule(settings: Settings, key: str) -> dict[str, str]:
    stated = _plan(settings, key).request.scaling.schedule
    return {
        each.name: f"{each.text}, {each.expression} in {each.time_zone or 'UTC'}" for each in stated
    }


def _steps(settings: Settings, key: str) -> dict[str, Any]:
    steps = _plan(settings, key).request.scaling.steps
    if steps is None:
        return {}
    return {"adds": steps.text, "periods": steps.periods, "cooldown": steps.cooldown_seconds}


def keeps_counts(settings: Settings, key: str) -> bool:
    """Whether an update keeps the number of instances that run, as ``LowLatencyEndpoint`` says."""
    scaling = settings.endpoints[key].scaling
    if scaling.keep_counts is not None:
        return scaling.keep_counts
    return not scaling.enabled or scales(settings, key)


def scales(settings: Settings, key: str) -> bool:
    """Whether the variant is a scalable target."""
    return _plan(settings, key).scaling is not None


def deployment_of(endpoint: EndpointSettings) -> DeploymentSettings:
    """How a new version takes over, where nothing is stated too."""
    stated = endpoint.deployment
    if stated is not None:
        return stated
    if takes_guardrails(endpoint.instance_type):
        return DeploymentSettings(canary=CanarySettings())
    return DeploymentSettings.model_validate({"all_at_once": {}})


def _deployment(settings: Settings, key: str) -> DeploymentSettings:
    """How a new version takes over, whoever said so; what rolls it back is a matter of its own."""
    stated = deployment_of(settings.endpoints[key])
    return stated.model_copy(update={"rollback_on_alarms": None})


def _thresholds(settings: Settings, key: str) -> dict[str, float]:
    return {
        f"{metric} {statistic}": value
        for metric in ("ModelLatency", "OverheadLatency")
        for statistic, value in latency_thresholds(settings, key, metric).items()
    }


def _rollback_alarms(settings: Settings, key: str) -> tuple[str, ...]:
    """The alarms that SageMaker watches in a deployment, which the endpoint names."""
    endpoint = settings.endpoints[key]
    stated = endpoint.deployment.rollback_on_alarms if endpoint.deployment else None
    if not rolls_back({"rollback_on_alarms": stated}, endpoint.instance_type):
        return ()
    return (*latency_thresholds(settings, key, "ModelLatency"), "errors")


def _alarms(settings: Settings, key: str) -> dict[str, Any]:
    alarms = settings.endpoints[key].alarms
    stated = alarms.model_dump(exclude={"model_latency", "overhead_latency"}) if alarms else {}
    given = {name: value for name, value in stated.items() if value is not None}
    return {"capacity_at_maximum": scales(settings, key), **ALARM_DEFAULTS, **given}


def _warm_up(settings: Settings, key: str) -> dict[str, Any]:
    endpoint = settings.endpoints[key]
    if endpoint.warm_up is None:
        return {}
    return {"requests": _plan(settings, key).warm_up_requests, "target": endpoint.latency}


def _volume_key(settings: Settings, key: str) -> str | None:
    endpoint = settings.endpoints[key]
    facts = instance_facts(endpoint.instance_type)
    local = bool(facts and facts.local_storage_gb) and not endpoint.kms_key_with_local_storage
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
    "volume_key": Planned(Effect.DEPLOYMENT, "the volumes' key", _volume_key),
    "range": Planned(Effect.IN_PLACE, "the range of scaling:", _range),
    "scaling": Planned(Effect.IN_PLACE, "the scaling policy:", _scaling),
    "schedule": Planned(Effect.IN_PLACE, "set times:", _schedule),
    "steps": Planned(Effect.IN_PLACE, "the step scaling policy:", _steps),
    "thresholds": Planned(Effect.IN_PLACE, "alarms in ms:", _thresholds),
    "alarms": Planned(Effect.IN_PLACE, "alarms:", _alarms),
    "warm_up": Planned(Effect.IN_PLACE, "warm-up:", _warm_up),
    "keeps": Planned(
        Effect.NOT_KNOWN, "whether updates keep the number of instances", keeps_counts
    ),
    "deployment": Planned(Effect.NOT_KNOWN, "the deployment policy:", _deployment),
    "rollback_alarms": Planned(Effect.NOT_KNOWN, "rollback alarms:", _rollback_alarms),
}


#: What follows from the client zones, which all endpoints share.
PLANNED_BY_ZONES = ("initial", "range", "keeps", "warm_up")


def alone_changed(before: Settings, key: str, place: Place, value: Any) -> Settings | None:
    """The former settings with one of them as it is now; None where they do not hold together."""
    try:
        made: Settings = with_value(before, place, value)
        plan_endpoint(made, key)
    except ConfigurationError:
        return None
    return made
