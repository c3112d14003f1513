"""Options that several commands have, each described once, and groups of them as one parameter.

A group is a dataclass; its fields are :func:`option`, :func:`flag` and :func:`argument`, called as
the field is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import Field, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import ErrorRule, rule
from ..errors.shell_words import shell_word
from ..facts.limits import ALARM_THRESHOLD_MILLISECONDS
from ..report.visible import visible_lines

ENDPOINT_YAML = Path("endpoint.yaml")

SettingsFile = Annotated[
    Path, typer.Option("--settings", metavar="FILE", help="The settings file.")
]

OptionalSettings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="The settings file. Default: endpoint.yaml, if no endpoint or stack is named.",
    ),
]

EndpointName = Annotated[
    str | None,
    typer.Argument(
        metavar="ENDPOINT", help="Name of the endpoint. Default: the one in the settings file."
    ),
]

Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a self-contained page with charts.")
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

Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 on warnings and unknown results, too.")
]

Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="ITEM=USD",
        help="Hourly price of an instance type, or of interface_endpoint in one zone. Overrides the "
        "settings file. Can be repeated.",
    ),
]

TrafficPeriod = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="With --traffic-from: length of the periods. Default: the shortest gap between two "
        "times; 60s for a file with a line per request.",
    ),
]

Profile = Annotated[str | None, typer.Option(metavar="NAME", help="AWS CLI profile.")]

Region = Annotated[
    str | None,
    typer.Option(
        metavar="REGION",
        help="AWS Region. Default: from the settings file if one is used, otherwise from the "
        "profile.",
    ),
]


def naming(settings: Path) -> str:
    """How a command that is printed names its settings file: not at all where that is usual."""
    return "" if settings == ENDPOINT_YAML else f" --settings {shell_word(settings)}"


def option(help: str, default: Any = None, *, short: str = "", names: str = "", **more: Any) -> Any:
    """A field of a group that is an option."""
    return field(
        default=default, metadata={"names": (names, short), "more": {"help": help, **more}}
    )


def flag(help: str, *, short: str = "") -> Any:
    """A field of a group that is an option without a value: off by default."""
    return option(help, False, short=short)


def argument(help: str, default: Any = None, **more: Any) -> Any:
    """A field of a group that is an argument."""
    return field(default=default, metadata={"argument": typer.Argument(help=help, **more)})


def _annotation(option: Field[Any], kind: Any) -> Any:
    if not option.metadata:
        return kind
    if "argument" in option.metadata:
        return Annotated[kind, option.metadata["argument"]]
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
        [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class Commands(TyperGroup):
    """The commands, whose usage errors name what was typed, in which nothing acts."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        with _visible_usage():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        with _visible_usage():
            return super().invoke(ctx)


#: Of click, which newer versions of Typer bring with them under another name.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]


@contextmanager
def _visible_usage() -> Iterator[None]:
    try:
        yield
    except _USAGE_ERROR as error:
        vars(error)["message"] = visible_lines(vars(error)["message"])
        raise


class Command(TyperCommand):
    """A command whose help has words for the types of its arguments."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As Typer does, without the Python types of arguments."""
        for kind in ("argument", "option"):
            rows = [
                (row[0].partition(" <")[0], row[1])
                for each in self.get_params(ctx)
                if each.param_type_name == kind and (row := each.get_help_record(ctx))
            ]
            if rows:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(rows)


TARGET_FORM = rule(
    "LLD904",
    "a latency target is not a statistic and a time",
    fix="Write p99=200ms. Repeat the option for further targets.",
)
CLIENT_LATENCY_FORM = rule(
    "LLD905",
    "a client latency is not a statistic and a time",
    fix="Give the latency that callers measured in the same window, such as p99=240ms.",
)
_STATISTICS = re.compile(r"p[0-9]{1,2}(?:\.[0-9]{1,3})?|Average")
_LATENCY = re.compile(r"(?P<statistic>[^=]+)=(?P<value>[0-9]+(?:\.[0-9]+)?)(?P<unit>ms|s)")


def parse_targets(values: Iterable[str], prefixes: Iterable[str]) -> dict[str, float]:
    """Milliseconds by statistic, of ``p99=200ms`` and of ``ttft-p95=500ms`` with its prefix.

    >>> parse_targets(["ttft-p95=500ms", "p99=20s"], ("ttft-", "itl-"))
    {'p99': 20000.0, 'ttft-p95': 500.0}
    """
    left, found = list(values), dict[str, float]()
    for prefix in (*prefixes, ""):
        of_kind = [text for text in left if text.startswith(prefix)]
        left = [text for text in left if not text.startswith(prefix)]
        parsed = parse_latencies([text.removeprefix(prefix) for text in of_kind], TARGET_FORM)
        found |= {prefix + name: value for name, value in parsed.items()}
    return dict(sorted(found.items(), key=lambda item: "-" in item[0]))


def parse_latencies(values: Iterable[str], rule: ErrorRule) -> dict[str, float]:
    """Milliseconds by statistic, of ``p99=200ms``.

    >>> from low_latency_endpoint.cli.options import TARGET_FORM
    >>> parse_latencies(["p99=200ms", "Average=0.06s"], TARGET_FORM)
    {'p99': 200.0, 'Average': 60.0}
    """
    latencies: dict[str, float] = {}
    for text in values:
        match = _LATENCY.fullmatch(text.strip())
        statistic = match["statistic"].strip() if match else ""
        if statistic.lower() == "average":
            statistic = "Average"
        if match is None or not _STATISTICS.fullmatch(statistic):
            raise rule.error(
                got=repr(text),
                allowed="p50, p90, p99, p99.9 or Average, then = and a time in ms or s",
            )
        value = float(match["value"]) * (1 if match["unit"] == "ms" else 1000)
        if not ALARM_THRESHOLD_MILLISECONDS.holds(value) or statistic in latencies:
            raise rule.error(
                got=repr(text),
                allowed=f"each statistic once, {ALARM_THRESHOLD_MILLISECONDS.allowed}",
                fix="Give each statistic once, with a time in this range.",
            )
        latencies[statistic] = value
    return latencies
