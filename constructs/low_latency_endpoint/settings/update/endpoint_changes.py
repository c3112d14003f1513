"""What becomes of one endpoint: of each setting, and of another lock file of a pinned model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...errors.findings import Place
from ...facts.token_values import is_token
from ...hugging_face import HUB
from ...hugging_face.hub_options import HuggingFaceSettings
from ...hugging_face.lock_file import pinned_model
from ...options.option import CONFIGURATION, MODEL, NAME, STAGING, VARIANT, Effect, Options, Touched
from ...options.throughput import counted_instances
from ...plan.pinned_model import PinnedFile, PinnedModel
from ...plan.plan import Plan
from ...report.numbers import readable
from ..endpoint import (
    OF_FURTHER,
    EndpointSettings,
    ShadowSettings,
    VariantSettings,
    further_variants,
)
from ..stack import Settings
from ..variant_plans import has_own_model, hub_models, planned_variants, served_containers
from .claims import has_endpoint_name
from .endpoint_fields import (
    PLANNED,
    PLANNED_BY_ZONES,
    Consequence,
    SettingDifference,
    Stated,
    alone_changed,
    both_texts,
    differences,
    keeps_counts,
    scaled_variants,
    touched_at,
)
from .shared_fields import subnets

_CODE = (
    *(".py", ".pyc", ".so", ".whl", ".egg", ".jar", ".sh", ".joblib", ".dill", ".mar"),
    *(".h5", ".keras", ".pb", ".npy", ".npz", ".plan", ".engine", ".nemo", ".jinja"),
    *("requirements.txt", "serving.properties"),
)
"""Ends of files' names: code, archives of code, graphs and templates that are run, arrays that may
be pickled, what is installed or names code to run."""
_SWITCH = "TRUST_REMOTE_CODE"  # how a server's variable ends that has a model's own code run
_MOST_NAMES = 5  # of files; a comment has other things to say too
_SHORT = 12  # digits of a commit
_PINNED_ALIKE = Consequence(Effect.NOTHING, "the model is pinned as before")


def lock_consequences(
    before: HuggingFaceSettings, after: HuggingFaceSettings, key: str
) -> list[Consequence]:
    """What another lock file does to an endpoint whose settings name the same model."""
    old, new = (pinned_model(settings.lock, settings.model) for settings in (before, after))
    found = [change._replace(endpoints=(key,)) for change in _changes(old, new)]
    return found or [_PINNED_ALIKE]


def lock_warnings(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """What a reviewer must look at: files that can run code, code that now runs, another licence."""
    there, ran, runs = _pinned(before), _own_code(before), _own_code(after)
    for place, new in _pinned(after).items():
        old = there.get(place)
        known = set(old.files) if old and old.model == new.model else set()
        risky = [file.path for file in new.files if file not in known and _runs(file)]
        if risky:
            yield f"{new.model} gets files that run code when they are loaded: {_names(risky)}"
        if runs[place] and not ran.get(place):
            yield f"the server begins to run the code of {new.model}: {_names(runs[place])}"
        if old and old.model == new.model and old.license != new.license:
            yield f"another licence of {new.model} in the lock file: {_licences(old, new)}"


def hub_warnings(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """Another host than before, which gets the token of the Hub."""
    former = {group.hub_endpoint for group in hub_models(before)} or {HUB}
    for group in hub_models(after):
        if group.hub_endpoint not in former:
            yield f"the token of the Hub goes to another host: {group.hub_endpoint}"


#: What an instance holds of requests depends on these.
_DECIDE_A_MEASUREMENT = ("instance_type", "tokens", "payload_bytes")


def stale_measurements(before: EndpointSettings, after: EndpointSettings) -> Iterator[str]:
    """A throughput that stays as it was measured, for other requests or on another type."""
    if before.throughput is None or after.throughput is None:
        return
    measured = after.throughput.tps_per_instance
    if is_token(measured) or measured != before.throughput.tps_per_instance:
        return
    changed = [
        name
        for name in _DECIDE_A_MEASUREMENT
        if getattr(before, name) is not None and getattr(before, name) != getattr(after, name)
    ]
    if changed:
        yield (
            f"throughput.tps_per_instance stays {readable(measured)} while {' and '.join(changed)} "
            "changed: what an instance holds then was not measured. Load-test again"
        )


def shifted_loads(before: Settings, after: Settings, key: str) -> Iterator[str]:
    """Variants whose former fleet gets too much in the deployment, which starts as many as run.

    By another weight they get more requests at once; by another type an instance may hold fewer.
    """
    if not keeps_counts(after, key):
        return
    former = {variant.variant: variant.plan for variant in planned_variants(before, key)}
    for variant in planned_variants(after, key):
        plan = variant.plan
        old = former.get(variant.variant)
        measured, held = plan.request.throughput, plan.held_tps
        if old is None or measured is None or held is None or _is_shadow(plan):
            continue
        running = old.usual.serving_at_peak
        why = _why_more(variant.variant, old, plan)
        if not why or running >= plan.fleet.at_peak:
            continue
        used = readable(100 * measured.peak_tps / float(running * held.limit), 3)
        yield (
            f"{why}, and the {counted_instances(running)} that run at the peak stay until scaling "
            f"follows: {used} % of their limit. Raise its minimum to {plan.fleet.at_peak} in a deployment "
            "before, or deploy while load is low"
        )


def _is_shadow(plan: Plan) -> bool:
    return plan.request.share is not None and plan.request.share.shadow


def _why_more(name: str, old: Plan, new: Plan) -> str:
    """Why a deployment leaves each instance of a variant more to do; empty if it does not."""
    former, share = old.request.share, new.request.share
    measured, held = new.request.throughput, new.held_tps
    grows = former is not None and share is not None and share.fraction > former.fraction
    if grows and measured is not None:
        rate = readable(measured.peak_tps)
        return f"{name} gets {rate} requests per second at the peak as soon as the weights change"
    is_other = new.request.serving != old.request.serving
    if (
        is_other
        and held is not None
        and old.held_tps is not None
        and held.limit < old.held_tps.limit
    ):
        limits = [readable(float(each.limit), 4) for each in (old.held_tps, held)]
        return f"an instance of {name} holds {limits[1]} requests per second after it, {limits[0]} before"
    return ""


def _pinned(endpoint: EndpointSettings) -> dict[str, PinnedModel]:
    """The pinned models of an endpoint, by variant; the first variant's has no name."""
    stated = {"": endpoint.hugging_face} | {
        variant.name: variant.settings.hugging_face for variant in further_variants(endpoint)
    }
    return {name: pinned_model(each.lock, each.model) for name, each in stated.items() if each}


