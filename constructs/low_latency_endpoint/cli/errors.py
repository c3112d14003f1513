"""``low-latency errors``."""

from __future__ import annotations

from typing import Annotated

import typer


def errors(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="Code such as LLE604; all codes without it."),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="All codes as a Markdown page, as docs/errors.md holds them."
        ),
    ] = False,
) -> None:
    """Explain an error code, or list them all.

    Says what must hold, how to mend it, and where AWS states it.

    \b
    Examples:
      low-latency errors                       list all codes
      low-latency errors LLE604                explain one
      low-latency errors --markdown > docs/errors.md
    """
    from .error_reference import all_rules, errors_markdown, explained

    if markdown:
        typer.echo(errors_markdown(), nl=False)
        return
    known = {rule.code: rule for rule in all_rules()}
    if code is None:
        for rule in known.values():
            typer.echo(f"{rule.code}  {rule.title}")
        return
    found = known.get(code.upper())
    if found is None:
        import difflib

        close = difflib.get_close_matches(code.upper(), known, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise typer.BadParameter(f"there is no error {code}.{hint} `low-latency errors` lists all.")
    typer.echo(explained(found))
