"""``low-latency list``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import deployed_endpoints
from low_latency_endpoint.cli import app
from tests.operate.conftest import NAME, STACK


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
        assert f"Dashboard of {NAME}: https://us-east-1.console.aws.amazon.com/" in done.stdout
        assert STACK in done.stdout  # in one line
        assert f"low-latency diagnose {NAME}" in done.stdout
