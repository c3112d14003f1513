"""A command that runs jobs in AWS: options, consent, following, results, the settings file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ..report.document import Document, Table
from . import INTERRUPTED
from .options import (
    ENDPOINT_YAML,
    EndpointName,
    Json,
    Markdown,
    Profile,
    Region,
    SettingsFile,
    flag,
    naming,
    option,
)
from .output import print_document, print_json

if TYPE_CHECKING:
    from ..operate.recommend.jobs import Adoption, Job, JobKind, JobRequest
    from ..settings import EndpointSettings, Settings

R = TypeVar("R")


@dataclass
class JobOptions:
    """A job that AWS runs: a new one, or one to come back to."""

    endpoint: EndpointName = None
    settings: SettingsFile = ENDPOINT_YAML
    job_name: str | None = option(
        "Name of the new job. Default: made from the endpoint and the time.", metavar="NAME"
    )
    job: str | None = option("Job to come back to: follow it and show its results.", metavar="NAME")
    list_: bool = flag("List the newest jobs.")
    stop: bool = flag("With --job: stop it.")
    result: int | None = option(
        "With --job: show what this result changes in the settings file.", metavar="N"
    )
    write: bool = flag("With --result: write it into the settings file. Comments are kept.")
    no_wait: bool = flag("Do not wait for the job to finish.")
    yes: bool = flag("Do not ask for confirmation.", short="-y")
    json: Json = False
    markdown: Markdown = False
    profile: Profile = None
    region: Region = None

    def check(self) -> None:
        if self.job is None and (self.stop or self.result is not None):
            raise typer.BadParameter("--stop and --result are for a job: add --job NAME.")
        if self.list_ and self.job is not None:
            raise typer.BadParameter("--list and --job exclude each other.")
        if self.stop and self.result is not None:
            raise typer.BadParameter("--stop excludes --result.")
        if self.write and self.result is None:
            raise typer.BadParameter("--write goes with --result N.")


@dataclass(frozen=True)
class JobCommand:
    """The endpoint that jobs of one kind are about, and what the options say of them."""

    command: str
    path: Path
    settings: Settings
    key: str
    client: Any
    options: JobOptions
    further: str

    @property
    def endpoint(self) -> EndpointSettings:
        return self.settings.endpoints[self.key]

    @property
    def again(self) -> str:
        """The command that comes back to a job."""
        given = {name: getattr(self.options, name) for name in ("profile", "region")}
        named = f" {self.options.endpoint}" if self.options.endpoint else ""
        return f"low-latency {self.command}{named}{naming(self.path)}{self.further}" + "".join(
            f" --{name} {value}" for name, value in given.items() if value
        )

    @property
    def new_name(self) -> str:
        """A job's name; AWS cuts names of the endpoints under test at 40 characters."""
        from datetime import UTC, datetime

        return self.options.job_name or (
            f"{self.key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        )

    def run(
        self, kind: JobKind, request: Callable[[], JobRequest], show: Callable[[Job], None]
    ) -> None:
        """List, stop or follow a job, which may be new: show it at its end, or at one look."""
        from ..operate.recommend import jobs

        options, name = self.options, self.options.job
        if options.list_:
            self._list(jobs.newest_jobs(self.client, kind))
            return
        if name is not None and options.stop:
            jobs.stop(self.client, kind, name)
            typer.echo(f"AWS stops {name}.", err=True)
            return
        if name is None:
            name = self._start(request())
            if options.no_wait:
                if options.json:
                    print_json({"job": name, "status": kind.first_status})
                return
        show(jobs.read(self.client, kind, name) if options.no_wait else self._ended(kind, name))

    def _list(self, jobs: Sequence[Job]) -> None:
        if self.options.json:
            print_json({"jobs": [job.to_dict() for job in jobs]})
        elif jobs:
            rows = [
                (job.name, job.type, job.status, f"{job.created:%Y-%m-%d %H:%M}") for job in jobs
            ]
            table = Table(("Job", "Type", "Status", "Created"), rows, align="l")
            print_document(Document("", [table]), markdown=self.options.markdown)
        else:
            typer.echo("There are no jobs in this account and region.")

    def _start(self, job: JobRequest) -> str:
        for line in job.lines():
            typer.echo(line, err=True)
        if not self.options.yes:
            if not sys.stdin.isatty():
                typer.echo("No terminal to ask on, so nothing was started. Pass --yes.", err=True)
                raise typer.Exit(2)
            typer.confirm("Start the job?", abort=True, err=True)
        job.start(self.client)
        typer.echo(f"started {job.name}", err=True)
        return job.name

    def _ended(self, kind: JobKind, name: str) -> Job:
        """The job at its end; Ctrl-C ends the watching, not the job."""
        from time import sleep

        from ..operate.recommend.jobs import follow

        said = ""
        try:
            for job, progress in follow(self.client, kind, name, sleep):
                text = f"{name}: {job.status}" + (f", tests: {progress}" if progress else "")
                if text != said and not self.options.json:
                    typer.echo(text, err=True)
                said = text
        except KeyboardInterrupt:
            typer.echo(
                f"\nThe job {name} goes on in AWS, and so does its cost.\n"
                f"  come back:  {self.again} --job {name}\n"
                f"  stop it:    {self.again} --job {name} --stop",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None
        return job

    def show(
        self,
        job: Job,
        document: Document,
        results: Sequence[R],
        adopt: Callable[[R], Adoption],
        data: dict[str, Any],
    ) -> None:
        """Show a job's results, and adopt the chosen one where the options say so."""
        number, json = self.options.result, self.options.json
        if not json:
            print_document(document, markdown=self.options.markdown)
        if number is not None:
            data["adopted"] = self._adopted(adopt(job.chosen(results, number)))
        if json:
            print_json({**job.to_dict(), **data})
        elif number is None and results and not self.options.markdown:
            typer.echo(f"Take one over with: {self.again} --job {job.name} --result N --write")

    def _adopted(self, adoption: Adoption) -> Mapping[str, Any]:
        """Show what changes in the settings file, and write it where the options say so."""
        from ..settings.yaml_editing import edit_settings_file, write_edit

        json, notes = self.options.json, list(adoption.notes)
        edit = edit_settings_file(self.path, adoption.values)
        if not edit.changed:
            typer.echo(f"{self.path} says this already.", err=json)
            return {"written": False, "diff": "", "notes": notes}
        typer.echo(edit.diff(), nl=False, err=json)
        for note in notes:
            typer.echo(f"Note: {note}", err=json)
        if self.options.write:
            write_edit(edit)
            typer.echo(
                f"wrote {self.path}; see what follows with: low-latency plan{naming(self.path)}",
                err=True,
            )
        else:
            typer.echo(f"{self.path} is as it was; --write changes it.", err=True)
        return {"written": self.options.write, "diff": edit.diff(), "notes": notes}


def opened(command: str, options: JobOptions, further: str = "") -> JobCommand:
    """The settings, the endpoint meant and the account; what is ``further`` given comes again."""
    from ..account.sessions import open_clients
    from ..settings import load_settings
    from .chosen_endpoints import stated_key

    options.check()
    path = options.settings
    settings = load_settings(path)
    key = stated_key(settings, options.endpoint, path)
    _say_variants(settings.endpoints[key], key)
    client, _ = open_clients(options.profile, options.region, settings.region)
    return JobCommand(command, path, settings, key, client, options, further)


def _say_variants(endpoint: EndpointSettings, key: str) -> None:
    """Say that a recommendation is about the first variant."""
    others = [*endpoint.variants, *([endpoint.shadow.name] if endpoint.shadow else [])]
    if others:
        typer.echo(
            f"{key} has {', '.join(others)} beside {endpoint.variant_name}: this is about "
            f"{endpoint.variant_name} alone. What is adopted also holds for the others where they "
            "state nothing of their own.",
            err=True,
        )