def _own_code(endpoint: EndpointSettings) -> dict[str, list[str]]:
    """The code beside the weights that is run, as the environment says; by variant as in _pinned."""
    stated = {"": None} | {each.name: each.settings for each in further_variants(endpoint)}
    found = {}
    for name, pinned in _pinned(endpoint).items():
        variables = served_containers(endpoint, stated[name])[0].environment
        switches = [value for key, value in variables.items() if key.endswith(_SWITCH)]
        runs = any(value.lower() in ("true", "1") for value in switches)
        found[name] = [file.path for file in pinned.files if runs and file.path.endswith(".py")]
    return found


def _runs(file: PinnedFile) -> bool:
    """Whether loading the file, or what serves it, can run code that the file carries."""
    lowered = file._replace(path=file.path.lower())
    return lowered.is_pickle or lowered.path.endswith(_CODE)


def _changes(old: PinnedModel, new: PinnedModel) -> Iterator[Consequence]:
    if old == new:
        return
    was, now = ({file.path: file for file in one.files} for one in (old, new))
    other = [path for path, file in now.items() if path in was and was[path] != file]
    if other and old.commit == new.commit:
        yield Consequence(
            Effect.REFUSED,
            f"other bytes of {_names(other)} at the same commit {old.commit[:_SHORT]}: a commit of "
            "the Hub has one content, so low-latency pin did not write this lock file, and staging "
            "refuses these files",
        )
    facts = {
        f"commit {old.commit[:_SHORT]} -> {new.commit[:_SHORT]}": old.commit != new.commit,
        f"files with other content: {_names(other)}": other,
        f"files added: {_names([each for each in now if each not in was])}": now.keys() - was,
        f"files removed: {_names([each for each in was if each not in now])}": was.keys() - now,
        f"pickle files: {_pickles(old)} -> {_pickles(new)}": _pickles(old) != _pickles(new),
        f"licence {_licences(old, new)}": old.license != new.license,
    }
    facts |= {
        f"another {name}": getattr(old, name) != getattr(new, name)
        for name in ("task", "library", "parameters", "config", "gated")
    }
    if said := [text for text, differs in facts.items() if differs]:
        moved = old.prefix != new.prefix  # where the files lie, which the model names
        effect = Effect.DEPLOYMENT if moved else Effect.NOTHING
        yield Consequence(effect, f"another pin of {new.model}: {'; '.join(said)}")


def _pickles(pinned: PinnedModel) -> str:
    return _names([file.path for file in pinned.files if file.is_pickle])


def _licences(old: PinnedModel, new: PinnedModel) -> str:
    return f"{old.license or 'not stated'} -> {new.license or 'not stated'}"


