"""JumpStart's catalogue: one model of it, read from AWS's public bucket, as it is pinned.

A manifest in the bucket names each version of each model and the key of its specification. What is
taken of that is what SageMaker's own SDK takes (sagemaker-core 2.27.0: jumpstart/cache.py, types.py,
artifacts/): a configuration from the ranking, with its components over what all have, and of that
the image, the files and the environment of the instance type, else of its family.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..plan.jumpstart_rules import JUMPSTART_MODEL, JUMPSTART_NOT_FILES, JUMPSTART_UNREACHABLE
from ..plan.pinned_jumpstart import (
    PinnedJumpStartModel,
    check_jumpstart_region,
    jumpstart_bucket,
    pinned_jumpstart,
)

MANIFEST = "models_manifest.json"
LARGEST_DOCUMENT = 100_000_000
"""Bytes that are read of a document; the manifest has some megabytes."""
_FAMILY = re.compile(r"ml[._]([a-z\d-]+)\.?\w*")
# sagemaker-core, jumpstart/types.py, JumpStartConfigComponent.OVERRIDING_DENY_LIST
_NOT_OF_COMPONENTS = frozenset(
    [
        "model_id",
        "url",
        "version",
        "min_sdk_version",
        "deprecated",
        "deprecated_message",
        "deprecate_warn_message",
        "resource_name_base",
        "gated_bucket",
        "training_supported",
        "incremental_training_supported",
    ]
)
_TIMEOUTS = {
    "model_data_download_timeout": "download_timeout",
    "container_startup_health_check_timeout": "start_timeout",
}

Read = Callable[[str], bytes]
"""Gives the bytes of a key in the Region's public bucket."""


class Pinned(NamedTuple):
    """A pinned model, and what JumpStart says of it that is to be known."""

    model: PinnedJumpStartModel
    notes: tuple[str, ...]


def pin_jumpstart(read: Read, model: str, region: str, version: str | None = None) -> Pinned:
    """Pin a model as JumpStart has it in a Region.

    Parameters
    ----------
    read : callable
        :func:`bucket_reader`.
    model : str
        Its ID.
    region : str
    version : str, optional
        By default the newest.

    Raises
    ------
    ConfigurationError
        LLE395 for what JumpStart does not have, LLE316 for what is served of more than files,
        LLE317 for a bucket that does not answer as it should, LLE397 for a Region without one.
    """
    check_jumpstart_region(region)
    try:
        header = _header(json.loads(read(MANIFEST)), model, version, region)
        specification = json.loads(read(str(header["spec_key"])))
        stated = _stated(specification, region, f"{model} {header['version']}")
        pinned = pinned_jumpstart(model, {**stated, "version": header["version"]})
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise JUMPSTART_UNREACHABLE.error(
            got=f"a catalogue in another form: {problem!r}",
            allowed="manifest and specification as SageMaker's SDK reads them",
            where=jumpstart_bucket(region),
        ) from None
    return Pinned(pinned, tuple(_notes(specification)))


