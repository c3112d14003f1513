"""Regular expressions of others, some of which take years for a value."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

_SECONDS = 5.0
_PROGRAM = (
    "import json, re, sys; how, pattern, texts = json.load(sys.stdin); "
    "sys.exit(0 if all(getattr(re, how)(pattern, text) for text in texts) else 3)"
)


def match_all(pattern: str, texts: Sequence[str], how: str = "fullmatch") -> bool:
    """Whether a pattern matches each text.

    Python's engine lets no other thread run, so a pattern with more than one choice has a process.

    Raises
    ------
    ValueError
        It is no pattern, or takes too long.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern}: {error}") from None
    if sum(map(pattern.count, "*+?{|")) <= 1:
        return all(getattr(compiled, how)(text) for text in texts)
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    given = json.dumps([how, pattern, list(texts)])
    try:
        done = subprocess.run(command, input=given, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(f"{pattern} takes more than {_SECONDS:.0f} seconds") from None
    return done.returncode == 0
