"""Where two settings files differ, what each setting of an endpoint touches, and what a change is."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ConfigurationError
from ...errors.findings import Place, path_of
from ...errors.frozen import dataclass
from ...facts.deployments import rolls_back
from ...facts.instance_types import instance_facts
from ...facts.prices import Price
from ...options.alarms import DEFAULT_PERIOD_SECONDS, error_share
from ...options.deployment import DeploymentPolicy, default_deployment
from ...options.option import (
    FLEET,
    PLAN,
    STAGING,
    Effect,
    Options,
    Touched,
    changed,
    groups_in,
    options_of,
)
from ...options.variant import FurtherOptions, InstanceOptions
from ...plan.alarm_windows import latency_window, share_window, silence_window, window_text
from ...plan.plan import Plan
from ...plan.secrets import looks_secret
from ..endpoint import EndpointSettings, further_variants
from ..option_models import duration_text
from ..plan_report import latency_thresholds
from ..stack import Settings
from ..variant_plans import (
    plan_endpoint,
    planned_variants,
    token_alarm_count,
    token_limits,
    warm_up_requests,
)

MEANINGS = {
    Effect.NOTHING: "the stack stays as it is; only advice, simulation or commands differ",
    Effect.IN_PLACE: "updated while the endpoint serves; callers notice nothing of the update",
    Effect.NEW: "made beside what is there",
    Effect.DEPLOYMENT: "new instances take over from the old ones, guarded; it takes minutes",
    Effect.NOT_KNOWN: "AWS does not say, and nobody of this project has seen it",
    Effect.REPLACED: "a new one is made, then the old one is deleted",
    Effect.DELETED: "it goes, and whoever uses it fails",
    Effect.REFUSED: "the deployment fails, and its rollback may fail, too: docs/how-to/roll-back.md",
}
"""What each effect is, for people."""


class Consequence(NamedTuple):
    """One thing that a difference does."""

    effect: Effect
    text: str  # what is touched, and what callers see of it
    endpoints: tuple[str, ...] = ()  # keys of the endpoints that it is done to


def greatest(effects: Iterable[Effect]) -> Effect:
    """The one that counts; nothing of none."""
    return max(effects, default=Effect.NOTHING)


@dataclass(frozen=True)
class SettingDifference:
    """One setting that two files state differently."""

    endpoint: str  # the endpoint's key; empty for what all share
    path: str  # the setting, below the endpoint where it is one's
    before: str  # the values as a file has them; empty where it states none
    after: str
    consequences: tuple[Consequence, ...]  # what it does

    @property
    def effect(self) -> Effect:
        """The greatest of what it does."""
        return greatest(effect.effect for effect in self.consequences)

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON-safe data."""
        return {
            "endpoint": self.endpoint or None,
            "setting": f"endpoints.{self.endpoint}.{self.path}".rstrip(".")
            if self.endpoint
            else self.path,
            "before": self.before or None,
            "after": self.after or None,
            "effect": self.effect.word,
            "consequences": [
                {
                    "effect": effect.effect.word,
                    "what": effect.text,
                    "endpoints": list(effect.endpoints),
                }
                for effect in self.consequences
            ],
        }


HIDDEN = "(looks like a secret)"


class Stated(NamedTuple):
    """A setting that two files state differently; ``None`` where one of them does not."""

    place: Place
    before: Any
    after: Any

    @property
    def path(self) -> str:
        """The setting as the file has it."""
        return path_of(self.place)

    @property
    def texts(self) -> tuple[str, str]:
        """Both values for people; empty where there is none."""
        return value_text(self.before, self.place), value_text(self.after, self.place)


def differences(before: Any, after: Any, place: Place = ()) -> Iterator[Stated]:
    """Each setting that differs, as deep as both sides have the same groups."""
    if before == after or _same_files(before, after):
        return
    if type(before) is type(after) and (names := _names(before)):
        for name in names:
            yield from differences(getattr(before, name), getattr(after, name), (*place, name))
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from differences(before.get(name), after.get(name), (*place, name))
    elif _groups(before) and _groups(after):
        for index, (was, now) in enumerate(zip_longest(before, after)):
            yield from differences(was, now, (*place, index))
    else:
        yield Stated(place, before, after)


def _groups(value: Any) -> bool:
    return isinstance(value, tuple) and any(map(_names, value))


def _names(value: Any) -> list[str]:
    """The settings of a group; none of what is no group."""
    if isinstance(value, Options):
        return [option.name for option in options_of(type(value)) if option.option is not None]
    return []


