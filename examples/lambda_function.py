"""Call a SageMaker endpoint from AWS Lambda: the client is created once, outside of the handler.

The function needs these environment variables. Lambda itself sets ``AWS_REGION``:

* ``ENDPOINT_NAME``;
* ``ZONAL_URLS``, optional: a JSON object of zone IDs and the stack's outputs ``ZonalUrl-...``. The
  client reads its zone from Lambda's metadata endpoint, or from ``LOW_LATENCY_CLIENT_ZONE``;
* ``REGIONAL_URL``, needed without private DNS: the stack's output of that name.

With SnapStart, create the client after the restore: a snapshot may be restored in another zone.
"""

from __future__ import annotations

import json
import os
from typing import Any

from low_latency_client import RuntimeClient

ENDPOINT_NAME = os.environ["ENDPOINT_NAME"]
CLIENT = RuntimeClient(
    os.environ["AWS_REGION"],
    latency_target="200ms",
    # A call ends after CLIENT.timing.longest_call, 2.9 s with its retry: keep the function's
    # timeout, 3 s by default, above that.
    read_timeout="1s",
    concurrency=1,  # an execution environment handles one event at a time
    url=os.environ.get("REGIONAL_URL"),
    zonal_urls=json.loads(os.environ.get("ZONAL_URLS") or "{}"),
)


def handler(event: dict[str, Any], context: object) -> Any:
    """Return the model's answer to an event; botocore's errors make the invocation fail."""
    answer = CLIENT.invoke_endpoint(
        EndpointName=ENDPOINT_NAME, ContentType="application/json", Body=json.dumps(event)
    )
    return json.loads(answer["Body"].read())
