"""What ``recommend`` and ``recommend-generative`` share: options, consent, following, results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ..report.tables import Table
from .options import Json, Profile, SettingsRegion
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..settings import Settings
    from ..settings.breach import Place

__all__ = ["JobOptions", "Run", "opened"]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@dataclass
class JobOptions:
    """A job that AWS runs: a new one, or one to come back to."""

    endpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="Endpoint of the file, when it has several.")
    ] = None
    job_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the new job. Default: made from endpoint and time."
        ),
    ] = None
    job: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Come back to a job: follow it, show its results."),
    ] = None
    list_: Annotated[bool, typer.Option("--list", help="List the newest jobs.")] = False
    stop: Annotated[bool, typer.Option("--stop", help="With --job: stop it.")] = False
    adopt: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --job: write result N into the settings file, after showing the difference.",
        ),
    ] = None
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not follow the job to its end.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
    json: Json = False
    profile: Profile = None
    region: SettingsRegion = None

    def check(self, **others: object) -> None:
        """Refuse options that do not go together; ``others`` are for a job, too."""
        asked = {"adopt": self.adopt, **others}
        names = [f"--{name}" for name in asked]
        if self.job is None and (self.stop or any(each is not None for each in asked.values())):
            said = f"{', '.join(['--stop', *names[:-1]])} and {names[-1]}"
            raise typer.BadParameter(f"{said} are for a job: add --job NAME.")
        if self.list_ and self.job is not None:
            raise typer.BadParameter("--list and --job exclude each other.")
        if self.stop and any(each is not None for each in asked.values()):
            raise typer.BadParameter(f"--stop excludes {' and '.join(names)}.")


class Listed(Protocol):
    """A job in a list."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data."""


@dataclass(frozen=True)
class Run:
    """What every step of one run needs."""

    command: str
    path: Path
    settings: Settings
    key: str
    client: Any
    options: JobOptions
    flag: str = ""
    more: dict[str, str | None] = field(default_factory=dict)

    @property
    def again(self) -> str:
        """The command that comes back to a job."""
        given = {
            "--endpoint": self.options.endpoint,
            **self.more,
            "--profile": self.options.profile,
            "--region": self.options.region,
        }
        return f"low-latency {self.command} {self.path}{self.flag}" + "".join(
            f" {option} {value}" for option, value in given.items() if value
        )

    @property
    def new_name(self) -> str:
        """A job's name; AWS cuts names of the endpoints under test at 40 characters."""
        from datetime import UTC, datetime

        return self.options.job_name or (
            f"{self.key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        )

    def show_jobs(
        self, jobs: Sequence[Listed], heads: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        """The jobs of the account."""
        if self.options.json:
            print_json([each.to_dict() for each in jobs])
        elif jobs:
            print_parts(Table(heads, rows, align="l"))
        else:
            typer.echo("There are no jobs in this account and region.")

    def confirm(self, question: str) -> None:
        """Go on only with consent: ``--yes``, or an answer on the terminal."""
        if self.options.yes:
            return
        if not sys.stdin.isatty():
            typer.echo(
                "Nothing was changed: there is no terminal to ask on. Pass --yes to go on.",
                err=True,
            )
            raise typer.Exit(2)
        typer.confirm(question, abort=True, err=True)

    @contextmanager
    def following(self, name: str) -> Iterator[Callable[[str], None]]:
        """Show how a job goes on; Ctrl-C ends the watching, not the job."""
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        last: list[str] = []

        def line(text: str) -> None:
            if not self.options.json and last != [text]:
                last[:] = [text]
                typer.echo(text, err=True)

        try:
            if self.options.json or not console.is_terminal:
                yield line
            else:
                with console.status("Asking AWS") as status:
                    yield lambda text: status.update(text)
        except KeyboardInterrupt:
            typer.echo(
                f"\nThe job {name} goes on in AWS, and so does its cost.\n"
                f"  come back:  {self.again} --job {name}\n"
                f"  stop it:    {self.again} --job {name} --stop",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None

    def write_settings(self, values: dict[Place, Any], notes: Sequence[str]) -> dict[str, Any]:
        """Show what would change in the settings file, ask, and write it."""
        from ..settings.yaml_editing import edit_settings_file, write_edit

        json = self.options.json
        edit = edit_settings_file(self.path, values)
        if not edit.changed:
            typer.echo(f"{self.path} says this already.", err=json)
            return {"changed": False, "diff": "", "notes": list(notes)}
        typer.echo(edit.diff(), nl=False, err=json)
        for note in notes:
            typer.echo(f"Note: {note}", err=json)
        self.confirm(f"Write this into {self.path}?")
        write_edit(edit)
        typer.echo(
            f"wrote {self.path}; see what follows with: low-latency plan {self.path}", err=True
        )
        return {"changed": True, "diff": edit.diff(), "notes": list(notes)}

    def show(self, name: str, data: dict[str, Any], *, results: bool) -> None:
        """How to take a result over, or all of it as JSON."""
        if self.options.json:
            print_json(data)
        elif self.options.adopt is None and results:
            typer.echo(f"Take one over with: {self.again} --job {name} --adopt N")


def opened(
    command: str, path: Path, options: JobOptions, *, flag: str = "", **more: str | None
) -> Run:
    """The settings, the endpoint meant and the account."""
    from ..settings import load_settings

    settings = load_settings(path)
    endpoints, wanted = list(settings.endpoints), options.endpoint
    if wanted is None and len(endpoints) == 1:
        wanted = endpoints[0]
    if wanted is None or wanted not in endpoints:
        got = f"there is no endpoint {wanted}" if wanted else "the file has several endpoints"
        raise typer.BadParameter(
            f"{got}: choose one of {', '.join(endpoints)}.", param_hint="--endpoint"
        )
    from ..account.sessions import open_clients

    client, _ = open_clients(options.profile, options.region, settings.region)
    return Run(
        command,
        path,
        settings,
        wanted,
        client,
        options,
        flag,
        {f"--{name.replace('_', '-')}": value for name, value in more.items()},
    )