def _same_files(before: Any, after: Any) -> bool:
    """Whether two assets in different folders have the same content."""
    if not (isinstance(before, Path) and isinstance(after, Path)):
        return False
    if before.is_file() and after.is_file():
        return filecmp.cmp(before, after, shallow=False)
    if not (before.is_dir() and after.is_dir()):
        return False
    names = [
        sorted(each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
        for folder in (before, after)
    ]
    return names[0] == names[1] and not any(
        filecmp.cmpfiles(before, after, names[0], shallow=False)[1:]
    )


def with_value(model: Any, place: Place, value: Any) -> Any:
    """A copy in which the setting at a place has another value."""
    if not place:
        return value
    first, *rest = place
    if isinstance(model, Options):
        [of] = [option for option in options_of(type(model)) if option.name == first]
        below = with_value(getattr(model, of.name), tuple(rest), value)
        return changed(model, **{of.name: of.default if below is None else below})
    if isinstance(model, Mapping):
        if value is None and not rest:
            return {name: each for name, each in model.items() if name != first}
        return {**model, first: with_value(model.get(first), tuple(rest), value)}
    items = list(model)
    index = int(first)
    below = items[index] if index < len(items) else None
    item = with_value(below, tuple(rest), value)
    items[index : index + 1] = [] if item is None else [item]
    return tuple(items)


def assets_of(value: Any) -> Iterator[Path]:
    """The files and folders that settings name."""
    if isinstance(value, Path):
        yield value
    elif names := _names(value):
        for name in names:
            yield from assets_of(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from assets_of(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from assets_of(each)


def value_text(value: Any, place: Place = ()) -> str:
    """A value as a settings file writes it, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Price):
        return f"{value.usd:.10g}"
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    if hasattr(value, "in_file"):
        value = value.in_file
    if isinstance(value, Options):
        value = _stated_in(value)
    if isinstance(value, Mapping):
        inner = (f"{key}: {value_text(each, (*place, key))}" for key, each in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(each, place) for each in value) + "]"
    text = str(value)
    named = len(place) > 1 and place[-2] in ("environment", "build_args")
    return HIDDEN if named and looks_secret(str(place[-1]), text) else text


def _stated_in(group: Options) -> dict[str, Any]:
    """The settings of a group that are not as by default, by their names in a file."""
    stated: dict[str, Any] = {}
    for declared in options_of(type(group)):
        value = getattr(group, declared.name)
        if value != declared.default:
            key = declared.option.key if declared.option else ""
            stated[key or declared.name] = value
    return stated


def both_texts(was: Any, now: Any) -> str:
    """A value before and after; of mappings only what differs."""
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was and now:
        return ", ".join(
            f"{name} {both_texts(was.get(name), now.get(name))}"
            for name in dict.fromkeys([*was, *now])
            if was.get(name) != now.get(name)
        )
    before, after = (
        "none" if value in (None, {}, ()) else value_text(value) for value in (was, now)
    )
    return f"{before} -> {after}"


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
        declared = next((option for option in options_of(inside) if option.name == name), None)
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


def _of_plan(value: Callable[[Plan], Any]) -> Callable[[Settings, str], Any]:
    """A value of the plan of an endpoint's first variant."""
    return lambda settings, key: value(plan_endpoint(settings, key))


def _server(plan: Plan) -> Any:
    serving = plan.request.serving.hub
    return None if serving is None else dict(serving.container.environment)


def _further(settings: Settings, key: str) -> dict[str, Any]:
    """The configuration of all variants but the first."""
    return {
        f"{variant.variant} {name}": value
        for variant in planned_variants(settings, key)
        if variant.further
        for name, value in {
            "initial instances": variant.plan.fleet.initial,
            "inference AMI": variant.plan.inference_ami,
            **_routing(variant.plan),
        }.items()
        if value is not None
    }


def _further_scaling(settings: Settings, key: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variant in planned_variants(settings, key):
        plan, policy = variant.plan, variant.plan.scaling
        if variant.further is None or policy is None:
            continue
        scaling = plan.request.scaling
        found[variant.variant] = f"{plan.fleet.minimum} to {plan.fleet.maximum}"
        found |= {
            f"{variant.variant} {name}": value
            for name, value in {
                **_scaling(plan),
                **_schedule(plan),
                "steps": scaling.steps and (scaling.steps.text, scaling.steps.cooldown),
            }.items()
            if value
        }
    return found


def _routing(plan: Plan) -> dict[str, Any]:
    stated = plan.request.routing
    return {
        "strategy": plan.routing,
        "prefix length": stated and stated.prefix_length,
        "concurrency threshold": stated and stated.concurrency_threshold,
    }


def _range(plan: Plan) -> dict[str, int]:
    return {"min": plan.fleet.minimum, "max": plan.fleet.maximum} if plan.scaling else {}


def _scaling(plan: Plan) -> dict[str, Any]:
    policy = plan.scaling
    if policy is None:
        return {}
    values = policy._asdict()
    for name in ("scale_out", "scale_in"):
        cooldown = timedelta(seconds=values.pop(f"{name}_seconds"))
        values[f"{name.replace('_', '-')} cooldown"] = cooldown
    return values


def _schedule(plan: Plan) -> dict[str, str]:
    return {
        action.name: f"{action.text}, {action.expression} in {action.time_zone or 'UTC'}"
        for action in plan.schedule
    }


def _steps(plan: Plan) -> dict[str, Any]:
    steps = plan.request.scaling.steps
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
        variant.variant
        for variant in planned_variants(settings, key)
        if variant.plan.scaling is not None
    }


def scales(settings: Settings, key: str) -> bool:
    """Whether the first variant is a scalable target."""
    return plan_endpoint(settings, key).scaling is not None


def types_of(endpoint: EndpointSettings) -> list[str]:
    """The instance types of all variants."""
    further = [variant.settings.instance_type for variant in further_variants(endpoint)]
    pools = [pool.instance_type for pool in endpoint.instance_pools]
    return [*(pools or [endpoint.instance_type]), *(name for name in further if name)]


def deployment_of(endpoint: EndpointSettings) -> DeploymentPolicy:
    """How a new version takes over, where nothing is stated too."""
    stated = endpoint.deployment
    if stated is not None:
        return stated
    return default_deployment(types_of(endpoint))


def _deployment(settings: Settings, key: str) -> DeploymentPolicy:
    """How a new version takes over, whoever said so; what rolls it back is a matter of its own."""
    policy = deployment_of(settings.endpoints[key])
    return replace(policy, rollback_on_alarms=None)


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
            found |= {f"{limit.measures} {limit.percentile}": limit.seconds for limit in limits}
    others = ("waiting_requests", "kv_cache_use", "minimum_requests")
    stated = {name: getattr(own, name) for name in others} if found else {}
    return found | {name: value for name, value in stated.items() if value is not None}


def _alarms(settings: Settings, key: str) -> dict[str, Any]:
    alarms = settings.endpoints[key].alarms
    apart = {"model_latency", "overhead_latency", "tokens", "actions"}
    given = {name: value for name, value in vars(alarms).items() if name not in apart}
    given["error_rate"] = error_share(alarms, "error_rate")
    given["period"] = alarms.period or timedelta(seconds=DEFAULT_PERIOD_SECONDS)
    if given["capacity_at_maximum"] == "scaled":
        given["capacity_at_maximum"] = scales(settings, key)
    types = tuple(sorted(pool.instance_type for pool in settings.endpoints[key].instance_pools))
    pools = {"types": types} if types else {}  # each has alarms of its own
    return {**pools, **{name: value for name, value in given.items() if value is not None}}


def _alarm_windows(settings: Settings, key: str) -> dict[str, str]:
    """The periods that alarms on latencies and errors evaluate: they follow from the requests' rate."""
    alarms = settings.endpoints[key].alarms
    stated = alarms.window
    windows: dict[str, str] = {}
    for variant in planned_variants(settings, key):
        rate = variant.plan.request.peak_tps
        windows[f"{variant.variant} errors"] = window_text(share_window(stated, rate))
        if alarms.expect_traffic:
            silence = silence_window(stated, variant.plan.request.quiet_tps)
            windows[f"{variant.variant} silence"] = window_text(silence)
        for metric in ("ModelLatency", "OverheadLatency"):
            for statistic in latency_thresholds(settings, key, metric):
                window = latency_window(stated, statistic, rate)
                windows[f"{variant.variant} {metric} {statistic}"] = window_text(window)
    return windows


def _warm_up(settings: Settings, key: str) -> dict[str, Any]:
    endpoint = settings.endpoints[key]
    if endpoint.warm_up is None:
        return {}
    requests = warm_up_requests(settings, key)
    return {"requests": requests, "target": endpoint.latency and endpoint.latency.milliseconds}


def _volume_key(settings: Settings, key: str) -> str | None:
    endpoint = settings.endpoints[key]
    known = [instance_facts(name) for name in types_of(endpoint)]
    local = any(facts and facts.local_storage_gb for facts in known)
    local = local and not endpoint.kms_key_with_local_storage
    return endpoint.kms_key_arn or (None if local else settings.safeguards.kms_key_arn)


PLANNED: Mapping[str, Planned] = {
    "initial": Planned(
        Effect.DEPLOYMENT, "initial instances", _of_plan(lambda plan: plan.fleet.initial)
    ),
    "routing": Planned(Effect.DEPLOYMENT, "routing:", _of_plan(_routing)),
    "inference_ami": Planned(
        Effect.DEPLOYMENT, "inference AMI", _of_plan(lambda plan: plan.inference_ami)
    ),
    "server": Planned(Effect.DEPLOYMENT, "what the server is told:", _of_plan(_server)),
    "volume_key": Planned(Effect.DEPLOYMENT, "the volumes' key", _volume_key),
    "further": Planned(Effect.DEPLOYMENT, "variants:", _further),
    "further_scaling": Planned(Effect.IN_PLACE, "scaling of variants:", _further_scaling),
    "range": Planned(Effect.IN_PLACE, "the range of scaling:", _of_plan(_range)),
    "scaling": Planned(Effect.IN_PLACE, "the scaling policy:", _of_plan(_scaling)),
    "schedule": Planned(Effect.IN_PLACE, "set times:", _of_plan(_schedule)),
    "steps": Planned(Effect.IN_PLACE, "the step scaling policy:", _of_plan(_steps)),
    "thresholds": Planned(Effect.IN_PLACE, "alarms in ms:", _thresholds),
    "alarms": Planned(Effect.IN_PLACE, "alarms:", _alarms),
    "alarm_windows": Planned(Effect.IN_PLACE, "periods of alarms:", _alarm_windows),
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
        settings: Settings = with_value(before, place, value)
        list(planned_variants(settings, key))
    except ConfigurationError:
        return None
    return settings
