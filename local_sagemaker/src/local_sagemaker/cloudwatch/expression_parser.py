"""Metric math as text, read into a tree.

Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics".
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class ExpressionError(ValueError):
    """An expression that is not understood, or not emulated."""


@dataclass(frozen=True)
class Number:
    """A scalar."""

    value: float


@dataclass(frozen=True)
class Text:
    """A quoted string, as METRICS takes it."""

    value: str


@dataclass(frozen=True)
class Name:
    """The id of a query (lower case), or a keyword such as REPEAT or DESC (upper case)."""

    name: str


@dataclass(frozen=True)
class Array:
    """`[a, b]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Call:
    """A function with its arguments."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Operation:
    """An operator with one or two operands."""

    operator: str
    operands: tuple[Node, ...]


Node = Number | Text | Name | Array | Call | Operation

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<symbol>==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],]))"
)
# From the loosest to the tightest; those of one row bind alike, from the left.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("OR", "||"),
    ("AND", "&&"),
    ("==", "!=", "<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "/"),
)
_ALIASES = {"||": "OR", "&&": "AND"}


def parse_expression(text: str) -> Node:
    """Read an expression.

    Raises
    ------
    ExpressionError
        When it cannot be read.

    Examples
    --------
    >>> parse_expression("errors / invocations").operator
    '/'
    """
    parser = _Parser(text)
    node = parser.level(0)
    if parser.position < len(parser.tokens):
        raise ExpressionError(f"Unexpected '{parser.tokens[parser.position]}' in '{text}'")
    return node


def names_in(node: Node) -> set[str]:
    """Give the query ids that an expression reads; METRICS() reads more."""
    match node:
        case Name(name):
            return {name} if name[0].islower() else set()
        case Array(items) | Call(_, items) | Operation(_, items):
            return set().union(*(names_in(item) for item in items))
    return set()


def functions_in(node: Node) -> set[str]:
    """Give the functions that an expression calls."""
    match node:
        case Call(function, arguments):
            return {function}.union(*(functions_in(item) for item in arguments))
        case Array(items) | Operation(_, items):
            return set().union(*(functions_in(item) for item in items))
    return set()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.position = 0
        place = 0
        stripped = text.rstrip()
        while place < len(stripped):
            found = _TOKEN.match(stripped, place)
            if not found:
                raise ExpressionError(f"Cannot read '{stripped[place:]}' in '{text}'")
            self.tokens.append(found[0].strip())
            place = found.end()

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise ExpressionError(f"Expected '{wanted or 'more'}' in '{self.text}'")
        self.position += 1
        return token

    def level(self, depth: int) -> Node:
        if depth == len(_LEVELS):
            return self.unary()
        node = self.level(depth + 1)
        while self.peek() in _LEVELS[depth]:
            operator = self.take()
            right = self.level(depth + 1)
            node = Operation(_ALIASES.get(operator, operator), (node, right))
        return node

    def unary(self) -> Node:
        if self.peek() == "-":
            self.take()
            return Operation("negate", (self.unary(),))
        return self.power()

    def power(self) -> Node:
        node = self.primary()
        if self.peek() == "^":
            self.take()
            return Operation("^", (node, self.unary()))
        return node

    def primary(self) -> Node:
        token = self.take()
        if token == "(":
            node = self.level(0)
            self.take(")")
            return node
        if token == "[":
            return Array(self.items("]"))
        if token[0] in "\"'":
            return Text(token[1:-1])
        if token[0].isdigit() or token[0] == ".":
            return Number(float(token))
        if not (token[0].isalpha() or token[0] == "_"):
            raise ExpressionError(f"Unexpected '{token}' in '{self.text}'")
        if self.peek() == "(":
            self.take()
            return Call(token, self.items(")"))
        return Name(token)

    def items(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while self.peek() != end:
            items.append(self.level(0))
            if self.peek() != end:
                self.take(",")
        self.take(end)
        return tuple(items)
