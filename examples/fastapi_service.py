"""Answer HTTP requests with a SageMaker endpoint: one client per process, one deadline per request.

Start it with ``uvicorn fastapi_service:app``. It reads these environment variables:

* ``ENDPOINT_NAME`` and ``AWS_REGION``;
* ``ZONAL_URLS``, optional: a JSON object of zone IDs and the stack's outputs ``ZonalUrl-...``. The
  client finds its own zone, or reads it from ``LOW_LATENCY_CLIENT_ZONE``;
* ``REGIONAL_URL``, needed without private DNS: the stack's output of that name.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from fastapi import FastAPI, HTTPException, Request, Response

from low_latency_client import AsyncRuntimeClient

ENDPOINT_NAME = os.environ["ENDPOINT_NAME"]
DEADLINE_SECONDS = 1.0  # includes the wait for one of the client's connections
STATUS_OF_ERROR = {
    "ModelError": 502,  # the container answered with an error
    "ModelNotReadyException": 503,
    "ServiceUnavailable": 503,
    "ThrottlingException": 429,
    "503": 503,  # of a proxy or a load balancer, without a code of AWS's
}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep one client and its connections open while the process serves."""
    client = AsyncRuntimeClient(
        os.environ["AWS_REGION"],
        latency_target="200ms",
        concurrency=50,
        url=os.environ.get("REGIONAL_URL"),
        zonal_urls=json.loads(os.environ.get("ZONAL_URLS") or "{}"),
    )
    async with client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/predictions")
async def predict(request: Request) -> Response:
    """Return the model's answer to the request's body, or the status that fits the failure."""
    client: AsyncRuntimeClient = request.app.state.client
    body = await request.body()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            answer = await client.invoke_endpoint(
                EndpointName=ENDPOINT_NAME, ContentType="application/json", Body=body
            )
    except (TimeoutError, ConnectTimeoutError, ReadTimeoutError) as error:
        raise HTTPException(504, "the model did not answer in time") from error
    except ClientError as error:
        code = error.response["Error"]["Code"]
        raise HTTPException(STATUS_OF_ERROR.get(code, 502), code) from error
    except BotoCoreError as error:  # no connection, no answer, no credentials
        raise HTTPException(502, "the endpoint cannot be called") from error
    return Response(answer["Body"], media_type=answer.get("ContentType"))
