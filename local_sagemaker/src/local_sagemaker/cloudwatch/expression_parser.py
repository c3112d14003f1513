"""Metric math as text, read into a tree by Python's own parser: operators bind alike in both.

Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics".
"""

from __future__ import annotations

import ast
import functools
import re


class ExpressionError(ValueError):
    """An expression that is not understood, or not emulated."""


_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<symbol>==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],])|(?P<other>\S)"
)
_SPELLINGS = {"OR": "or", "||": "or", "AND": "and", "&&": "and", "^": "**"}
_KNOWN = (
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.List,
    ast.Name,
    ast.USub,
    ast.UnaryOp,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.operator,
)


@functools.lru_cache(1024)  # alarms are judged every minute
def parse_expression(text: str) -> ast.expr:
    """Read an expression: numbers, names, texts, lists, calls, and operators between them.

    Examples
    --------
    >>> sorted(names_in(parse_expression("errors / SUM([a, b])")))
    ['a', 'b', 'errors']
    """
    python = " ".join(map(_in_python, _TOKEN.finditer(text)))
    try:
        tree = ast.parse(python, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(f"'{text}' is not an expression") from None
    for node in ast.walk(tree):
        called = not isinstance(node, ast.Call) or isinstance(node.func, ast.Name)
        if not isinstance(node, _KNOWN) or not called:
            raise ExpressionError(f"'{text}' is not an expression of metric math")
        if isinstance(node, ast.Name):
            node.id = node.id[1:]
    return tree


def _in_python(token: re.Match[str]) -> str:
    """Spell a token as Python does; names are marked, since some are Python's own words."""
    match token.lastgroup:
        case "number":
            return repr(float(token[0]))
        case "text":
            return repr(token[0][1:-1])
        case "name":
            return _SPELLINGS.get(token[0], f"_{token[0]}")
        case "other":
            raise ExpressionError(
                f"Cannot read '{token.string[token.start() :]}' in '{token.string}'"
            )
    return _SPELLINGS.get(token[0], token[0])


def names_in(node: ast.expr) -> set[str]:
    """Give the query ids that an expression reads."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return {name for name in names if name[0].islower()}


def functions_in(node: ast.expr) -> set[str]:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}
