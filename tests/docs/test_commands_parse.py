"""Every command that the docs print: low-latency takes its arguments, make has its target.

test_commands_run.py runs them, on real clocks. This is quick, and holds for those too that nothing here
can run: they could be typed as they are printed.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from low_latency_endpoint.cli.application import app
from tests.docs.blocks import ALL_PAGES
from tests.docs.console_blocks import PAGES, ROOT, commands

GROUP: Any = typer.main.get_command(app)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
#: Programs that a reader has, or that the page has told to install; the CDK CLI is in no such place:
#: after `make setup` and in an app of `init` it is `npx cdk`.
OTHERS = {
    *(
        "aws",
        "awscurl",
        "cd",
        "cp",
        "curl",
        "docker",
        "echo",
        "gh",
        "git",
        "kill",
        "local-sagemaker",
    ),
    *("locust", "mkdir", "mv", "npm", "npx", "pip", "pytest", "python", "python3", "rm", "sed"),
    *("sleep", "source", "until", "wait"),
}


def _words(text: str) -> list[str]:
    text = re.sub(r"\\\n\s*", " ", text)
    words = shlex.split(text, comments=True)
    ends = [words.index(each) for each in words if re.fullmatch(r"[|&;<>]+|\|\||&&|>>?|2>", each)]
    return words[: min(ends)] if ends else words


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_can_be_typed_as_they_are_printed(page: Path) -> None:
    for each in commands(page.read_text("utf-8")):
        words = _words(each.text)
        program, *arguments = words
        if program == "low-latency":
            name, *rest = arguments
            assert name in GROUP.commands, each.text
            if name == "local-aws":
                continue
            # Parses, and ends before the command runs: an option that is not there is an error.
            with GROUP.commands[name].make_context(name, rest):
                pass
        elif program == "make":
            target = next(word for word in arguments if "=" not in word)
            assert target in TARGETS, each.text
        else:
            assert program in OTHERS, each.text


def test_pages_have_commands() -> None:
    assert sum(len(commands(page.read_text("utf-8"))) for page in PAGES) > 100