def bucket_reader(region: str, profile: str | None = None) -> Read:
    """What reads the public bucket of a Region: with credentials if there are some, else without."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    session = boto3.Session(profile_name=profile, region_name=region)
    # Credentials whose policies do not allow it are refused where nobody's are not.
    ways = [Config(signature_version=UNSIGNED)]
    if session.get_credentials() is not None:
        ways.insert(0, Config())
    clients = [session.client("s3", config=each) for each in ways]

    def read(key: str) -> bytes:
        problem: Exception | None = None
        for client in clients:
            try:
                body = client.get_object(Bucket=jumpstart_bucket(region), Key=key)["Body"]
                content: bytes = body.read(LARGEST_DOCUMENT + 1)
            except (BotoCoreError, ClientError) as error:
                problem = error
                continue
            if len(content) <= LARGEST_DOCUMENT:
                return content
            problem = ValueError(f"more than {LARGEST_DOCUMENT:,} bytes")
        raise JUMPSTART_UNREACHABLE.error(
            got=f"{key}: {problem}", allowed="an answer", where=jumpstart_bucket(region)
        ) from None

    return read


def differences(read: Read, pinned: PinnedJumpStartModel) -> list[str]:
    """What is otherwise in JumpStart than in the lock file, a line for each.

    Raises
    ------
    ConfigurationError
        As :func:`pin_jumpstart`, when that cannot be known.
    """
    newest = pin_jumpstart(read, pinned.model, pinned.region).model
    found = []
    if newest.version != pinned.version:
        found.append(f"{newest.version} is newer than {pinned.version}")
        newest = pin_jumpstart(read, pinned.model, pinned.region, pinned.version).model
    if newest.digest != pinned.digest:
        found.append(f"{pinned.version} is served otherwise than when it was pinned")
    return found


def _header(manifest: Any, model: str, version: str | None, region: str) -> Mapping[str, Any]:
    versions: dict[str, Mapping[str, Any]] = {
        each["version"]: each for each in manifest if each["model_id"] == model
    }
    if version is None and versions:
        return versions[max(versions, key=_ordered)]
    if version in versions:
        return versions[version]
    known = sorted({str(each["model_id"]) for each in manifest})
    raise JUMPSTART_MODEL.error(
        got=f"{model} {version or ''}".strip(),
        allowed=", ".join(sorted(versions, key=_ordered))
        or ", ".join(difflib.get_close_matches(model, known, n=5))
        or f"one of {len(known):,} models",
        where=region,
    )


def _ordered(version: str) -> list[tuple[int, str]]:
    """As people mean it: 1.10.0 after 1.9.0, a release after its candidates."""
    parts = re.findall(r"\d+|[a-z]+", version.lower())
    return [(int(each), "~") if each.isdigit() else (-1, each) for each in parts]


def _stated(specification: Mapping[str, Any], region: str, name: str) -> dict[str, Any]:
    """What a lock file says of a model, as :func:`.pinned_jumpstart.pinned_jumpstart` takes it."""
    servings: dict[str, dict[str, Any]] = {}
    served: set[str] = set()
    used: list[Mapping[str, Any]] = []
    refused: list[str] = []
    for configuration in _configurations(specification):
        reason = _not_files(configuration)
        if reason:
            refused.append(reason)
            continue
        types = configuration.get("supported_inference_instance_types") or ()
        for each in [each for each in types if each not in served]:
            serving = _serving(configuration, region, str(each))
            if serving is None:
                continue
            served.add(each)
            same = servings.setdefault(
                json.dumps(serving, sort_keys=True), {"instance_types": [], **serving}
            )
            same["instance_types"].append(each)
            used += [configuration] if configuration not in used else []
    if not used:
        raise JUMPSTART_NOT_FILES.error(
            got=f"{name}: {', '.join(dict.fromkeys(refused)) or f'no image in {region}'}",
            allowed="an image with files that hold all it needs",
            where=region,
        )
    first = used[0]
    asked = first.get("deploy_kwargs") or {}
    return {
        "region": region,
        "gated": bool(specification.get("gated_bucket")),
        "eula": first.get("hosting_eula_key"),
        "default_instance_type": first.get("default_inference_instance_type"),
        "network_isolation": all(each.get("inference_enable_network_isolation") for each in used),
        "servings": list(servings.values()),
        **{ours: asked[theirs] for theirs, ours in _TIMEOUTS.items() if theirs in asked},
    }


def _configurations(specification: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The configurations, the best first; a specification without any is one itself."""
    named = specification.get("inference_configs")
    if not named:
        yield specification
        return
    components = specification.get("inference_config_components") or {}
    rankings = specification.get("inference_config_rankings") or {}
    ranked = (rankings.get("overall") or {}).get("rankings") or sorted(named)
    for name in [each for each in ranked if each in named]:
        whole: Mapping[str, Any] = specification
        for component in named[name].get("component_names") or ():
            own = components[component]
            whole = _over(whole, {k: own[k] for k in own if k not in _NOT_OF_COMPONENTS})
        yield whole


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping over another, key by key to the bottom; lists are replaced."""
    found = dict(below)
    for key, value in above.items():
        under = found.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        found[key] = _over(under, value) if both and under else value
    return found


def _not_files(configuration: Mapping[str, Any]) -> str:
    """What it is served of beside an image and files; empty when nothing."""
    if configuration.get("hosting_model_package_arns"):
        return "a model package of AWS Marketplace"
    if any((configuration.get("hosting_additional_data_sources") or {}).values()):
        # AdditionalModelDataSources of CreateModel, which CloudFormation does not have.
        return "further data, such as a draft model for speculative decoding"
    if not configuration.get("hosting_prepacked_artifact_key") and configuration.get(
        "hosting_use_script_uri", True
    ):
        return "a script that the SDK packs with the files"
    return ""


def _serving(
    configuration: Mapping[str, Any], region: str, instance_type: str
) -> dict[str, Any] | None:
    """Image, files and environment on a type; None where the Region has no image for it."""
    variants = configuration.get("hosting_instance_type_variants") or {}
    family = _FAMILY.fullmatch(instance_type)
    by_name = variants.get("variants") or {}
    own = [by_name.get(instance_type) or {}, by_name.get(family[1] if family else "") or {}]

    def first(kind: str, name: str) -> Any:
        return next((found for each in own if (found := (each.get(kind) or {}).get(name))), None)

    alias = first("regional_properties", "image_uri")
    aliases = (variants.get("regional_aliases") or {}).get(region) or {}
    image = aliases.get(str(alias).removeprefix("$"))
    packed = configuration.get("hosting_prepacked_artifact_key")
    artifact = first("properties", "prepacked_artifact_key") or packed
    if not packed:
        artifact = first("properties", "artifact_key") or configuration.get("hosting_artifact_key")
    if image is None or artifact is None:
        return None
    environment = {
        each["name"]: str(each["default"])
        for each in configuration.get("inference_environment_variables") or ()
        if each["default"] is not None
    }
    for each in reversed(own):
        stated = (each.get("properties") or {}).get("environment_variables") or {}
        environment |= {name: str(value) for name, value in stated.items()}
    return {"image": image, "artifact": artifact, "environment": environment}


def _notes(specification: Mapping[str, Any]) -> Iterator[str]:
    if specification.get("deprecated"):
        told = specification.get("deprecated_message") or "choose another version"
        yield f"JumpStart calls this version deprecated: {told}"
    if specification.get("inference_vulnerable"):
        found = ", ".join(map(str, specification.get("inference_vulnerabilities") or ()))
        yield f"JumpStart names known vulnerabilities: {found or 'not which'}"
