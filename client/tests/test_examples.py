"""The examples for services, against the local AWS, and against failures that it has not."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from botocore.exceptions import ClientError

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_client.zone import ZONE_VARIABLE

from .local_endpoints import create_endpoint
from .loopback_runtime import LoopbackRuntime
from .zone_metadata import LAMBDA, Metadata

EXAMPLES = Path(__file__).parents[2] / "examples"
EVENT = {"inputs": "I like you."}
LAMBDA_TIMEOUT = timedelta(seconds=3)
"""By default. Source: docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html."""


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process(
        model_servers={"model": SimulatedModelServer()}, runtime=RuntimeOptions(seed=1)
    ) as started:
        yield started


def endpoint_of(aws: LocalAws, **server: Any) -> str:
    """Create an endpoint whose model behaves in a way, and return its name."""
    aws.set_model_servers({"model": SimulatedModelServer(**server)})
    return create_endpoint(aws)


class Examples:
    """Import examples with the environment that a service would have."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def load(self, name: str, aws: LocalAws, endpoint: str, **variables: str) -> ModuleType:
        """Execute an example anew and return the module."""
        for variable, value in {**aws.exports(), "ENDPOINT_NAME": endpoint, **variables}.items():
            self._monkeypatch.setenv(variable, value)
        specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        # FastAPI reads annotations, which are text, in the module of the function.
        self._monkeypatch.setitem(sys.modules, name, module)
        specification.loader.exec_module(module)
        return module


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Examples:
    return Examples(monkeypatch)


def zonal_urls(aws: LocalAws) -> dict[str, str]:
    return {zone: aws.runtime_url(zone) for zone in ("use1-az1", "use1-az2")}


# --------------------------------------------------------------------------------------- FastAPI


def posted(service: ModuleType, requests: int = 1) -> list[httpx2.Response]:
    """Serve with the example, and return the answers to requests that come at the same time."""

    async def serve() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(service.app)
        async with (
            service.app.router.lifespan_context(service.app),
            httpx2.AsyncClient(transport=transport, base_url="http://service") as caller,
        ):
            calls = [caller.post("/predictions", json=EVENT) for _ in range(requests)]
            return list(await asyncio.gather(*calls))

    return asyncio.run(serve())


def test_the_service_answers_with_the_model_through_its_own_zone(
    aws: LocalAws, examples: Examples
) -> None:
    urls = zonal_urls(aws)
    zone = {"ZONAL_URLS": json.dumps(urls), ZONE_VARIABLE: "use1-az2"}
    service = examples.load("fastapi_service", aws, endpoint_of(aws), **zone)
    answers = posted(service, requests=3)
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert answers[0].headers["Content-Type"] == "application/json"
    assert answers[0].json()
    assert service.app.state.client.route.zonal == urls["use1-az2"]


@pytest.mark.parametrize(
    ("server", "status", "detail"),
    [
        ({"failure_share": 1.0}, 502, "ModelError"),
        ({"service_time": ServiceTime.constant(3.0)}, 504, "the model did not answer in time"),
    ],
    ids=["error", "slow"],
)
def test_a_failure_of_the_model_is_a_bad_or_late_gateway(
    aws: LocalAws, examples: Examples, server: dict[str, Any], status: int, detail: str
) -> None:
    service = examples.load("fastapi_service", aws, endpoint_of(aws, **server))
    service.DEADLINE_SECONDS = 0.5 if status == 504 else 20.0
    (answer,) = posted(service)
    assert (answer.status_code, answer.json()) == (status, {"detail": detail})


def test_a_throttled_call_asks_the_caller_to_slow_down(examples: Examples) -> None:
    with LocalAws.in_process(runtime=RuntimeOptions(requests_per_second=0.5)) as aws:
        service = examples.load("fastapi_service", aws, create_endpoint(aws))
        service.DEADLINE_SECONDS = 20.0
        statuses = [answer.status_code for answer in posted(service, requests=3)]
    assert sorted(statuses) == [200, 429, 429]


@pytest.mark.parametrize(
    ("endpoint", "status"),
    [("status-429", 503), ("status-503", 503), ("status-400", 502), ("drop", 502)],
)
def test_other_failures_of_the_endpoint(
    aws: LocalAws, examples: Examples, endpoint: str, status: int
) -> None:
    with LoopbackRuntime() as runtime:
        service = examples.load("fastapi_service", aws, endpoint, REGIONAL_URL=runtime.url)
        service.DEADLINE_SECONDS = 20.0
        (answer,) = posted(service)
    assert answer.status_code == status


def test_an_endpoint_that_nobody_answers_for(aws: LocalAws, examples: Examples) -> None:
    with LoopbackRuntime() as runtime:
        service = examples.load("fastapi_service", aws, "plain", REGIONAL_URL=runtime.url)
        service.DEADLINE_SECONDS = 20.0
        runtime.stop()
        (answer,) = posted(service)
    assert (answer.status_code, answer.json()) == (502, {"detail": "the endpoint cannot be called"})


# ---------------------------------------------------------------------------------------- Lambda


def test_the_function_answers_with_the_model_through_its_own_zone(
    aws: LocalAws, examples: Examples
) -> None:
    urls = zonal_urls(aws)
    zone = {"ZONAL_URLS": json.dumps(urls), ZONE_VARIABLE: "use1-az1"}
    function = examples.load("lambda_function", aws, endpoint_of(aws), **zone)
    with function.CLIENT as client:
        answers = [function.handler(EVENT, None) for _ in range(2)]
        assert client.route.zonal == urls["use1-az1"]
        assert client.timing.longest_call < LAMBDA_TIMEOUT
    assert all(answers)


def test_the_function_fails_with_botocores_error(aws: LocalAws, examples: Examples) -> None:
    endpoint = endpoint_of(aws, failure_share=1.0)
    function = examples.load("lambda_function", aws, endpoint)
    with function.CLIENT, pytest.raises(ClientError, match="ModelError"):
        function.handler(EVENT, None)


def test_the_function_learns_its_zone_from_lambda(
    aws: LocalAws, examples: Examples, metadata: Metadata
) -> None:
    urls = zonal_urls(aws)
    metadata.answers[LAMBDA] = json.dumps({"AvailabilityZoneID": "use1-az2"})
    variables = {
        "AWS_LAMBDA_METADATA_API": metadata.address,
        "AWS_LAMBDA_METADATA_TOKEN": "lambda-token",
        "ZONAL_URLS": json.dumps(urls),
    }
    function = examples.load("lambda_function", aws, endpoint_of(aws), **variables)
    with function.CLIENT as client:
        assert client.route.zonal == urls["use1-az2"]
        assert client.zone.source == "AWS Lambda"
        assert function.handler(EVENT, None)


@pytest.mark.parametrize("name", ["fastapi_service", "lambda_function"])
def test_an_example_has_at_most_80_lines(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) <= 80
