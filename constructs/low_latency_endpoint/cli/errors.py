"""``low-latency errors``, and all error codes in one place: ``docs/reference/errors.md``."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ErrorRule, rules

_REGISTERS = re.compile(r'\b(?:rule|number_range|text_form)\(\s*"LL[A-Z]\d{3}"')

#: By how a code begins, in the order of the page.
_AREAS = {
    "LLE1": "Network",
    "LLE2": "PrivateLink",
    "LLE3": "Model, images, and arguments of all constructs",
    "LLE4": "Variants and endpoint configuration",
    "LLE5": "Endpoint, deployments, warm-up, load-test fleet",
    "LLE6": "Scaling",
    "LLE7": "Metrics and alarms",
    "LLE8": "Plan and prices",
    "LLE9": "Settings file",
    "LLA": "Reading an account",
    "LLC": "Callers",
    "LLD": "Diagnosis",
    "LLR": "Recommendations",
    "LLS": "Simulation",
    "LLT": "Load tests",
}

_INTRODUCTION = """\
# Error codes

<!-- Generated: low-latency errors --markdown > docs/reference/errors.md -->

Every configuration error carries a code that stays the same from version to version, what is
wrong, the value got, the values allowed, how to fix it and, where the rule is AWS's, the page that
states it. `low-latency errors LLE604` explains a code in the terminal. Nothing is corrected in
silence; what is only suspicious is a warning of the CDK and no error.
"""


def all_rules() -> list[ErrorRule]:
    """Every rule of the library by code; never loads the CDK.

    A rule stands beside the code that checks it, so this imports each module that registers one.
    """
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        if _REGISTERS.search(path.read_text(encoding="utf-8")):
            name = ".".join(path.relative_to(package).with_suffix("").parts)
            # Without the extra that a module needs, its errors cannot occur either.
            with suppress(ModuleNotFoundError):
                import_module(f"{package.name}.{name}")
    return list(rules())


def explained(rule: ErrorRule) -> str:
    """One rule for the terminal.

    Examples
    --------
    >>> from low_latency_endpoint.plan.limits import SAFETY_FACTOR
    >>> print(explained(SAFETY_FACTOR.rule).splitlines()[0])
    LLE604: the safety factor is out of range
    """
    lines = [f"{rule.code}: {rule.title}", "", rule.fix]
    if rule.source:
        lines += ["", f"Source: {rule.source}"]
    return "\n".join(lines)


def errors_markdown() -> str:
    """All rules as the page ``docs/reference/errors.md``."""
    parts = [_INTRODUCTION]
    rules_left = all_rules()
    for begin, area in _AREAS.items():
        parts.append(f"## {area}\n")
        parts += [_section(rule) for rule in rules_left if rule.code.startswith(begin)]
    return "\n".join(parts)


def _section(rule: ErrorRule) -> str:
    source = f" ([source]({rule.source}))" if rule.source else ""
    title = rule.title[0].upper() + rule.title[1:].rstrip(".")
    return f"### {rule.code}\n\n**{title}.** {rule.fix}{source}\n"


def errors(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="Code such as LLE604; all codes without it."),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown", help="All codes as a Markdown page, as docs/reference/errors.md holds them."
        ),
    ] = False,
) -> None:
    """Explain an error code, or list them all.

    Says what must hold, how to fix it, and where AWS states it.

    \b
    Examples:
      low-latency errors                       list all codes
      low-latency errors LLE604                explain one
      low-latency errors --markdown > docs/reference/errors.md
    """
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
