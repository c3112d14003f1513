"""Text of others in which nothing acts: on a terminal, on a reader's eye, or on a runner of jobs.

What files, file names, accounts and containers say is shown, but is data. A character that moves a
cursor, ends a line, hides, or turns others round is spelt out; so is what the runners of GitHub and
Azure Pipelines take for a command wherever it is printed. It is spelt as in JSON, so that the same
holds for the JSON that we write.
"""

from __future__ import annotations

import re
import unicodedata

_ACTING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: Source: github.com/actions/runner, ActionCommand.cs and ActionCommandManager.cs: ``::name`` begins
#: a command at the begin of a line, which a terminal's width may make of any place; ``##[name`` does
#: so within a line. Azure Pipelines has ``##vso[``.
_COMMAND = re.compile(
    r"(?<=:):(?=(?:add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|"
    r"internal-set-repo-path|notice|remove-matcher|save-state|set-env|set-output|stop-commands|"
    r"warning)[ :])|(?<=#)#(?=\w*\[)",
    re.IGNORECASE,
)


def visible(text: str) -> str:
    r"""One line, in which nothing acts.

    >>> print(visible("a\x1b[31m\n::set-output name=a::b"))
    a\u001b[31m\n:\u003aset-output name=a::b
    """
    if not text.isprintable():
        text = "".join(map(_spelt, text))
    return _COMMAND.sub(lambda command: _units(command[0]), text)


def visible_lines(text: str) -> str:
    r"""Lines that were meant as such, in each of which nothing acts; tabs stay.

    >>> print(visible_lines("a\x07\nb"))
    a\u0007
    b
    """
    return "\n".join(
        "\t".join(visible(part) for part in line.split("\t")) for line in text.split("\n")
    )


def _spelt(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return _units(character) if unicodedata.category(character) in _ACTING else character


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
