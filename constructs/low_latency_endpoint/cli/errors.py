"""``low-latency errors``, and all codes in one place: ``docs/reference/errors.md``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from ..errors import did_you_mean, rules
from ..facts.limit_kinds import USE_AN_ALLOWED_VALUE, Limit
from .options import Json, Markdown
from .output import print_json, say

_REGISTERS = re.compile(
    r'\b(?:rule|number_range|text_form|(?:endpoint_)?check|kind)\(\s*"LL[A-Z]\d{3}"'
)

_OUT_OF_LIMIT = re.compile(r"(.+) (?:is|are) (?:out of range|not valid)")

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
    "LLE9": "Settings file and commands",
    "LLP": "Checks of preflight",
    "LLV": "Checks of verify",
    "LLD": "Findings and errors of diagnose",
    "LLA": "Reading an account",
    "LLC": "Callers",
    "LLR": "SageMaker jobs",
    "LLS": "Simulation",
    "LLT": "Load tests",
}

_INTRODUCTION = """\
# Codes

<!-- Generated: low-latency errors --markdown > docs/reference/errors.md -->

Every error, `preflight` or `verify` check, and `diagnose` finding has a code, the same in every
version. `low-latency errors LLE604` explains a code in the terminal.
"""


@dataclass(frozen=True)
class Explained:
    code: str
    title: str
    text: str = ""  # how to fix it, how a check finds it out, or when a finding is given
    source: str = ""  # the page that states it; empty where the rule is the library's own
    # what a limit allows, as its error says it; empty where there is more than one limit
    allowed: str = ""

    def __str__(self) -> str:
        source = f"Source: {self.source}" if self.source else ""
        return "\n\n".join(filter(None, (f"{self.code}: {self.title}", self.meaning, source)))

    @property
    def meaning(self) -> str:
        return " ".join(filter(None, (self.allowed and f"Allowed: {self.allowed}.", self.text)))


def all_codes() -> list[Explained]:
    """Every code of every command, in the order of the page; never loads the CDK."""
    modules = _registering()
    allowed = _allowed(modules)
    codes = [
        Explained(
            rule.code,
            rule.title,
            "" if rule.fix == USE_AN_ALLOWED_VALUE and rule.code in allowed else rule.fix,
            rule.source,
            allowed.get(rule.code, ""),
        )
        for rule in rules()
    ]
    with suppress(ModuleNotFoundError):  # a distribution of its own
        from low_latency_client.errors import rules as client_rules

        codes += [
            Explained(rule.code, rule.title, rule.fix, rule.source) for rule in client_rules()
        ]
    with suppress(ModuleNotFoundError):  # without boto3 nothing is checked, nor diagnosed
        from ..operate.checking.checks import checks
        from ..operate.diagnose.findings import KINDS

        codes += [Explained(check.id, check.title, check.how, check.source) for check in checks()]
        codes += [
            Explained(kind.id, kind.title, f"When: {kind.when}. {kind.advice}".strip(), kind.source)
            for kind in KINDS.values()
        ]
    areas = list(_AREAS)
    return sorted(
        codes,
        key=lambda each: (next(map(areas.index, filter(each.code.startswith, areas))), each.code),
    )


def _registering() -> list[ModuleType]:
    """Each module that registers a rule, a check or a finding, beside the code that uses it."""
    package = Path(__file__).parents[1]
    found = []
    for path in sorted(package.rglob("*.py")):
        if _REGISTERS.search(path.read_text(encoding="utf-8")):
            name = ".".join(path.relative_to(package).with_suffix("").parts)
            # Without the extra that a module needs, its errors cannot occur either.
            with suppress(ModuleNotFoundError):
                found.append(import_module(f"{package.name}.{name}"))
    return found


def _allowed(modules: Iterable[ModuleType]) -> dict[str, str]:
    """What the limit of each code allows; nothing for a code of several limits."""
    found: dict[str, set[str]] = {}
    for limit in (each for module in modules for each in vars(module).values()):
        if isinstance(limit, Limit):
            found.setdefault(limit.rule.code, set()).add(limit.allowed)
    return {code: allowed.pop() for code, allowed in found.items() if len(allowed) == 1}


def errors_markdown() -> str:
    """All codes as the page ``docs/reference/errors.md``."""
    parts = [_INTRODUCTION]
    left = all_codes()
    for begin, area in _AREAS.items():
        parts.append(f"## {area}\n")
        parts += [_section(each) for each in left if each.code.startswith(begin)]
    return "\n".join(parts)


def _section(each: Explained) -> str:
    source = f" ([source]({each.source}))" if each.source else ""
    title, meaning = each.title.rstrip("."), each.meaning
    of_limit = _OUT_OF_LIMIT.fullmatch(title)
    if of_limit and each.allowed:
        title, meaning = f"{of_limit[1]} must be {each.allowed}", each.text
    if "_" not in title.partition(" ")[0]:  # the name of an argument stays as it is
        title = title[0].upper() + title[1:]
    text = f"**{title}.** {meaning}".rstrip()
    return f"### {each.code}\n\n{_no_tags(text)}{source}\n"


def _no_tags(text: str) -> str:
    """Markdown in which ``<name>`` is not HTML; code is left as it is."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def errors(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="Code, such as LLE604 or LLP403. Default: all codes."),
    ] = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Explain the code of an error, a check or a finding, or list all codes.

    Shows what must hold, how to fix it, and AWS's page about it.

    \b
    Exit codes:
      0  explained
      2  no such code

    \b
    Examples:
      low-latency errors
      low-latency errors LLE604
      low-latency errors --markdown > docs/reference/errors.md
    """
    if markdown and code is None:
        say(errors_markdown(), nl=False)
        return
    known = {code.code: code for code in all_codes()}
    code = None if code is None else code.strip().upper()
    if code is not None and code not in known:
        near = did_you_mean(code, (each for each in known if each[:3] == code[:3]))
        raise typer.BadParameter(f"there is no code {code}. {near} `low-latency errors` lists all.")
    chosen = list(known.values()) if code is None else [known[code]]
    if json:
        print_json({"codes": [asdict(each) for each in chosen]})
    elif markdown:
        say(_section(chosen[0]), nl=False)
    elif code is not None:
        say(str(chosen[0]))
    else:
        for each in chosen:
            say(f"{each.code}  {each.title}")
