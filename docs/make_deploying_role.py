"""``docs/reference/deploying-role.md``: the statements of the deploying role, written from the library's data.

``python -m docs.make_deploying_role docs/reference/deploying-role.md`` rewrites what stands between
the two marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.make_settings_tables import rewrite

from low_latency_endpoint.operate.preflight.deploying_role import (
    DeployingStatement,
    DeploymentPlace,
    deploying_cases,
    deploying_statements,
    needed_statements,
)
from low_latency_endpoint.settings import load_settings

SHIPPED = Path(__file__).parents[1] / "endpoint.yaml"
PLACE = DeploymentPlace("STACK", "ACCOUNT", "REGION", parameters="/PREFIX")


def deploying_role_tables() -> str:
    """The policies of the default stack, what other stacks need beside them, and all sources."""
    default = list(needed_statements(load_settings(SHIPPED)))
    on_all = [statement for statement in default if "*" in statement.resources]
    named = [statement for statement in default if statement not in on_all]
    parts = ["## The default stack\n", _policy(named), _policy(on_all), "## Other stacks\n"]
    for case, meaning in deploying_cases().items():
        beside = [statement for statement in deploying_statements() if case in statement.when]
        if not {*beside} <= {*default}:
            parts += [f"### {case.capitalize()}\n\n{meaning}\n", _policy(beside)]
    return "\n".join([*parts, "## Sources\n", *_cases(), "", *_sources()])


def _cases() -> Iterator[str]:
    for case, meaning in deploying_cases().items():
        yield f"- **{case}**: {meaning}"


def _policy(statements: Iterable[DeployingStatement]) -> str:
    document = {
        "Version": "2012-10-17",
        "Statement": [statement.in_policy(PLACE) for statement in statements],
    }
    return f"```json\n{json.dumps(document, indent=2)}\n```\n"


def _sources() -> Iterator[str]:
    """A row for each statement: its actions by their source, when it is needed, and what to know."""
    yield "| Statement | When | Called | Documented | Notes |\n|---|---|---|---|---|"
    for statement in deploying_statements():
        when = ", ".join(statement.when) or "always"
        told = [f"{_code(statement.told)}: [report]({statement.source})."] if statement.told else []
        notes = " ".join([*told, statement.note])
        yield (
            f"| {statement.sid} | {when} | {_code(statement.called)} "
            f"| {_code(statement.documented)} | {notes.strip()} |"
        )


def _code(actions: Iterable[str]) -> str:
    return " ".join(f"`{action}`" for action in actions)


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]), deploying_role_tables())
