"""One entry of a settings file replaced by another, key and value: ``hugging_face`` by ``containers``.

Everything beside the entry keeps its characters; comments inside of it go with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import Any

import yaml

from .breach import Place, path_of
from .rules import CHANGED_VALUE_TOO_ODD

_SHORT = 80  # characters of a flow that stays on its line


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and a value, which may be a list or a mapping, that stand where another entry stood."""

    key: str
    value: Any

    def written_over(self, text: str, place: Place) -> str:
        """The text with the entry at that place replaced by this one.

        Raises
        ------
        ConfigurationError
            LLE937 where there is no entry that stands alone.

        Examples
        --------
        >>> print(Entry("data", {"s3_prefix": "s3://b/m/"}).written_over(
        ...     "data: {s3: s3://b/m.tar.gz}  # ours\\nname: x\\n", ("data",)), end="")
        data: {s3_prefix: 's3://b/m/'}  # ours
        name: x
        """
        found = _entry(yaml.compose(text, Loader=yaml.BaseLoader), place)
        if found is None:
            raise CHANGED_VALUE_TOO_ODD.error(
                got="no entry that stands alone",
                allowed="a key with its value",
                where=path_of(place),
            )
        around, key, value = found
        start, end = key.start_mark.index, value.end_mark.index
        in_flow = getattr(value, "flow_style", False)
        if not in_flow:  # the end of a block lies behind the empty lines and comments after it
            end = start + len(_without_what_follows(text[start:end]))
        written = self._written(flow=True)
        if not around.flow_style and not (in_flow and len(written) <= _SHORT):
            written = self._written(flow=False)
        margin = " " * key.start_mark.column
        newline = "\r\n" if "\r\n" in text else "\n"
        block = indent(written, margin).lstrip(" ").replace("\n", newline)
        return text[:start] + block + text[end:]

    def _written(self, *, flow: bool) -> str:
        # As wide as it gets, so that a flow never breaks into lines of another indent.
        written = yaml.dump(
            {self.key: self.value},
            Dumper=_Indented,
            sort_keys=False,
            default_flow_style=flow,
            allow_unicode=True,
            width=10**6,
        ).rstrip("\n")
        return written[1:-1] if flow else written


class _Indented(yaml.SafeDumper):
    """Lists stand further in than their key, as in files written by hand."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _entry(
    node: yaml.Node | None, place: Place
) -> tuple[yaml.MappingNode, yaml.Node, yaml.Node] | None:
    for depth, step in enumerate(place):
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            continue
        if not isinstance(node, yaml.MappingNode):
            return None
        pair = next(((key, value) for key, value in node.value if key.value == step), None)
        if pair is None or pair[1].start_mark.index < pair[0].start_mark.index:  # an alias
            return None
        if depth + 1 == len(place):
            return node, *pair
        node = pair[1]
    return None


def _without_what_follows(block: str) -> str:
    lines = block.splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines).rstrip()
