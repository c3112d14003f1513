"""``low-latency list``, and dashboards found by the name that somebody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import dashboard_named, deployed_endpoints
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError

from .conftest import NAME, STACK


@pytest.fixture
def account(shipped: LocalAws) -> Account:
    return Account(shipped.client, "us-east-1")


def test_what_is_deployed_is_listed_with_its_dashboard(account: Account) -> None:
    [found] = deployed_endpoints(account)
    assert (found.endpoint, found.stack, found.status) == (NAME, STACK, "InService")
    assert found.variants == ("primary: 8 of 8 x ml.m5.12xlarge",)
    assert found.dashboard is not None
    known = {
        each["DashboardName"]
        for each in account.every("cloudwatch", "list_dashboards", "DashboardEntries")
    }
    assert found.dashboard in known
    assert found.dashboard_url is not None
    assert found.dashboard_url.endswith(f"#dashboards/dashboard/{found.dashboard}")


def test_an_endpoint_of_somebody_else_is_not_listed(shipped: LocalAws, account: Account) -> None:
    sagemaker = shipped.client("sagemaker")
    configuration = sagemaker.list_endpoint_configs()["EndpointConfigs"][0]["EndpointConfigName"]
    sagemaker.create_endpoint(EndpointName="theirs", EndpointConfigName=configuration)
    try:
        assert [each.endpoint for each in deployed_endpoints(account)] == [NAME]
    finally:
        sagemaker.delete_endpoint(EndpointName="theirs")


def test_a_dashboard_is_found_by_endpoint_stack_or_its_own_name(account: Account) -> None:
    dashboard = deployed_endpoints(account)[0].dashboard
    assert dashboard
    assert [dashboard_named(account, name) for name in (NAME, STACK, dashboard)] == [dashboard] * 3
    with pytest.raises(ConfigurationError) as caught:
        dashboard_named(account, "nobody")
    assert (caught.value.code, caught.value.allowed) == ("LLA104", NAME)


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_command(shipped: LocalAws, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    for name, value in shipped.exports().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, ["list", *([] if form == "text" else [f"--{form}"])])
    assert done.exit_code == 0, done.output
    if form == "json":
        data = json.loads(done.stdout)
        assert (data["format_version"], data["endpoints"][0]["endpoint"]) == (1, NAME)
    elif form == "markdown":
        assert done.stdout.startswith("| Endpoint | Status | Instances | Stack |\n")
    else:
        assert f"Dashboard of {NAME}: " in done.stdout
        assert STACK in done.stdout  # in one line
        assert f"low-latency diagnose {NAME}" in done.stdout


@pytest.mark.parametrize(
    ("window", "time"),
    [
        (["--since", "12h"], {"from": "now-720m", "to": "now"}),
        (
            ["--since", "2h", "--until", "2026-11-20T03:30Z"],
            {"from": "2026-11-20T01:30:00+00:00", "to": "2026-11-20T03:30:00+00:00"},
        ),
    ],
)
def test_the_dashboard_is_written_for_grafana(
    shipped: LocalAws,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    window: list[str],
    time: dict[str, str],
) -> None:
    for name, value in shipped.exports().items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "sentiment.json"
    done = CliRunner().invoke(app, ["dashboard", NAME, str(file), *window, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["file"] == str(file)
    twin = json.loads(file.read_text())
    assert twin["time"] == time
    assert twin["panels"][1]["title"] == "Is the target met?"
    assert twin["panels"][1]["targets"][0]["dimensions"]["EndpointName"] == NAME
