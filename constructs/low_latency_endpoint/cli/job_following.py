"""What ``recommend`` and ``optimize`` share: options, consent, following, results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..report.tables import Table
from .options import Json, Markdown, Profile, Region, flag, option
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..operate.recommend.adopting import Adoption
    from ..operate.recommend.jobs import Job, JobKind, JobRequest, R
    from ..operate.recommend.results import OptimizedModel
    from ..settings import EndpointSettings, Settings
    from ..settings.breach import Place

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@dataclass
class JobOptions:
    """A job that AWS runs: a new one, or one to come back to."""

    endpoint: str | None = option("Endpoint of the file, when it has several.", metavar="NAME")
    job_name: str | None = option(
        "Name of the new job. Default: made from endpoint and time.", metavar="NAME"
    )
    job: str | None = option("Come back to a job: follow it, show its results.", metavar="NAME")
    list_: bool = flag("List the newest jobs.")
    stop: bool = flag("With --job: stop it.")
    result: int | None = option(
        "With --job: show what result N changes in the settings file.", metavar="N"
    )
    write: bool = flag("With --result: write it into the settings file; comments stay.")
    no_wait: bool = flag("Do not follow the job to its end.")
    yes: bool = flag("Do not ask.", short="-y")
    json: Json = False
    markdown: Markdown = False
    profile: Profile = None
    region: Region = None

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.job is None and (self.stop or self.result is not None):
            raise typer.BadParameter("--stop and --result are for a job: add --job NAME.")
        if self.list_ and self.job is not None:
            raise typer.BadParameter("--list and --job exclude each other.")
        if self.stop and self.result is not None:
            raise typer.BadParameter("--stop excludes --result.")
        if self.write and self.result is None:
            raise typer.BadParameter("--write goes with --result N.")


@dataclass(frozen=True)
class PreparedJob:
    """A job that could be started: what to say of it, and what has to be there before."""

    job: JobRequest
    lines: Iterable[str]
    before: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class JobCommand:
    """A command that starts, follows or lists jobs: what each of its steps needs."""

    command: str
    path: Path
    settings: Settings
    key: str
    client: Any
    options: JobOptions
    further: str = ""

    @property
    def endpoint(self) -> EndpointSettings:
        """The endpoint that is meant."""
        return self.settings.endpoints[self.key]

    @property
    def again(self) -> str:
        """The command that comes back to a job."""
        given = {
            "--endpoint": self.options.endpoint,
            "--profile": self.options.profile,
            "--region": self.options.region,
        }
        return f"low-latency {self.command} {self.path}{self.further}" + "".join(
            f" {option} {value}" for option, value in given.items() if value
        )

    @property
    def new_name(self) -> str:
        """A job's name; AWS cuts names of the endpoints under test at 40 characters."""
        from datetime import UTC, datetime

        return self.options.job_name or (
            f"{self.key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        )

    def run(
        self, kind: JobKind[R], prepare: Callable[[], PreparedJob], show: Callable[[Job[R]], None]
    ) -> None:
        """Do what the options say: list, stop, or follow a job, which may be a new one.

        Parameters
        ----------
        kind : JobKind
        prepare : callable
            Decides on the new job; asks AWS at most.
        show : callable
            Shows a job that was followed, or looked at once.
        """
        from ..operate.recommend import jobs

        options = self.options
        if options.list_:
            self._list(jobs.newest_jobs(self.client, kind))
            return
        name = options.job
        if options.stop and name is not None:
            jobs.stop(self.client, kind, name)
            made = "" if kind.word else " and deletes its endpoints"  # AWS says so of these only
            typer.echo(f"AWS stops {name}{made}.", err=True)
            return
        if name is None:
            name = self._start(prepare())
            if options.no_wait:
                if options.json:
                    word = {"kind": kind.word} if kind.word else {}
                    print_json({"job": name, **word, "status": kind.started})
                return
        show(jobs.read(self.client, kind, name) if options.no_wait else self._wait(kind, name))

    def _list(self, jobs: Sequence[Job[R]]) -> None:
        if self.options.json:
            shown = [
                {name: getattr(each, name) for name in ("name", "type", "status")}
                | {"created": each.created.isoformat()}
                for each in jobs
            ]
            print_json({"jobs": shown})
        elif jobs:
            rows = [
                (each.name, each.type, each.status, f"{each.created:%Y-%m-%d %H:%M}")
                for each in jobs
            ]
            table = Table(("Job", "Type", "Status", "Created"), rows, align="l")
            print_parts(table, markdown=self.options.markdown)
        else:
            typer.echo("There are no jobs in this account and region.")

    def _start(self, prepared: PreparedJob) -> str:
        from ..operate.recommend.jobs import job_errors_in_words, start

        for line in prepared.lines:
            typer.echo(line, err=True)
        self.confirm("Start the job?")
        with job_errors_in_words(prepared.job.name):
            prepared.before()
        start(self.client, prepared.job)
        typer.echo(f"started {prepared.job.name}", err=True)
        return prepared.job.name

    def _wait(self, kind: JobKind[R], name: str) -> Job[R]:
        from time import sleep

        from ..operate.recommend.jobs import wait

        with self._following(name) as line:
            return wait(
                self.client,
                kind,
                name,
                sleep=sleep,
                on_poll=lambda job, progress: line(
                    f"{name}: {job.status}" + (f", tests: {progress}" if progress else "")
                ),
            )

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
    def _following(self, name: str) -> Iterator[Callable[[str], None]]:
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

    def _edit_settings(self, values: dict[Place, Any], notes: Sequence[str]) -> dict[str, Any]:
        """Show what changes in the settings file, and write it where the options say so."""
        from ..settings.yaml_editing import edit_settings_file, write_edit

        json = self.options.json
        edit = edit_settings_file(self.path, values)
        if not edit.changed:
            typer.echo(f"{self.path} says this already.", err=json)
            return {"written": False, "diff": "", "notes": list(notes)}
        typer.echo(edit.diff(), nl=False, err=json)
        for note in notes:
            typer.echo(f"Note: {note}", err=json)
        if self.options.write:
            write_edit(edit)
            typer.echo(
                f"wrote {self.path}; see what follows with: low-latency plan {self.path}", err=True
            )
        else:
            typer.echo(f"{self.path} is as it was; --write changes it.", err=True)
        return {"written": self.options.write, "diff": edit.diff(), "notes": list(notes)}

    def show_optimized(
        self, job: Job[OptimizedModel], adopted: Callable[[OptimizedModel], Adoption]
    ) -> None:
        """Show a job of an optimization; ends the command where AWS ended the job."""
        from ..operate.recommend.view import optimized_table

        if not self.options.json:
            parts = optimized_table(job, self.endpoint.instance_type)
            print_parts(*parts, markdown=self.options.markdown)
        shown = {
            "ended": job.ended.isoformat() if job.ended else None,
            "output": job.output,
            "results": [each.to_dict() for each in job.results],
        }
        self.show(job, shown, adopted)
        if job.done and not job.succeeded:
            raise typer.Exit(1)

    def show(self, job: Job[R], data: dict[str, Any], adopted: Callable[[R], Adoption]) -> None:
        """Take a result over where the options say so; else how to, or all of it as JSON."""
        from ..operate.recommend.adopting import chosen

        number = self.options.result
        if number is not None:
            adoption = adopted(chosen(job, number))
            data["adopted"] = self._edit_settings(adoption.values, adoption.notes)
        if self.options.json:
            data = {
                "job": job.name,
                "status": job.status,
                "failure_reason": job.failure_reason or None,
                "created": job.created.isoformat(),
                **data,
            }
            print_json(data)
        elif number is None and job.results and not self.options.markdown:
            typer.echo(f"Take one over with: {self.again} --job {job.name} --result N --write")


def opened(command: str, path: Path, options: JobOptions, further: str = "") -> JobCommand:
    """The settings, the endpoint meant and the account; what is ``further`` given comes again."""
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
    _say_variants(settings.endpoints[wanted], wanted)
    from ..account.sessions import open_clients

    client, _ = open_clients(options.profile, options.region, settings.region)
    return JobCommand(command, path, settings, wanted, client, options, further)


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
