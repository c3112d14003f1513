"""Which endpoint is meant, and which sides of a comparison: by the options and a settings file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors.shell_words import shell_word
from .options import ENDPOINT_YAML

if TYPE_CHECKING:
    from ..settings import Settings


def usual_settings(
    command: str, profile: str | None, region: str | None, *, stacks: bool = False
) -> Path:
    """``endpoint.yaml`` of this folder; without one ``LLA104``, which says what AWS has."""
    if ENDPOINT_YAML.exists():
        return ENDPOINT_YAML
    from ..account.calls import Account
    from ..account.deployed_endpoints import nothing_named
    from ..account.sessions import aws_errors_in_words, open_clients

    client, found = open_clients(profile, region)
    given = {"--profile": profile, "--region": region}
    again = "".join(f" {name} {shell_word(value)}" for name, value in given.items() if value)
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
    return _name_of(settings, key, given, profile, region), settings.region


def stated_key(settings: Settings, given: str | None, path: Path) -> str:
    """The key of the endpoint that is meant, by its key or its name; ``LLT111`` among several."""
    from ..load_test.search.settings_file import endpoint_key

    if given is None:
        return _only(list(settings.endpoints), path)
    return endpoint_key(settings, given)


def stated_sides(
    endpoints: Sequence[str], path: Path | None, profile: str | None, region: str | None
) -> tuple[list[str], str]:
    """The names at AWS of what is compared, and how the settings file calls the first."""
    if path is None:
        return list(endpoints), endpoints[0]
    from ..settings import load_settings

    settings = load_settings(path)
    if len(endpoints) > 1:
        names = [
            _name_at_aws(settings, name, profile, region) if name in settings.endpoints else name
            for name in endpoints
        ]
        return names, endpoints[0]
    given = next(iter(endpoints), None)
    several = [key for key, endpoint in settings.endpoints.items() if endpoint.variants]
    key = stated_key(settings, given, path) if given or not several else _only(several, path)
    return [_name_of(settings, key, given, profile, region)], key


def _only(keys: Sequence[str], path: Path) -> str:
    from ..load_test.search.settings_file import SETTINGS_ENDPOINT

    if len(keys) == 1:
        return keys[0]
    raise SETTINGS_ENDPOINT.error(
        what="the settings file has several endpoints, and none is named",
        got="none named",
        allowed=f"one of {', '.join(keys)}",
        where=str(path),
        fix=f"Name one, with the file: add `{keys[0]} --settings {shell_word(path)}`.",
    )


def _name_of(
    settings: Settings, key: str, given: str | None, profile: str | None, region: str | None
) -> str:
    """The name at AWS of a key; a given name that is no key is one that the stack derived."""
    if given and given not in settings.endpoints:
        return settings.endpoints[key].endpoint_name or given
    return _name_at_aws(settings, key, profile, region)


def _name_at_aws(settings: Settings, key: str, profile: str | None, region: str | None) -> str:
    """The stated name; one that the stack derived is known at AWS alone."""
    if stated := settings.endpoints[key].endpoint_name:
        return stated
    from ..account.calls import Account
    from ..account.sessions import open_clients
    from ..load_test.search.settings_file import SETTINGS_ENDPOINT
    from ..operate.preflight.context import PreflightContext
    from ..operate.preflight.update_checks import deployed_endpoint
    from ..settings import region_of

    client, found = open_clients(profile, region or region_of(settings))
    context = PreflightContext(settings, (), Account(client, found))
    for endpoint in context.endpoints:
        if endpoint.key == key and (deployed := deployed_endpoint(endpoint)) is not None:
            return deployed.name
    raise SETTINGS_ENDPOINT.error(
        got=f"no endpoint_name of {key}, and no stack {settings.stack_name} in {found}",
        allowed="a deployed stack, an endpoint_name, or the endpoint's name",
    )
