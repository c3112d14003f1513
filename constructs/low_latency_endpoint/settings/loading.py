"""Load a settings file; every mistake at once, each with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import ConfigurationError, SettingsError
from ..planning.subnets import check_fleet_fits
from .breach import BreachError, Place, breaches, path_of
from .plans import images_of, largest_fleet, plan_endpoint
from .stack import Settings
from .yaml_source import YamlSource, parse_yaml, read_yaml

__all__ = ["load_settings", "parse_settings"]


def load_settings(path: str | Path) -> Settings:
    """Read and check a settings file.

    Parameters
    ----------
    path : str or pathlib.Path
        The YAML file, such as ``endpoint.yaml``.

    Returns
    -------
    Settings
        Frozen; paths of assets are absolute, relative ones are taken from the file's folder.

    Raises
    ------
    SettingsError
        With all mistakes, each a :class:`~low_latency_endpoint.errors.ConfigurationError` and its
        line: LLE9xx for the file and how its settings fit together, and the code of each limit
        and planning rule that a value breaks.
    """
    return _validated(read_yaml(path), str(path), Path(path).absolute().parent)


def parse_settings(text: str, *, path: str = "settings") -> Settings:
    """Check settings given as YAML text; like :func:`load_settings` otherwise.

    Parameters
    ----------
    text : str
        The YAML.
    path : str
        What errors call the source. By default ``settings``.

    Examples
    --------
    >>> from low_latency_endpoint.errors import SettingsError
    >>> try:
    ...     parse_settings("client_zones: {ids: [use1-az1, use1-az2]}")
    ... except SettingsError as error:
    ...     [(line, problem.code) for line, problem in error.problems]
    [(1, 'LLE905')]
    """
    return _validated(parse_yaml(text), path, None)


def check_text(text: str, path: str | Path) -> Settings:
    """Check a text that is to become the settings file at a path.

    Raises
    ------
    SettingsError
        As :func:`load_settings`.
    """
    return _validated(parse_yaml(text.removeprefix("\ufeff")), str(path),
                      Path(path).absolute().parent)


def _validated(source: YamlSource, path: str, folder: Path | None) -> Settings:
    problems = list(source.problems)
    settings = None
    if not problems or source.values is not None:
        values = {} if source.values is None else source.values
        try:
            settings = Settings.model_validate(values, context={"folder": folder})
        except ValidationError as error:
            problems += _problems(error, source)
    if settings is not None:
        problems += _plan_problems(settings, source)
    if problems or settings is None:
        raise SettingsError(path, problems)
    return settings


#: Input of the plan -> setting of the endpoint that holds it.
_PLACES: dict[str, Place] = {
    "instance_type": ("instance_type",), "inference_ami": ("inference_ami",),
    "routing": ("routing",),
    "min_instances": ("instances", "min"), "initial_instances": ("instances", "initial"),
    "max_instances": ("instances", "max"),
    "max_concurrency_per_instance": ("scaling", "concurrency_target"),
}


def _plan_problems(settings: Settings, source: YamlSource) -> list[tuple[int, ConfigurationError]]:
    """What the planning rules refuse in settings that are sound otherwise."""
    problems = []
    for key, endpoint in settings.endpoints.items():
        places = {**_PLACES, **{f"images[{place}]": ("containers", index, "image")
                                for place, index in enumerate(images_of(endpoint))}}
        for place, error in breaches(("endpoints", key), plan_endpoint, settings, key):
            place = (*place, *places.get(error.where, ()))
            problems.append((source.line(place), _located(error, path_of(place))))
    if not problems and settings.network.subnet_prefix_length is not None:
        place = ("network", "subnet_prefix_length")
        for _, error in breaches(place, check_fleet_fits, settings.network.subnet_prefix_length,
                                 largest_fleet(settings)):
            problems.append((source.line(place), _located(error, path_of(place))))
    return problems


def _problems(error: ValidationError, source: YamlSource) -> list[tuple[int, ConfigurationError]]:
    problems: list[tuple[int, ConfigurationError]] = []
    for detail in error.errors(include_url=False):
        breach: Any = detail.get("ctx", {}).get("error")
        if not isinstance(breach, BreachError):
            raise error  # cannot be: every model turns its findings into one BreachError
        for place, coded in breach.findings:
            problems.append((source.line(place), _located(coded, path_of(place))))
    return problems


def _located(error: ConfigurationError, where: str) -> ConfigurationError:
    return ConfigurationError(code=error.code, what=error.what, got=error.got,
                              allowed=error.allowed, mend=error.mend, source=error.source,
                              where=where)
