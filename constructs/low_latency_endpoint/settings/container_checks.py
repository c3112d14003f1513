"""What the containers of one model demand of each other, with the line of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors.findings import Finding, breaches, finding
from ..options.rules import EXACTLY_ONE, MISSING_SETTING, NEEDS_ANOTHER
from ..plan import limits
from ..plan.rules import (
    DIRECT_NEEDS_HOSTNAMES,
    HOSTNAME_TWICE,
    HOSTNAMES_ALL_OR_NONE,
    MODE_NEEDS_CONTAINERS,
)
from .model_base import items_of, mapping_of


def container_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """Containers fit together, and the settings' size limits hold over all of them."""
    containers = items_of(given, "containers")
    if "containers" in given and isinstance(given["containers"], (list, tuple)):
        yield from breaches(("containers",), limits.CONTAINER_COUNT.check, len(containers))
    mode = given.get("inference_mode")
    if len(containers) > 1 and mode is None:
        yield finding(
            NEEDS_ANOTHER,
            "containers",
            got=f"{len(containers)} containers",
            allowed="inference_mode: Serial or Direct",
            what="several containers need an inference mode",
            fix="Add inference_mode: Serial (a pipeline) or Direct (callers choose "
            "one by hostname).",
        )
    if len(containers) == 1 and mode is not None:
        yield finding(
            MODE_NEEDS_CONTAINERS, "inference_mode", got=mode, allowed="no mode with one container"
        )
    yield from _hostnames(containers, mode)
    yield from _environments(containers)


def one_way_to_serve(given: Mapping[str, Any], *, needed: bool) -> Iterator[Finding]:
    """Containers, or a model of the Hub: not both, and one of them where it is needed."""
    found = [name for name in ("containers", "hugging_face") if name in given]
    if len(found) > 1:
        yield finding(
            EXACTLY_ONE, found[1], got=" and ".join(found), allowed="containers or hugging_face"
        )
    elif needed and not found:
        yield finding(
            MISSING_SETTING,
            got="neither containers nor hugging_face",
            allowed="one of them",
            what="what is served is missing",
            fix="Add containers, such as containers: [{image: {ecr: {repository: my-model}}}], or "
            "hugging_face: {model: Qwen/Qwen3-8B}.",
        )


def _hostnames(containers: list[Any], mode: Any) -> Iterator[Finding]:
    names = [
        mapping_of({"container": container}, "container").get("hostname")
        for container in containers
    ]
    if len(names) < 2:
        return
    nameless = [index for index, name in enumerate(names) if name is None]
    if nameless and mode == "Direct":
        for index in nameless:
            yield finding(
                DIRECT_NEEDS_HOSTNAMES,
                "containers",
                index,
                got="no hostname",
                allowed="a hostname for each container",
            )
    elif 0 < len(nameless) < len(names):
        yield finding(
            HOSTNAMES_ALL_OR_NONE,
            "containers",
            nameless[0],
            got="no hostname, but others have one",
            allowed="a hostname for each container, or for none",
        )
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield finding(
                HOSTNAME_TWICE,
                "containers",
                index,
                "hostname",
                got=name,
                allowed="each hostname once",
            )


def environment_checks(environment: Mapping[str, Any]) -> Iterator[Finding]:
    """One container's environment keeps its limits."""
    yield from breaches(("environment",), limits.ENVIRONMENT_ENTRIES.check, len(environment))
    for key, value in environment.items():
        if isinstance(value, str):
            size = len(value.encode("utf-8", "replace"))
            yield from breaches(("environment", key), limits.ENVIRONMENT_VALUE_BYTES.check, size)


def _environments(containers: list[Any]) -> Iterator[Finding]:
    total = 0
    for container in containers:
        environment = mapping_of(mapping_of({"container": container}, "container"), "environment")
        total += sum(
            len(text.encode("utf-8", "replace"))
            for pair in environment.items()
            for text in pair
            if isinstance(text, str)
        )
    yield from breaches(("containers",), limits.ENVIRONMENT_TOTAL_BYTES.check, total)
