"""Load a settings file; every mistake at once, each with its line."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..errors.findings import Finding, Place, located, path_of
from ..options.compound_kinds import GroupKind
from ..options.kind import UNKNOWN_SETTING, FileReading
from ..options.yaml_source import YamlSource, parse_yaml, read_yaml
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
    return _checked(source, str(path), Path(path).absolute().parent, within)


def parse_settings(text: str, *, path: str = "settings") -> Settings:
    """Check settings given as YAML text; like :func:`load_settings` otherwise."""
    return _checked(parse_yaml(text), path, None)


def check_text(text: str, path: str | Path) -> Settings:
    """Check a text that is to become the settings file at a path."""
    return _checked(parse_yaml(text), str(path), Path(path).absolute().parent)


def _checked(
    source: YamlSource, path: str, folder: Path | None, within: Callable[[Path], bool] | None = None
) -> Settings:
    """The settings of a source without a problem; else an error with all of them."""
    if source.problems and source.values is None:
        raise SettingsError(path, source.problems)
    values = {} if source.values is None else source.values
    settings, findings = _judged(values, folder, within)
    problems = list(source.problems)
    for place, error in findings:
        if not _is_reported(place, source):
            problems.append((source.line(place), located(error, path_of(place))))
    if problems:
        raise SettingsError(path, problems)
    return settings


def _judged(
    values: Any, folder: Path | None, within: Callable[[Path], bool] | None
) -> tuple[Settings, list[Finding]]:
    """The settings that a file's values make, and what is wrong with them and with their plan."""
    settings, findings = settings_of(values, folder, within)
    if not findings:
        return settings, list(plan_checks(settings, files=folder is not None))
    rest = _without_wrong(values, findings)
    if rest is not None:
        sound, more = settings_of(rest, folder, within)
        if not more:
            findings += plan_checks(sound, files=folder is not None)
    return settings, findings


def settings_of(
    values: Any, folder: Path | None = None, within: Callable[[Path], bool] | None = None
) -> tuple[Settings, list[Finding]]:
    """The settings that a file's values make, sound or not, and what is wrong with them."""
    reading = FileReading(folder, within)
    settings = GroupKind(Settings).read(values, (), reading)
    return settings, reading.findings


def _is_reported(place: Place, source: YamlSource) -> bool:
    """Whether the text of this value is among the problems already."""
    return any(place[: len(broken)] == broken for broken in source.broken)


def _without_wrong(values: Any, findings: list[Finding]) -> Any:
    """A copy without unknown settings and wrong endpoints; None if more than those is wrong.

    Of such a copy the plan can be judged, as nothing in it depends on what is left out.
    """
    rest = copy.deepcopy(values)
    for place, error in findings:
        if error.code == UNKNOWN_SETTING.code:
            _remove(rest, place)
        elif len(place) > 1 and place[0] == "endpoints":
            _remove(rest, place[:2])
        else:
            return None
    return rest


def _remove(values: Any, place: Place) -> None:
    for part in place[:-1]:
        values = values[int(part)] if isinstance(values, list) else values.get(part, {})
    if isinstance(values, dict):
        values.pop(place[-1], None)
