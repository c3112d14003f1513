"""Text of others in which nothing acts: on a terminal, on a reader's eye, or on a runner of jobs.

What files, file names, accounts and containers say is shown, but is data. A character that moves a
cursor, ends a line, hides, is drawn blank, or turns others round is spelt out; so is what the runners
of GitHub and Azure Pipelines take for a command wherever it is printed. It is spelt as in JSON, so
that the same holds for the JSON that we write.
"""

from __future__ import annotations

import re
import unicodedata

_ACTING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
#: Unicode's Default_Ignorable_Code_Point, what hides in letters and marks among it: fillers of
#: Hangul, the variation of an emoji too; and of what is drawn blank a Braille pattern and a note.
#: Source: unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt
_HIDDEN = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\u2800\U0001d159]"
)
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
    if not text.isprintable() or _HIDDEN.search(text):
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
    acts = unicodedata.category(character) in _ACTING or _HIDDEN.match(character)
    return _units(character) if acts else character


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
