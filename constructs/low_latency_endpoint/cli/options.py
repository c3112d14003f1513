"""Options that several commands have, each described once, and groups of them as one parameter.

A group is a dataclass; its fields are :func:`option` and :func:`flag`, called as the field is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

SettingsFile = Annotated[
    Path, typer.Argument(show_default=False, help="The settings file, such as endpoint.yaml.")
]

Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write one self-contained page with charts.")
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Profile = Annotated[str | None, typer.Option(help="Profile of the AWS CLI.", show_default=False)]

Region = Annotated[
    str | None, typer.Option(help="Region; default: the profile's.", show_default=False)
]

SettingsRegion = Annotated[
    str | None,
    typer.Option(
        "--region", help="Region; default: the settings', else the profile's.", show_default=False
    ),
]


def option(help: str, default: Any = None, *, short: str = "", names: str = "", **more: Any) -> Any:
    """A field of a group that is an option.

    Parameters
    ----------
    help : str
    default : object
        By default the option need not be given, and is ``None``.
    short : str
        Another name, such as ``-y``.
    names : str
        Its names where they are not the field's, such as ``--constant/--poisson``.
    **more
        Further arguments of ``typer.Option``.
    """
    return field(
        default=default, metadata={"names": (names, short), "more": {"help": help, **more}}
    )


def flag(help: str, *, short: str = "") -> Any:
    """A field of a group that is an option without a value: off by default."""
    return option(help, False, short=short)


def _annotation(option: Field[Any], kind: Any) -> Any:
    """The field's type as typer reads it."""
    if not option.metadata:
        return kind
    names, short = option.metadata["names"]
    names = names or f"--{option.name.rstrip('_').replace('_', '-')}"
    return Annotated[kind, typer.Option(names, *filter(None, [short]), **option.metadata["more"])]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a parameter that is a dataclass be an option of the command."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for each in inspect.signature(command).parameters.values():
        if each.name not in groups:
            parameters.append(each.replace(annotation=hints[each.name]))
            continue
        kinds = get_type_hints(groups[each.name], include_extras=True)
        parameters += [
            inspect.Parameter(
                one.name,
                each.KEYWORD_ONLY,
                default=one.default,
                annotation=_annotation(one, kinds[one.name]),
            )
            for one in fields(groups[each.name])
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{one.name: given.pop(one.name) for one in fields(kind)})
            for name, kind in groups.items()
        }
        command(**given, **made)

    del run.__wrapped__  # typer would read the options there
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=each.KEYWORD_ONLY) for each in parameters]
    )
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
