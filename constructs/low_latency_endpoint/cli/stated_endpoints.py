"""Which endpoint is meant, and which sides of a comparison: by the options and a settings file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .options import ENDPOINT_YAML

if TYPE_CHECKING:
    from ..settings import Settings


class StatedSides(NamedTuple):
    """What is compared."""

    endpoints: list[str]  # names at AWS: one of two variants, or two
    variants: list[str]  # of each side in turn; empty where AWS is asked
    meant: str  # by which the settings file knows the endpoint


def usual_settings(
    command: str, profile: str | None, region: str | None, *, stacks: bool = False
) -> Path:
    """``endpoint.yaml`` of this folder; without one ``LLA104``, which says what AWS has."""
    if ENDPOINT_YAML.exists():
        return ENDPOINT_YAML
    from ..account.calls import Account
    from ..account.names import nothing_named
    from ..account.sessions import aws_errors_in_words, open_clients

    client, found = open_clients(profile, region)
    given = {"--profile": profile, "--region": region}
    again = "".join(f" {name} {value}" for name, value in given.items() if value)
    with aws_errors_in_words():
        raise nothing_named(
            Account(client, found), f"low-latency {command} {{}}{again}", stacks=stacks
        )


def stated_name(
    path: Path, profile: str | None, region: str | None, given: str | None = None
) -> tuple[str, str | None]:
    """The name at AWS of a settings file's endpoint, and the Region that the file states."""
    from ..settings import load_settings

    settings = load_settings(path)
    key = stated_key(settings, given, path)
    name = settings.endpoints[key].endpoint_name
    return name or _deployed_name(settings, key, profile, region), settings.region


def stated_key(settings: Settings, given: str | None, path: Path) -> str:
    """The key of the endpoint that is meant, by its key or its name; ``LLT111`` among several."""
    from ..load_test.search.endpoint_settings import endpoint_key

    if given is None:
        return _only(list(settings.endpoints), path)
    return endpoint_key(settings, given, str(path))


def stated_sides(
    endpoints: Sequence[str],
    variants: Sequence[str],
    path: Path | None,
    profile: str | None,
    region: str | None,
) -> StatedSides:
    """What the options name, and for the rest the settings file: its endpoint, and its variants."""
    if path is None:
        return StatedSides(list(endpoints), list(variants), endpoints[0])
    from ..settings import load_settings

    settings = load_settings(path)
    if len(endpoints) > 1:  # two of them, of which the file may say one
        return StatedSides(list(endpoints), list(variants), endpoints[0])
    key = _key(settings, endpoints, path)
    name = settings.endpoints[key].endpoint_name or (
        # A name that the stack derived is known at AWS alone.
        endpoints[0]
        if endpoints and endpoints[0] not in settings.endpoints
        else _deployed_name(settings, key, profile, region)
    )
    return StatedSides([name], list(variants) or _variants(settings, key), key)


def _key(settings: Settings, endpoints: Sequence[str], path: Path) -> str:
    if endpoints:
        return stated_key(settings, endpoints[0], path)
    several = [key for key, each in settings.endpoints.items() if each.variants]
    return _only(several or list(settings.endpoints), path)


def _only(keys: Sequence[str], path: Path) -> str:
    from ..load_test.search.endpoint_settings import SETTINGS_ENDPOINT

    if len(keys) == 1:
        return keys[0]
    raise SETTINGS_ENDPOINT.error(
        got="none named", allowed=f"one of {', '.join(keys)}", where=str(path)
    )


def _variants(settings: Settings, key: str) -> list[str]:
    from ..load_test.compare.sides import TWO_SIDES
    from ..settings import planned_variants

    found = [each.variant for each in planned_variants(settings, key) if not each.shadow]
    if len(found) != 2:
        raise TWO_SIDES.error(
            got=f"endpoints.{key} with {', '.join(found)}",
            allowed="two variants, --variant given twice, or two endpoints",
        )
    return found


def _deployed_name(settings: Settings, key: str, profile: str | None, region: str | None) -> str:
    from ..account.calls import Account
    from ..account.sessions import open_clients
    from ..load_test.search.endpoint_settings import SETTINGS_ENDPOINT
    from ..operate.preflight.context import PreflightContext
    from ..operate.preflight.update_checks import deployed_endpoint
    from ..settings import region_of

    client, found = open_clients(profile, region or region_of(settings))
    context = PreflightContext(settings, (), Account(client, found))
    for each in context.endpoints:
        if each.key == key and (deployed := deployed_endpoint(each)) is not None:
            return deployed.name
    raise SETTINGS_ENDPOINT.error(
        got=f"no endpoint_name of {key}, and no stack {settings.stack_name} in {found}",
        allowed="a deployed stack, an endpoint_name, or the endpoint's name",
    )
