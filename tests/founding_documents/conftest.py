"""What the tests of the four documents share: templates and accounts that are made once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError
from hosting_site import Site, taking
from typer.testing import CliRunner

from local_sagemaker import LocalAws, RuntimeOptions
from low_latency_endpoint.cli import app
from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.settings import parse_settings, plan_endpoint
from low_latency_endpoint.settings.loading import settings_of
from tests.operate.diagnose.scenarios import END, ENDPOINT, Scenario
from tests.synth.conftest import Synthesised
from tools.fuzzing.agreement import synthesised, text_of

from .statements import ROOT


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "says(number, words): the statement that a test tries")


@pytest.fixture(scope="session")
def template() -> Callable[..., Synthesised]:
    """The template of ``endpoint.yaml``, where its endpoint or its stack states something else."""

    @cache
    def synthesized(text: str) -> Synthesised:
        settings, findings = settings_of(yaml.safe_load(text))
        assert findings == []
        return Synthesised(synthesised(settings))

    def of(endpoint: dict[str, Any] | None = None, **stack: Any) -> Synthesised:
        return synthesized(text_of(stated(endpoint, **stack)))

    return of


def stated(endpoint: dict[str, Any] | None = None, **stack: Any) -> dict[str, Any]:
    """The values of ``endpoint.yaml`` with others for its endpoint or its stack."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "endpoint.yaml").read_text("utf-8"))
    values["endpoints"]["sentiment"] |= endpoint or {}
    return {**values, **stack}


def planned(**endpoint: Any) -> Plan:
    """The plan of ``endpoint.yaml`` with other settings for its endpoint."""
    return plan_endpoint(parse_settings(text_of(stated(endpoint))), "sentiment")


@pytest.fixture(scope="session")
def find() -> Callable[..., Diagnosis]:
    """What ``diagnose`` finds in the account of a scenario."""

    def diagnosis(scenario: Scenario, **options: Any) -> Diagnosis:
        return diagnose(
            scenario.account(),
            ENDPOINT,
            start=scenario.start,
            end=END,
            now=END,
            region="us-east-1",
            **options,
        )

    return diagnosis


def page(path: str) -> str:
    """A page of the docs on one line."""
    return " ".join((ROOT / "docs" / path).read_text("utf-8").split())


def told(finding: Any) -> str:
    """All that a finding says: evidence, changes and advice."""
    evidence = [shown.text for shown in finding.evidence]
    changes = [f"{change.text} {change.why}" for change in finding.changes]
    return " ".join([finding.kind.title, *evidence, *changes, finding.besides])


@pytest.fixture
def command() -> Callable[..., str]:
    """What ``low-latency`` prints, on one line; it must succeed."""

    def ran(*arguments: str, **environment: str) -> str:
        result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", **environment})
        assert result.exit_code in (0, 1), result.output
        return " ".join(result.output.split())

    return ran


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local AWS whose clock a test advances; it begins yesterday."""
    options = RuntimeOptions(clock_start=time.time() - 86_400, clock_speed=0)
    servers = {"*": taking(0.005)}
    with LocalAws.in_process(region="us-east-1", model_servers=servers, runtime=options) as aws:
        aws.reset()
        yield Site(aws)


def drive(site: Site, endpoint: str, callers: int, minutes: int, minute: float = 0.12) -> None:
    """So many callers in a closed loop, for minutes of the local AWS's time.

    ``minute`` is how many seconds of the callers' time each takes. A caller who is refused waits as
    long.
    """
    ended = threading.Event()

    def calls() -> None:
        while not ended.is_set():
            try:
                site.invoke(endpoint)
            except ClientError:
                ended.wait(minute)

    with ThreadPoolExecutor(callers) as pool:
        for _ in range(callers):
            pool.submit(calls)
        for _ in range(minutes):
            time.sleep(minute)
            site.aws.advance(60)
        ended.set()


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """What ``low-latency diagnose`` finds in an endpoint of the local AWS, up to now."""

    def findings(site: Site, endpoint: str, *arguments: str) -> dict[str, Any]:
        site.aws.flush_metrics()
        for name, value in site.aws.exports().items():
            monkeypatch.setenv(name, value)
        until = site.aws.runtime_time().isoformat()
        line = ["diagnose", endpoint, "--since", "25m", "--until", until, "--json", *arguments]
        result = CliRunner().invoke(app, line)
        assert result.exit_code in (0, 1), result.output
        content: dict[str, Any] = json.loads(result.stdout)
        return content

    return findings
