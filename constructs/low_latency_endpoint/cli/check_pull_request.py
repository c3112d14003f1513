"""``low-latency check-pull-request``."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import ENDPOINT_YAML, Json, flag, grouped, option
from .output import print_json

if TYPE_CHECKING:
    from ..review.changes import FileReview
    from ..review.events import Event
    from ..review.github import Posted
    from ..review.revisions import Repository
    from ..review.verdict import Limit

_FAILED = 1
_MOST_OF_A_SUMMARY = 1_000_000  # GitHub takes 1 MiB of each step
_FAIL_ON = (
    "What fails the check; repeat it: error (mistakes in settings), refused, replacement, "
    "deletion, new-warning, cost-increase or cost-increase=PERCENT, p99-increase or "
    "p99-increase=PERCENT, nothing. Without it error and refused."
)


@dataclass
class CheckOptions:
    """What is compared, what fails, and where it goes."""

    base: str | None = option(
        "The revision to compare with; default: the pull request's base, else origin/main.",
        metavar="REVISION",
    )
    fail_on: list[str] | None = option(_FAIL_ON, metavar="WHAT")
    from_load_test: Path | None = option(
        "Simulate p99 before and after, with service times as this load test measured them.",
        metavar="FILE",
    )
    post: bool = flag(
        "Post it as one comment on the pull request, or renew that comment; needs GITHUB_TOKEN."
    )
    output: Path | None = option("Write the Markdown into a file too.", short="-o", metavar="FILE")
    json: Json = False

    @property
    def limits(self) -> list[Limit]:
        """What the check fails on."""
        from ..review.verdict import BY_DEFAULT, limit_of

        try:
            found = list(dict.fromkeys(limit_of(each) for each in self.fail_on or BY_DEFAULT))
        except ValueError as error:
            raise typer.BadParameter(f"--fail-on: {error}") from None
        if self.from_load_test is None and any(each.what == "p99-increase" for each in found):
            raise typer.BadParameter(
                "--fail-on p99-increase goes with --from-load-test: without a measured service "
                "time there is no p99"
            )
        return found


@grouped
def check_pull_request(
    options: CheckOptions,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SETTINGS",
            show_default=False,
            help="Settings files, or patterns such as 'endpoints/*.yaml'; default: endpoint.yaml.",
        ),
    ] = None,
) -> None:
    """Say what a pull request does to what is deployed, in one comment that updates itself.

    Compares settings files with the main branch's, as low-latency plan --against does: differences
    and what each does, p99 and cost before and after, warnings. Each revision's file is read with
    the files of that revision that it names. No code of the pull request is run. In a workflow of
    GitHub's the job's summary has it too.

    \b
    Exit codes:
      0  the check passes
      1  the check fails, because of what --fail-on names
      2  it could not compare, or could not post

    \b
    Examples:
      low-latency check-pull-request
      low-latency check-pull-request 'endpoints/*.yaml' --fail-on refused --fail-on cost-increase=10
      low-latency check-pull-request --base origin/release --from-load-test result.json
      low-latency check-pull-request --post
    """
    from ..review.events import EVENT, current_event
    from ..review.revisions import Repository
    from ..review.verdict import breaches
    from .pull_request_comment import comment

    limits = options.limits
    event = current_event()
    if options.post and event is None:
        raise EVENT.error(got="no GITHUB_EVENT_PATH", allowed="--post in a workflow of GitHub's")
    repository = Repository.around(Path.cwd())
    base = repository.base(options.base, event)
    with ExitStack() as folders:  # files are read when they are asked for
        before = folders.enter_context(repository.extracted(base))
        after = repository.root
        if event is not None:  # what other steps of the job wrote is no part of the pull request
            after = folders.enter_context(repository.extracted(repository.commit("HEAD")))
        reviews = _reviews(repository, before, after, settings or [str(ENDPOINT_YAML)], options)
        found = breaches(reviews, limits)
        text = comment(reviews, found, limits, _against(base, options, event), _head(event))
        files = [each.to_dict() for each in reviews] if options.json else []
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    _add_to_summary(text)
    posted = _post(event, text) if options.post and event is not None else None
    if options.json:
        print_json(_data(base, files, found, posted))
    elif posted is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"The comment: {posted.what} {posted.url}".rstrip())
        if posted.why:
            typer.echo(f"Not posted, as {posted.why}. The job's summary has it.", err=True)
        typer.echo("The check fails." if found else "The check passes.")
    if found:
        raise typer.Exit(_FAILED)


def _reviews(
    repository: Repository, before: Path, after: Path, patterns: list[str], options: CheckOptions
) -> list[FileReview]:
    from ..review.changes import review_file, settings_files
    from ..simulate.load_test_result import read_load_test_result

    load_test = read_load_test_result(options.from_load_test) if options.from_load_test else None
    here = Path.cwd().resolve().relative_to(repository.root)
    paths = list(settings_files([str(here / each) for each in patterns], before, after))
    if not paths:
        raise typer.BadParameter(f"no settings file is called {', '.join(patterns)}")
    return [review_file(path, before, after, load_test) for path in paths]


def _against(base: str, options: CheckOptions, event: Event | None) -> str:
    from ..review.revisions import DEFAULT_BASE

    name = options.base or (event.base_name if event else "") or DEFAULT_BASE
    return f"{name} at {base[:10]}"


def _head(event: Event | None) -> str:
    return event.head_sha[:10] if event and event.head_sha else "this checkout"


def _add_to_summary(text: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text[:_MOST_OF_A_SUMMARY] + "\n")


def _post(event: Event, text: str) -> Posted:
    from ..review.github import GitHub, Posted, post_comment

    if event.number is None:
        return Posted("not posted", why=f"{event.name or 'this event'} is of no pull request")
    posted = post_comment(GitHub.of(event.repository, os.environ), event.number, text)
    if posted.what == "not posted":
        where = "a fork's pull request has a token that only reads: " if event.fork else ""
        posted = posted._replace(why=f"{where}{posted.why}")
        _add_to_summary(f"Not posted as a comment: {posted.why}.")
    return posted


def _data(
    base: str, files: list[dict[str, Any]], found: list[tuple[Limit, str]], posted: Posted | None
) -> dict[str, Any]:
    said = posted and {"what": posted.what, "url": posted.url or None, "why": posted.why or None}
    return {
        "base": base,
        "files": files,
        "verdict": {
            "fails": bool(found),
            "because": [{"limit": str(limit), "what": what} for limit, what in found],
        },
        "comment": said,
    }