def _names(paths: Sequence[str]) -> str:
    more = len(paths) - _MOST_NAMES
    names = ", ".join(paths[:_MOST_NAMES])
    return f"{names} and {more} more" if more > 0 else names or "none"


_AS_PLANNED = Consequence(Effect.NOTHING, "the plan comes out the same")
UNSTATED = Consequence(Effect.NOT_KNOWN, "no effect is stated for this setting: see cdk diff")


def differences_of_endpoint(
    before: Settings, after: Settings, key: str
) -> Iterator[SettingDifference]:
    """Each setting of an endpoint that differs, or the endpoint that comes or goes."""
    was, now = before.endpoints.get(key), after.endpoints.get(key)
    if was is None or now is None:
        consequences = _added(before, after, key) if was is None else _removed(before, after, key)
        old, new = ("" if each is None else each.instance_type for each in (was, now))
        yield SettingDifference(key, "", old, new, tuple(consequences))
        return
    found = [*differences(was, now)]
    alone = {
        each.place: alone_changed(before, key, ("endpoints", key, *each.place), each.after)
        for each in found
    }
    together = _together_only(before, after, key, found, alone)
    for stated in found:
        touched = touched_by(stated)
        effects = _other_pin(was, now, key, stated)
        variant = _variant(before, key, stated)
        for part in () if effects else touched.parts:
            gone = len(stated.place) == (2 if stated.place[0] == "variants" else 1)
            removed = variant is not None and gone and stated.after is None
            if part is NAME:
                effects.append(_renamed(before, after, key))
            elif (part is VARIANT or removed) and (
                _touched_variants(before, key, stated) & scaled_variants(before, key)
            ):
                effects.append(_of_scaled(stated, key))
            else:
                of = () if part is STAGING else (key,)  # the stack's, for all endpoints
                effects.append(Consequence(part.effect, part.text, of))
        names = [
            name
            for name in touched.planned
            if name in together or _changes_alone(before, alone[stated.place], key, name)
        ]
        effects += _follows(before, after, key, names)
        by_default = UNSTATED._replace(endpoints=(key,)) if touched == Touched() else _AS_PLANNED
        yield difference(key, stated, tuple(effects) or (by_default,))


def _other_pin(
    was: EndpointSettings, now: EndpointSettings, key: str, stated: Stated
) -> list[Consequence]:
    """Effects of another lock file of the same model; empty for any other setting."""
    if stated.place[-2:] != ("hugging_face", "lock"):
        return []
    old, new = (_at(settings, stated.place[:-1]) for settings in (was, now))
    return lock_consequences(old, new, key) if old.model == new.model else []


def _at(endpoint: EndpointSettings, place: Place) -> Any:
    """The group of settings at a place below an endpoint's."""
    found: Any = endpoint
    for part in place:
        found = found[part] if isinstance(found, Mapping) else getattr(found, str(part))
    return found


def touched_by(stated: Stated) -> Touched:
    """What a setting of an endpoint touches."""
    place = stated.place
    if place[0] not in ("variants", "shadow"):
        return touched_at(place, EndpointSettings)
    group: type[Options] = VariantSettings if place[0] == "variants" else ShadowSettings
    if below := place[2:] if place[0] == "variants" else place[1:]:
        return touched_at(below, group)
    own = any(has_own_model(each) for each in (stated.before, stated.after))
    return Touched((MODEL if own else CONFIGURATION,), OF_FURTHER)


def _touched_variants(before: Settings, key: str, stated: Stated) -> set[str]:
    """The variants whose name or instance type a setting changes."""
    variant = _variant(before, key, stated)
    if variant is not None:
        return {variant}
    endpoint = before.endpoints[key]
    found = {endpoint.variant_name}
    if stated.place[0] in ("instance_type", "instance_pools"):  # those of all that state none
        further = further_variants(endpoint)
        found |= {each.name for each in further if each.settings.instance_type is None}
    return found


def _variant(before: Settings, key: str, stated: Stated) -> str | None:
    """The variant beside the first that a setting is of."""
    if stated.place[0] == "variants":
        return str(stated.place[1])
    shadow = before.endpoints[key].shadow
    return shadow.name if stated.place[0] == "shadow" and shadow else None


def _changes_alone(before: Settings, alone: Settings | None, key: str, name: str) -> bool:
    """Whether a setting changes alone what the plan decides; so it is said where it cannot be."""
    if alone is None or name == "subnets":
        return True
    return bool(PLANNED[name].of(alone, key) != PLANNED[name].of(before, key))


