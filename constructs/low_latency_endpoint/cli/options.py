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

ENDPOINT_YAML = Path("endpoint.yaml")

SettingsFile = Annotated[Path, typer.Argument(metavar="SETTINGS", help="The settings file.")]

OptionalSettings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="The settings file. Read when it is given, or when no endpoint is: then endpoint.yaml.",
        show_default=False,
    ),
]

EndpointName = Annotated[
    str | None,
    typer.Argument(
        metavar="ENDPOINT", help="Name of the endpoint. Default: the settings'.", show_default=False
    ),
]

Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write one self-contained page with charts.")
]


def _one_form(context: typer.Context, value: bool) -> bool:
    """Refuse two forms of output at once; ``plan`` does so itself, for --detailed-exitcode."""
    if (
        value
        and context.info_name != "plan"
        and (context.params.get("json") or context.params.get("markdown"))
    ):
        raise typer.BadParameter("give --json or --markdown, not both")
    return value


Json = Annotated[bool, typer.Option("--json", callback=_one_form, help="Print JSON.")]

Markdown = Annotated[
    bool,
    typer.Option(
        "--markdown", callback=_one_form, help="Print Markdown, for a comment or a summary."
    ),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Leave out what is in order.")]

Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 on a warning, too, and on what is unknown.")
]

Since = Annotated[str, typer.Option(metavar="TIME", help="Length of the window: 30m, 1h, 2d.")]

Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="End of the window, such as 2026-11-20T03:30Z. Default: now.",
        show_default=False,
    ),
]

Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="ITEM=USD",
        help="What an instance type, or interface_endpoint in one zone, costs for an hour; over the "
        "settings' prices. Repeat it.",
        show_default=False,
    ),
]

TrafficPeriod = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --traffic-from: the length of its periods. Default: the shortest step between "
        "its times; 60s of a trace with a line for each request.",
        show_default=False,
    ),
]

Profile = Annotated[
    str | None, typer.Option(metavar="NAME", help="Profile of the AWS CLI.", show_default=False)
]

Region = Annotated[
    str | None,
    typer.Option(
        metavar="REGION",
        help="Region. Default: the settings', where they are read, else the profile's.",
        show_default=False,
    ),
]


def option(help: str, default: Any = None, *, short: str = "", names: str = "", **more: Any) -> Any:
    """A field of a group that is an option."""
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
