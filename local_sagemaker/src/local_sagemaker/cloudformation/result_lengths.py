"""How long is what a template's functions give: told before it is made, as a few hundred bytes can give all
memory."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..protocols import ServiceError

MOST_OF_ONE = 1_048_576
"""Characters of one function's result: CloudFormation takes no longer template."""
MOST_OF_ALL = 16 * MOST_OF_ONE
"""Of the results of all functions of a template, those within others too."""
_OF_A_TEXT = 64
"""Characters for which a text of a list counts beside its own: what it takes in memory."""


class ResultLengths:
    """Lengths of the results in each block of a template, which is evaluated several times."""

    def __init__(self) -> None:
        self._of_blocks = {"": 0}
        self._block = ""

    def begin(self, block: str) -> None:
        """Count what follows for a resource or the outputs, instead of what was counted before."""
        self._of_blocks[block] = 0
        self._block = block

    def add(self, function: str, length: int, texts: int = 0) -> None:
        """Count a result that is to be made, and refuse one that is too long."""
        counted = length + _OF_A_TEXT * texts
        if counted > MOST_OF_ONE:
            raise ServiceError(
                f"Template error: the result of {function} is longer than {MOST_OF_ONE} characters"
            )
        self._of_blocks[self._block] += counted
        if sum(self._of_blocks.values()) > MOST_OF_ALL:
            raise ServiceError(
                "Template error: the results of the template's functions are longer than "
                f"{MOST_OF_ALL} characters"
            )

    def replaced(
        self,
        pattern: re.Pattern[str],
        value_of: Callable[[re.Match[str]], str],
        text: str,
        function: str,
    ) -> str:
        """Put values in place of what a pattern finds, as `re.sub` does; what is too long is never made."""
        parts: list[str] = []
        length = end = 0
        for found in pattern.finditer(text):
            parts += [text[end : found.start()], value_of(found)]
            length += len(parts[-2]) + len(parts[-1])
            end = found.end()
            if length > MOST_OF_ONE:
                break
        self.add(function, length + len(text) - end)
        return "".join([*parts, text[end:]])
