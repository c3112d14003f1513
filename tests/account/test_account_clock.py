"""Commands go by the account's clock, which a local AWS may have run faster than the wall's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.client import BadStatusLine, IncompleteRead
from urllib.error import HTTPError
from urllib.request import OpenerDirector

import pytest
from hosting_site import Site
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.account.clock import (
    TOKEN_VARIABLE,
    AccountClock,
    Reading,
    account_now,
    keeps_own_time,
)
from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.account.sessions import AwsUnavailable
from low_latency_endpoint.cli import app
from low_latency_endpoint.load_test.search.serving import JoinedMetrics

SPEED = 60


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    options = RuntimeOptions(clock_speed=SPEED, model_servers={"*": SimulatedModelServer()})
    with LocalAws.in_process(region="us-east-1", runtime=options) as running:
        site = Site(running)
        site.endpoint(name="account-clock")
        yield site


@pytest.fixture
def pointed(site: Site, monkeypatch: pytest.MonkeyPatch) -> LocalAws:
    """What the local AWS prints is in the environment."""
    for name, value in {TOKEN_VARIABLE: "any", **site.aws.exports()}.items():
        monkeypatch.setenv(name, value)
    return site.aws


def test_diagnose_sees_what_a_clock_that_runs_ahead_has_recorded(
    pointed: LocalAws, site: Site
) -> None:
    pointed.advance(2 * 3600)  # beyond the half hour that is asked for below
    for _ in range(3):  # minutes, of which two are enough to judge
        site.invoke_many("account-clock", 20, ContentType="application/json")
        pointed.advance(60)
    pointed.flush_metrics()
    time.sleep(2 * 60 / SPEED)  # two of its minutes

    done = CliRunner().invoke(
        app, ["diagnose", "account-clock", "--since", "30m", "--json", "--target", "p99=10s"]
    )
    found = json.loads(done.stdout)
    (variant,) = found["variants"]
    assert variant["requests"] == 60
    assert done.exit_code == 0


def test_now_is_the_local_aws(pointed: LocalAws) -> None:
    assert keeps_own_time()
    before = pointed.runtime_time()
    now = account_now()
    assert before <= now <= pointed.runtime_time()
    assert now - datetime.now(UTC) > timedelta(hours=1) or before - datetime.now(UTC) > timedelta(0)


@pytest.mark.parametrize(
    "url", ["https://sagemaker.us-east-1.amazonaws.com", "", "http://[", "http://192.0.2.1:5000"]
)
def test_the_token_is_told_to_nobody_else(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    assert not keeps_own_time()
    assert abs(account_now() - datetime.now(UTC)) < timedelta(seconds=30)


def test_a_local_aws_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(AwsUnavailable, match="does not tell its time"):
        account_now()


def test_a_step_finds_its_minutes_on_the_faster_clock() -> None:
    """A step of five seconds is five minutes there, and a rate per second counts in ours."""
    clock = AccountClock(Reading(1000, 6000), Reading(1010, 6600))
    minute = {datetime.fromtimestamp(6000 + 60 * number, UTC): 600.0 for number in range(10)}
    joined = JoinedMetrics({("Invocations", "Sum"): Series(minute)}, True, (), clock)
    window = joined.during(1002, 1007)
    assert not window.shared
    assert window.get("Invocations.Sum") == pytest.approx(600)
    assert joined.during(1100, 1105).get("Invocations.Sum") is None


@pytest.mark.parametrize("error", [BadStatusLine("?"), IncompleteRead(b"")])
def test_an_answer_that_is_no_http_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(OpenerDirector, "open", broken)
    with pytest.raises(AwsUnavailable, match="does not tell its time"):
        account_now()


@pytest.mark.parametrize(
    ("status", "named"), [(401, True), (403, True), (404, False), (500, False)]
)
def test_only_a_refusal_asks_about_the_token(
    monkeypatch: pytest.MonkeyPatch, status: int, named: bool
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise HTTPError("http://127.0.0.1:9", status, "", Message(), None)

    monkeypatch.setenv(TOKEN_VARIABLE, "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(OpenerDirector, "open", refused)
    with pytest.raises(AwsUnavailable, match=f"it answers {status}") as caught:
        account_now()
    assert (TOKEN_VARIABLE in str(caught.value)) is named
