"""Names in commands that are printed: somebody pastes them into a shell, with rights of his own."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def shell_word(value: object) -> str:
    r"""Any text as one word of a command, of which a shell runs nothing.

    A backtick, which ends code in our texts, and what is not printed are written as Bash and zsh
    read them.

    >>> print(shell_word("sentiment"), shell_word("a b"), shell_word("$(x)`y`"))
    sentiment 'a b' $'$(x)\x60y\x60'
    """
    text = str(value)
    if "`" not in text and text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def shell_words(values: Iterable[object]) -> str:
    """Several of them."""
    return " ".join(map(shell_word, values))


def _escaped(letter: str) -> str:
    if letter in "'\\":
        return f"\\{letter}"
    if letter == "`":
        return r"\x60"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
