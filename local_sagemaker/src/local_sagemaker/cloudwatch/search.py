"""Search expressions, as far as dashboards of fixed schemas need them.

``SEARCH('{AWS/SageMaker,EndpointName,VariantName} MetricName="Invocations" EndpointName="a"',
'Sum', 60)``: one schema, and terms of the form ``name="value"`` that must all hold exactly. Source:
CloudWatch user guide, "CloudWatch search expression syntax". Other terms are refused.
"""

from __future__ import annotations

import re

from .expression_parser import ExpressionError
from .metric_store import MetricKey, MetricStore

_SCHEMA = re.compile(r"\s*\{([^}]*)\}\s*(.*)", re.DOTALL)
_TERM = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*\"([^\"]*)\"\s*(?:AND\b)?", re.IGNORECASE)


def found_metrics(store: MetricStore, text: str) -> list[tuple[MetricKey, str]]:
    """Give the metrics that a search finds, each with the label that tells it apart.

    Raises
    ------
    ExpressionError
        For a search that is written in another way.
    """
    match = _SCHEMA.fullmatch(text)
    if match is None:
        raise ExpressionError("The local AWS searches by a schema in braces, then terms")
    namespace, *dimensions = [part.strip().strip('"') for part in match[1].split(",")]
    terms = _terms(match[2])
    name = terms.pop("MetricName", None)
    found = [
        key
        for key in sorted(store.samples, key=lambda key: (key[1], sorted(key[2])))
        if key[0] == namespace
        and {dimension for dimension, _ in key[2]} == set(dimensions)
        and name in (None, key[1])
        and all((dimension, value) in key[2] for dimension, value in terms.items())
    ]
    shared = frozenset.intersection(*(key[2] for key in found)) if len(found) > 1 else frozenset()
    return [(key, _label(key, shared, dimensions)) for key in found]


def _terms(text: str) -> dict[str, str]:
    terms, position = {}, 0
    while position < len(text.rstrip()):
        term = _TERM.match(text, position)
        if term is None:
            raise ExpressionError('The local AWS searches by terms of the form name="value"')
        terms[term[1]] = term[2]
        position = term.end()
    return terms


def _label(key: MetricKey, shared: frozenset[tuple[str, str]], order: list[str]) -> str:
    """The values of the dimensions in which the metrics found differ; of one, all of them."""
    values = dict(key[2] - shared)
    return " ".join(values[name] for name in order if name in values) or key[1]
