"""PromQL over an account's metrics: CloudWatch's Prometheus-compatible API.

boto3 has no operations for it: the requests are signed and sent by its CloudWatch client, so that
its credentials, endpoint, certificates and proxies hold for them too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from ..facts.prices import OTEL_METRICS_USD
from .calls import Account
from .sessions import Unreadable

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_RIGHTS = "cloudwatch:GetMetricData and cloudwatch:ListMetrics"
"""CloudWatch's guide; SageMaker's lists cloudwatch:QueryMetrics and DescribeMetrics besides."""


class QuerySample(NamedTuple):
    """One series that a query returned, with its value; NaN where there is none."""

    labels: Mapping[str, str]
    value: float


def query_samples(account: Account, query: str, at: datetime) -> list[QuerySample]:
    """What a query returns at a moment: a vector, or a scalar as one series without labels."""
    data = _ask(account, "query", {"query": query, "time": f"{at.timestamp():.3f}"})
    if data["resultType"] == "scalar":
        return [QuerySample({}, float(data["result"][1]))]
    if data["resultType"] != "vector":
        raise Unreadable(f"the query returns a {data['resultType']}, and no instant vector")
    # An exponential histogram has no value of its own; that there is one is what counts.
    return [
        QuerySample(row["metric"], float(row["value"][1] if "value" in row else "nan"))
        for row in data["result"]
    ]


def label_values(
    account: Account, label: str, start: datetime, end: datetime, *, metric: str = ""
) -> list[str]:
    """The values of a label among the series with data in a time window."""
    fields = {"start": f"{start.timestamp():.0f}", "end": f"{end.timestamp():.0f}"}
    if metric:
        fields["match[]"] = f'{{"{metric}"}}'
    return [str(each) for each in _ask(account, f"label/{quote(label, safe='')}/values", fields)]


START_ENRICHMENT = (
    "`aws observabilityadmin start-telemetry-enrichment`, then `aws cloudwatch "
    "start-otel-enrichment`, once for the account and Region. From then on CloudWatch bills each GB "
    f"of metrics that it enriches ({OTEL_METRICS_USD:.2f} USD by AWS's launch post), those of the "
    "account's other services too."
)
"""How it is started: "before calling this operation, you must enable resource tags on telemetry"."""


def enrichment_status(account: Account) -> str:
    """Whether CloudWatch's OTel enrichment is ``Running`` or ``Stopped`` in the account's Region."""
    if not hasattr(account.client("cloudwatch"), "get_otel_enrichment"):
        raise Unreadable("this boto3 does not know GetOTelEnrichment", "Upgrade boto3.")
    return str(account.read("cloudwatch", "get_otel_enrichment")["Status"])


def _ask(account: Account, path: str, fields: Mapping[str, str]) -> Any:
    client = account.client("cloudwatch")
    url, form = f"{client.meta.endpoint_url.rstrip('/')}/api/v1/{path}", urlencode(fields)
    if path.startswith("label/"):  # takes no POST
        request = AWSRequest("GET", f"{url}?{form}")
    else:
        request = AWSRequest("POST", url, data=form, headers=_FORM)
    try:
        client._request_signer.sign("QueryMetrics", request)
        answer = client._endpoint.http_session.send(request.prepare())
    except (ClientError, BotoCoreError) as error:
        raise Unreadable.of("cloudwatch", "QueryMetrics", error) from error
    try:
        document = json.loads(answer.content)
        if answer.status_code == 200:
            return document["data"]
        said = str(document.get("error") or document.get("message") or document)[:200]
    except (ValueError, AttributeError, KeyError):
        said = "no document of the API"
    if answer.status_code in (401, 403):
        raise Unreadable(
            f"these credentials may not query metrics: {said}",
            f"Allow {_RIGHTS} to these credentials, or ask somebody who may.",
        )
    raise Unreadable(f"CloudWatch answered a PromQL query with {answer.status_code}: {said}")


def query_range(
    account: Account, query: str, start: datetime, end: datetime, step: timedelta
) -> list[tuple[Mapping[str, str], dict[datetime, float]]]:
    """What a query returns from ``start`` to ``end``, both included; NaN is left out."""
    data = _ask(
        account,
        "query_range",
        {
            "query": query,
            "start": f"{start.timestamp():.3f}",
            "end": f"{end.timestamp():.3f}",
            "step": f"{step.total_seconds():g}",
        },
    )
    return [
        (
            row["metric"],
            {
                datetime.fromtimestamp(float(at), UTC): float(value)
                for at, value in row.get("values", ())
                if not math.isnan(float(value))
            },
        )
        for row in data["result"]
    ]
