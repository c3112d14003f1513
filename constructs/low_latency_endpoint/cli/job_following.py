"""What ``recommend`` and ``recommend-generative`` share: asking first, following, printing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from ..settings.breach import Place

__all__ = ["confirm", "following", "only_endpoint", "write_settings"]

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def confirm(question: str, *, yes: bool) -> None:
    """Go on only with consent: ``--yes``, or an answer on the terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        typer.echo("Nothing was changed: there is no terminal to ask on. Pass --yes to go on.",
                   err=True)
        raise typer.Exit(2)
    typer.confirm(question, abort=True, err=True)


@contextmanager
def following(come_back: Sequence[str], *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show how a job goes on; Ctrl-C ends the watching, not the job, and says how to come back."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    last: list[str] = []

    def line(text: str) -> None:
        if not quiet and last != [text]:
            last[:] = [text]
            typer.echo(text, err=True)

    try:
        if quiet or not console.is_terminal:
            yield line
        else:
            with console.status("Asking AWS") as status:
                yield lambda text: status.update(text)
    except KeyboardInterrupt:
        typer.echo("\n" + "\n".join(come_back), err=True)
        raise typer.Exit(INTERRUPTED) from None


def only_endpoint(endpoints: Sequence[str], wanted: str | None) -> str:
    """The endpoint meant: the one named, or the only one."""
    if wanted is None and len(endpoints) == 1:
        return endpoints[0]
    if wanted is None or wanted not in endpoints:
        got = f"there is no endpoint {wanted}" if wanted else "the file has several endpoints"
        raise typer.BadParameter(f"{got}: choose one of {', '.join(endpoints)}.",
                                 param_hint="--endpoint")
    return wanted


def write_settings(path: Path, values: dict[Place, Any], notes: Sequence[str], *, yes: bool,
                   json: bool) -> dict[str, Any]:
    """Show what would change in the settings file, ask, and write it."""
    from ..settings.yaml_editing import edit_settings_file, write_edit

    edit = edit_settings_file(path, values)
    if not edit.changed:
        typer.echo(f"{path} says this already.", err=json)
        return {"changed": False, "diff": "", "notes": list(notes)}
    typer.echo(edit.diff(), nl=False, err=json)
    for note in notes:
        typer.echo(f"Note: {note}", err=json)
    confirm(f"Write this into {path}?", yes=yes)
    write_edit(edit)
    typer.echo(f"wrote {path}; see what follows with: low-latency plan {path}", err=True)
    return {"changed": True, "diff": edit.diff(), "notes": list(notes)}