def _together_only(
    before: Settings,
    after: Settings,
    key: str,
    found: list[Stated],
    alone: dict[Place, Settings | None],
) -> set[str]:
    """What only several settings together change: each of them is said to."""
    candidates: list[tuple[tuple[str, ...], Settings | None]] = [
        (PLANNED_BY_ZONES, alone_changed(before, key, ("client_zones",), zones))
        for zones in [after.client_zones]
        if zones != before.client_zones
    ]
    candidates += [(touched_by(each).planned, alone[each.place]) for each in found]
    return {
        name
        for name, planned in PLANNED.items()
        if planned.of(before, key) != planned.of(after, key)
        and not any(
            name in names and _changes_alone(before, made, key, name) for names, made in candidates
        )
    }


def _follows(
    before: Settings, after: Settings, key: str, names: Iterable[str]
) -> Iterator[Consequence]:
    """Changes of the plan that follow from a setting."""
    for name in names:
        if name == "subnets":
            if not any(_same_shared(before, after)):
                yield from subnets(before, after)
            continue
        planned = PLANNED[name]
        was, now = planned.of(before, key), planned.of(after, key)
        if was == now:
            continue
        text = f"{planned.words} {both_texts(was, now)}"
        if "initial instances" in text and keeps_counts(after, key):
            text += "; as many instances as run now stay"
            if name == "initial" and after.endpoints[key].instances.initial is None:
                text += f" (instances.initial: {was} spares the deployment)"
        yield Consequence(planned.effect, text, (key,))


def _renamed(before: Settings, after: Settings, key: str) -> Consequence:
    was, now = before.endpoints[key].endpoint_name, after.endpoints[key].endpoint_name
    if now is not None and has_endpoint_name(before, now):
        return _taken(now, key)
    old, new = was or "the endpoint of the derived name", now or "an endpoint of a derived name"
    return Consequence(
        Effect.REPLACED,
        f"{new} comes up beside {old}, then {old} is deleted; whoever invokes it "
        "by that name is served until then, and fails from then on",
        (key,),
    )


def _taken(name: str, key: str) -> Consequence:
    return Consequence(
        Effect.REFUSED,
        f"SageMaker refuses a second endpoint {name}: CloudFormation makes the new one before it "
        "deletes the old one; take another name, or delete first and deploy again",
        (key,),
    )


def _of_scaled(stated: Stated, key: str) -> Consequence:
    what = "to change the name of"
    if stated.path.endswith("instance_type"):
        what = "to change the instance type of"
    elif stated.after is None:
        what = "to remove"
    further = stated.place[0] in ("variants", "shadow")
    off = (
        "its scaling: {enabled: false}"
        if further
        else "scaling: {enabled: false, keep_counts: true}"
    )
    return Consequence(
        Effect.REFUSED,
        f"UpdateEndpoint refuses {what} a variant that scales; in two deployments: "
        f"{off} first (docs/explanation/updates.md)",
        (key,),
    )


def _added(before: Settings, after: Settings, key: str) -> Iterator[Consequence]:
    stated = after.endpoints[key]
    if stated.endpoint_name and has_endpoint_name(before, stated.endpoint_name):
        yield _taken(stated.endpoint_name, key)
    fleets = ", ".join(
        f"{variant.plan.fleet.initial} x {variant.plan.request.serving.instance_type}"
        for variant in planned_variants(after, key)
    )
    yield Consequence(Effect.NEW, f"an endpoint, {fleets} at first", (key,))
    if not any(_same_shared(before, after)):
        yield from subnets(before, after)


def _removed(before: Settings, after: Settings, key: str) -> Iterator[Consequence]:
    name = before.endpoints[key].endpoint_name or "the endpoint"
    text = f"{name}, with its model, alarms and dashboard: whoever invokes it fails"
    if any(other not in before.endpoints for other in after.endpoints):
        text += "; a key names the resources, so that another key makes another endpoint"
    yield Consequence(Effect.DELETED, text, (key,))
    if not any(_same_shared(before, after)):
        yield from subnets(before, after)


def _same_shared(before: Settings, after: Settings) -> Iterator[bool]:
    """Whether a shared setting differs that says itself what becomes of the subnets."""
    yield before.client_zones != after.client_zones
    yield any(
        getattr(before.network, name) != getattr(after.network, name)
        for name in ("vpc_id", "subnets", "cidr", "subnet_prefix_length")
    )


def difference(
    key: str, stated: Stated, consequences: tuple[Consequence, ...]
) -> SettingDifference:
    """A difference with its values for people."""
    return SettingDifference(key, stated.path, *stated.texts, consequences)


def longest(table: Mapping[str, Any], stated: Stated) -> Any:
    """The row of the longest beginning of a setting's path."""
    names = [str(part) for part in stated.place if isinstance(part, str)]
    for length in range(len(names), 0, -1):
        row = table.get(".".join(names[:length]))
        if row is not None:
            return row
    raise KeyError(stated.path)
