"""Docstrings as the Markdown of a reference page: links for Sphinx roles, Python for doctests."""

from __future__ import annotations

import ast
import doctest
import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

_ROLE = re.compile(r":(?:py:)?(attr|class|data|exc|func|meth|mod):\s?`~?\.?([\w.]+)`")
_LITERAL = re.compile(r"``(.+?)``", re.S)
_RST_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_+")
_CODE = re.compile(r"(?<![\w/#`])LL[A-Z]\d{3}\b(?!`)")
_STAR = re.compile(r"^from ([\w.]+) import \*$", re.M)


@dataclass(frozen=True)
class Page:
    """A page, as what it shows links from there."""

    path: str
    """Below ``docs/``."""
    package: str
    """Importable name of what it documents."""
    places: Mapping[str, str]
    """By public name, and ``Class.method``: page and anchor."""

    def link(self, name: str, text: str = "") -> str:
        """A link to a public name, else the name as code."""
        shown = f"`{text or name}`"
        place = self.places.get(f"{self.package}:{name}") or self.places.get(name)
        target = self.relative(place) if place else ""
        return f"[{shown}]({target})" if target else shown

    def relative(self, place: str) -> str:
        """A place as seen from this page."""
        path, hash_, anchor = place.partition("#")
        if path == self.path:
            return hash_ + anchor
        return os.path.relpath(path, os.path.dirname(self.path)) + hash_ + anchor

    def prose(self, text: str) -> str:
        """A docstring's text in Markdown: roles, literals and codes of errors."""
        errors = self.relative("reference/errors.md")
        text = _RST_LINK.sub(r"[\1](\2)", text)
        text = re.sub(r"``(LL[A-Z]\d{3})``", r"\1", text)
        text = _ROLE.sub(lambda role: self._role(role[1], role[2]), text)
        text = _LITERAL.sub(r"`\1`", text)
        return _CODE.sub(lambda code: f"[{code[0]}]({errors}#{code[0].lower()})", text)

    def _role(self, kind: str, target: str) -> str:
        parts = target.split(".")
        if kind == "mod":
            return f"`{target}`"
        if kind in ("meth", "attr"):
            owned = ".".join(parts[-2:])
            return self.link(owned, owned if owned in self.places else parts[-1])
        return self.link(parts[-1])

    def cell(self, text: str) -> str:
        """The same for a table: one line, of whole sentences."""
        line = " ".join(self.prose(text).split()).replace("|", "&#124;")
        if line and line[0].islower() and not re.match(r"boto3|vCPU", line):
            line = line[0].upper() + line[1:]
        return line if not line or line[-1] in ".:!?`" else f"{line}."

    def kind(self, annotation: str) -> str:
        """An annotation in Markdown; each alternative leads to the page of its class."""
        if not annotation:
            return ""
        alternatives = _alternatives(annotation)
        shown = [self._alternative(each) for each in alternatives if each != "None"]
        if "None" in alternatives and not shown:
            shown = ["`None`"]
        return ", ".join(shown[:-1]) + (" or " if shown[:-1] else "") + shown[-1]

    def kinds(self, annotation: str) -> str:
        """The same of the errors that a docstring names together."""
        return ", ".join(
            self.link(name.rpartition(".")[2], name) for name in re.findall(r"[\w.]+", annotation)
        )

    def _alternative(self, annotation: str) -> str:
        known = [name for name in re.findall(r"\w+", annotation) if name in self.places]
        annotation = annotation.replace(" | ", " or ")  # a bar ends a cell
        return self.link(known[0], annotation) if known else f"`{annotation}`"

    def blocks(self, text: str) -> list[str]:
        """Paragraphs and examples of a docstring, each in Markdown."""
        shown: list[str] = []
        parts = re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n"))
        for number, part in enumerate(parts):
            if part.lstrip().startswith(">>>"):
                shown.append(self.example(part))
            elif part.startswith("   ") and number and parts[number - 1].rstrip().endswith(":"):
                shown.append(_fenced(textwrap.dedent(part)))
            elif part.strip() != "::":
                shown.append(self.prose(re.sub(r"::$", ":", part.strip())))
        return [block for block in shown if block]

    def example(self, text: str) -> str:
        """A doctest as Python, with imports of what it uses and outputs as comments."""
        lines: list[str] = []
        for each in doctest.DocTestParser().get_examples(textwrap.dedent(text)):
            source = re.sub(r"  # doctest: .*", "", each.source.rstrip())
            lines += source.split("\n")
            lines += [f"# {line}".rstrip() for line in each.want.rstrip().split("\n") if each.want]
        code = "\n".join(lines)
        star = _STAR.search(code)
        package = star[1] if star else self.package
        missing = self._missing(code, package)
        line = f"from {package} import {', '.join(missing)}" if missing else ""
        if len(line) > 88:
            line = f"from {package} import (\n" + "".join(f"    {n},\n" for n in missing) + ")"
        code = _STAR.sub("", code)
        return f"```python\n{_with_import(code, line)}\n```"

    def _missing(self, code: str, package: str) -> list[str]:
        """Public names of the package that the code uses and does not import."""
        tree = ast.parse(code)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        names = self.places if package == self.package else {}
        return sorted(name for name in used - imported if self._is_of(name, package, names))

    def _is_of(self, name: str, package: str, names: Mapping[str, str]) -> bool:
        return f"{package}:{name}" in names


def _fenced(code: str) -> str:
    try:
        ast.parse(code)
    except SyntaxError:
        return f"```text\n{code}\n```"
    return f"```python\n{code}\n```"


def _with_import(code: str, line: str) -> str:
    """Code with a line after the imports at its beginning, and an empty one between."""
    body = ast.parse(code).body
    imports = list(takewhile(lambda node: isinstance(node, ast.Import | ast.ImportFrom), body))
    end = imports[-1].end_lineno or 0 if imports else 0
    lines = [each for each in code.split("\n")[:end] if each] + ([line] if line else [])
    rest = "\n".join(code.split("\n")[end:]).strip("\n")
    return "\n".join([*lines, "", rest]) if lines else rest


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union; what ``Annotated`` says beside the type is left out.

    >>> _alternatives("Annotated[Sequence[str] | None, Option(x)] | Literal['a', 'b']")
    ['Sequence[str]', 'None', '"a"', '"b"']
    """
    annotation = re.sub(r", optional$|^optional$", "", annotation)
    annotation = re.sub(r"^(dict|mapping) of (\w+) to ([\w.]+)", r"\1[\2, \3]", annotation)
    annotation = re.sub(r"^(tuple|list|sequence|set) of ([\w.]+)", r"\1[\2]", annotation)
    annotation = re.sub(r" or ", " | ", annotation)
    return _of_node(ast.parse(annotation, mode="eval").body) if annotation else []


def _of_node(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _of_node(node.left) + _of_node(node.right)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _alternatives(node.value)
    if isinstance(node, ast.Set):
        return [ast.unparse(value).replace("'", '"') for value in node.elts]
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value)
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        if name == "Annotated":
            return _of_node(first)
        if name == "Literal":
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return [ast.unparse(value).replace("'", '"') for value in values]
    return [ast.unparse(node)]
