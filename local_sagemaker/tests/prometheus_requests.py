"""PromQL over HTTP, signed as CloudWatch wants it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local_sagemaker import LocalAws


def prometheus(
    aws: LocalAws, path: str, method: str = "POST", region: str = "us-east-1", **fields: str
) -> tuple[int, dict[str, Any]]:
    """Ask `/api/v1/<path>`; gives the status and the document."""
    url, form = f"{aws.url}/api/v1/{path}", urllib.parse.urlencode(fields)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if method == "GET":
        request = AWSRequest("GET", f"{url}?{form}" if form else url)
    else:
        request = AWSRequest("POST", url, data=form, headers=headers)
    keys = Credentials(aws.credentials.access_key, aws.credentials.secret_key)
    SigV4Auth(keys, "monitoring", region).add_auth(request)
    prepared = request.prepare()
    body = form.encode() if method == "POST" else None
    sent = urllib.request.Request(prepared.url, body, dict(prepared.headers), method=method)
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def values(aws: LocalAws, query: str, **more: str) -> list[float]:
    """The values of an instant vector."""
    status, document = prometheus(aws, "query", query=query, **more)
    assert status == 200, document
    return [float(row["value"][1]) for row in document["data"]["result"]]
