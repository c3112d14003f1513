"""CloudWatch's metrics of SageMaker endpoints: namespace, unit, dimensions, valid statistics.

The table ``data/metrics.csv`` follows `Monitor SageMaker AI with Amazon CloudWatch
<https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html>`_. The conversion
between the milliseconds that people say and the microseconds that SageMaker publishes lives here
and nowhere else.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from ..errors import AWS_DOCS, rule
from .tables import rows

#: Percent of the whole instance from which it counts as full, and from which it may be: AWS's post on
#: load testing names 80 to 90 % for a larger type, and 60 to 70 % as what to aim at.
SATURATED_PERCENT, NEARLY_FULL_PERCENT = 85.0, 70.0

_STATISTICS = "/AmazonCloudWatch/latest/monitoring/Statistics-definitions.html"
_MONITORING = "/sagemaker/latest/dg/monitoring-cloudwatch.html"

METRIC_NAME = rule(
    "LLE730",
    "SageMaker endpoints have no metric of this name",
    fix="Use CloudWatch's name, such as ModelLatency.",
    source=_MONITORING,
)
STATISTIC_FORM = rule(
    "LLE731",
    "CloudWatch has no statistic of this form",
    fix="Use Average, Sum, Minimum, Maximum, SampleCount, or a percentile such as p99.9.",
    source=_STATISTICS,
)
STATISTIC_VALID = rule(
    "LLE732",
    "the statistic is not valid for the metric",
    fix="Use a statistic that AWS lists for this metric.",
    source=_MONITORING,
)
UNIT = rule("LLE733", "a latency is not a finite number", fix="Give a finite number above zero.")

MICROSECONDS_PER_MILLISECOND = 1000
SIMPLE_STATISTICS = ("Average", "Sum", "Minimum", "Maximum", "SampleCount")
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d{1,10})?)", re.ASCII)
_TRIMMED = re.compile(
    r"IQM|(?:tm|wm|tc|ts)\d{1,2}(?:\.\d{1,10})?"
    r"|(?:TM|WM|TC|TS|PR)\((?:\d+(?:\.\d+)?%?)?:(?:\d+(?:\.\d+)?%?)?\)",
    re.ASCII,
)


class MetricFacts(NamedTuple):
    """Facts of one metric in one namespace."""

    name: str  # as CloudWatch has them; latencies are in ``Microseconds``
    namespace: str
    unit: str
    # the sets of dimension names under which it is published, the plain one first
    dimensions: tuple[tuple[str, ...], ...]
    statistics: tuple[str, ...]  # the statistics that AWS lists as valid; empty when AWS lists none
    percentiles: bool  # whether percentiles and trimmed statistics are valid
    # endpoint shapes that publish it: ``single-model``, ``multi-model``, ``pipeline``,
    # ``inference-component``, ``serverless``, ``bidirectional-streaming``, ``explainer``
    shapes: tuple[str, ...]
    per_vcpu: bool  # whether it runs to 100 times the vCPUs, or the GPUs, instead of to 100
    per_gpu: bool
    period_seconds: int  # finest period at which it is published by default
    source: str  # page that says so
    verified: bool  # whether that page is current and was read
    note: str = ""  # what to know besides

    @property
    def valid_statistics(self) -> str:
        """The valid statistics in words."""
        simple = ", ".join(self.statistics or SIMPLE_STATISTICS)
        return f"{simple}, percentiles such as p99" if self.percentiles else simple


@cache
def metrics() -> tuple[MetricFacts, ...]:
    """All metrics; one that two namespaces publish stands in here twice."""
    return tuple(
        MetricFacts(
            name=row["name"],
            namespace=row["namespace"],
            unit=row["unit"],
            dimensions=tuple(tuple(names.split("+")) for names in row["dimensions"].split(";")),
            statistics=tuple(row["statistics"].split()),
            percentiles=row["percentiles"] == "yes",
            shapes=tuple(row["shapes"].split()),
            per_vcpu=row["scaling"] == "vcpu",
            per_gpu=row["scaling"] == "gpu",
            period_seconds=int(row["period_seconds"]),
            source=AWS_DOCS + row["source"],
            verified=row["verified"] == "yes",
            note=row["note"],
        )
        for row in rows("metrics")
    )


def metric_facts(name: str, namespace: str | None = None, where: str = "") -> MetricFacts:
    """Facts of a metric by name."""
    for facts in metrics():
        if facts.name == name and namespace in (None, facts.namespace):
            return facts
    names = sorted({facts.name for facts in metrics()})
    raise METRIC_NAME.error(got=repr(name), allowed=", ".join(names), where=where)


def check_statistic(metric: str, statistic: str, where: str = "") -> str:
    """The statistic; raises when CloudWatch lists others. Where it lists none, any passes."""
    facts = metric_facts(metric, where=where)
    if not _well_formed(statistic):
        raise STATISTIC_FORM.error(got=repr(statistic), allowed=facts.valid_statistics, where=where)
    if statistic in SIMPLE_STATISTICS:
        valid = not facts.statistics or statistic in facts.statistics
    else:
        valid = facts.percentiles
    if not valid:
        raise STATISTIC_VALID.error(
            what=f"{statistic} is not listed as valid for {metric}",
            got=statistic,
            allowed=facts.valid_statistics,
            where=where,
        )
    return statistic


def _well_formed(statistic: object) -> bool:
    if not isinstance(statistic, str):
        return False
    if match := _PERCENTILE.fullmatch(statistic):
        return 0 <= Decimal(match[1]) <= 100
    return statistic in SIMPLE_STATISTICS or _TRIMMED.fullmatch(statistic) is not None


def microseconds_from_milliseconds(milliseconds: float) -> float:
    """Milliseconds in SageMaker's unit, exactly: the decimals stay as stated."""
    return _scaled(milliseconds, 3)


def milliseconds_from_microseconds(microseconds: float) -> float:
    """SageMaker's unit in milliseconds, exactly."""
    return _scaled(microseconds, -3)


def _scaled(value: float, places: int) -> float:
    stated = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not stated.is_finite():
        raise UNIT.error(got=repr(value), allowed="a finite number")
    return float(stated.scaleb(places))
