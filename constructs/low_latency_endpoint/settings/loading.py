"""Load a settings file; every mistake at once, each with its line."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..errors import SettingsError
from ..errors.findings import Finding, Place, located, path_of
from ..options.rules import UNKNOWN_SETTING
from ..options.yaml_source import YamlSource, parse_yaml, read_yaml
from .model_base import BreachError
from .option_models import model_of
from .plan_checks import plan_checks
from .stack import Settings


def load_settings(
    path: str | Path, *, without: Collection[str] = (), within: Callable[[Path], bool] | None = None
) -> Settings:
    """Read and check a settings file.

    Parameters
    ----------
    path : str or pathlib.Path
        The YAML file, such as ``endpoint.yaml``.
    without : collection of str
        Keys of the file that are passed over: whoever writes the file of prices needs none. By
        default none.
    within : callable or None
        Says of each path that the file names, before it is looked at, whether it may be read: for
        settings of somebody whom nobody knows. By default any may.

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
    source = read_yaml(path)
    if isinstance(source.values, dict):
        for key in without:
            source.values.pop(key, None)
    return _validated(source, str(path), Path(path).absolute().parent, within)


def parse_settings(text: str, *, path: str = "settings") -> Settings:
    """Check settings given as YAML text; like :func:`load_settings` otherwise."""
    return _validated(parse_yaml(text), path, None)


def check_text(text: str, path: str | Path) -> Settings:
    """Check a text that is to become the settings file at a path."""
    return _validated(parse_yaml(text), str(path), Path(path).absolute().parent)


def _validated(
    source: YamlSource, path: str, folder: Path | None, within: Callable[[Path], bool] | None = None
) -> Settings:
    context = {"folder": folder, "within": within}
    problems = list(source.problems)
    settings = None
    if not problems or source.values is not None:
        values = {} if source.values is None else source.values
        try:
            settings = settings_of(values, context)
            findings = list(plan_checks(settings, files=folder is not None))
        except ValidationError as error:
            findings = _findings(error)
            findings += _of_the_rest(values, findings, context)
        problems += [
            (source.line(place), located(error, path_of(place)))
            for place, error in findings
            if not _is_said(place, source)
        ]
    if problems or settings is None:
        raise SettingsError(path, problems)
    return settings


def settings_of(values: Any, context: Mapping[str, Any] | None = None) -> Settings:
    """The settings that a file's values make; pydantic's error has what is wrong with them."""
    return cast(Settings, model_of(Settings).model_validate(values, context=context))


def _is_said(place: Place, source: YamlSource) -> bool:
    """Whether the text of this value was refused already."""
    return any(place[: len(broken)] == broken for broken in source.broken)


def _of_the_rest(values: Any, findings: list[Finding], context: dict[str, Any]) -> list[Finding]:
    """What the plan has to say besides, of what is sound without settings that do not exist."""
    rest = copy.deepcopy(values)
    for place, error in findings:
        if error.code == UNKNOWN_SETTING.code:
            _remove(rest, place)
        elif len(place) > 1 and place[0] == "endpoints":
            _remove(rest, place[:2])
        else:
            return []  # which may be why the plan would not hold
    try:
        sound = settings_of(rest, context)
        return list(plan_checks(sound, files=context["folder"] is not None))
    except ValidationError:
        return []


def _remove(values: Any, place: Place) -> None:
    for part in place[:-1]:
        values = values[int(part)] if isinstance(values, list) else values.get(part, {})
    if isinstance(values, dict):
        values.pop(place[-1], None)


def _findings(error: ValidationError) -> list[Finding]:
    findings: list[Finding] = []
    for detail in error.errors(include_url=False):
        breach: Any = detail.get("ctx", {}).get("error")
        if not isinstance(breach, BreachError):
            raise error  # cannot be: every model turns its findings into one BreachError
        findings += breach.findings
    return findings
