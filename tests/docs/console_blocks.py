"""The console blocks of a page of Markdown: commands, and what each shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "client" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """One command with its continuation lines, and the lines that the page shows below it."""

    text: str
    shown: list[str]


def commands(page: str) -> list[Command]:
    """All of them, in their order; in a block without ``$`` every line is a command."""
    found: list[Command] = []
    for block in _BLOCK.findall(page):
        with_prompt = any(line.startswith("$ ") for line in block.splitlines())
        is_open = False
        for line in block.splitlines():
            if line.startswith("$ ") or (not with_prompt and not is_open and line.strip()):
                found.append(Command(line.removeprefix("$ "), []))
                is_open = _goes_on(found[-1].text)
            elif is_open:
                found[-1].text += f"\n{line}"
                is_open = _goes_on(found[-1].text)
            elif with_prompt and found:
                found[-1].shown.append(line)
    return found


def _goes_on(text: str) -> bool:
    """Whether the shell waits for more: a line that ends with a backslash, or an open quote.

    Examples
    --------
    >>> _goes_on("echo 'a"), _goes_on("make wheel  # in the app's folder")
    (True, False)
    """
    return text.endswith("\\") or text.partition(" # ")[0].count("'") % 2 == 1


def shows(shown: list[str], printed: str) -> bool:
    """Whether a command printed what the page shows; ``...`` stands for any lines.

    Examples
    --------
    >>> shows(["one", "...", "four"], "one\\ntwo\\nthree\\nfour\\n")
    True
    >>> shows(["one", "four"], "one\\ntwo\\nfour\\n")
    False
    """
    lines = [re.escape(line.rstrip()) for line in shown]
    pattern = "".join(r"(?:.*\n)*" if line == r"\.\.\." else f"{line}\\n" for line in lines)
    text = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, text) is not None
