"""``low-latency list``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from local_sagemaker import LocalAws
from low_latency_endpoint.account.alarms import AlarmReading
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import (
    ListedEndpoint,
    ListedVariant,
    deployed_endpoints,
)
from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.deployed import _document
from low_latency_endpoint.operate.standing import RequestCounts, Standing
from tests.operate.conftest import NAME, STACK


@pytest.fixture
def account(shipped: LocalAws) -> Account:
    return Account(shipped.client, "us-east-1")


def test_what_is_deployed_is_listed_with_its_dashboard(shipped: LocalAws, account: Account) -> None:
    [found] = deployed_endpoints(account)
    [serving] = shipped.client("sagemaker").describe_endpoint(EndpointName=NAME)[
        "ProductionVariants"
    ]
    # 12 at first; scaling has taken away some where nobody has called for a quarter of an hour.
    running, wanted = serving["CurrentInstanceCount"], serving["DesiredInstanceCount"]
    assert 2 <= wanted <= running <= 12
    assert (found.endpoint, found.stack, found.status) == (NAME, STACK, "InService")
    assert found.variants == (ListedVariant("primary", running, wanted, ("ml.m5.12xlarge",)),)
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
        assert done.stdout.startswith("| Endpoint | Status | Alarms | Drift |")
        assert "dashboard: <https://us-east-1.console.aws.amazon.com/" in done.stdout
    else:
        lines = done.stdout.splitlines()
        assert "- dashboard: https://us-east-1.console.aws.amazon.com/" in done.stdout
        assert f"- stack: {STACK}" in lines
        assert f"Next: low-latency diagnose {NAME}" in lines
        assert [each for each in lines if len(each) > 80 and "https://" not in each] == []


def test_what_is_on_or_was_changed_by_hand_is_listed_first(
    shipped: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shipped.exports().items():
        monkeypatch.setenv(name, value)
    cloudwatch, scaling = shipped.client("cloudwatch"), shipped.client("application-autoscaling")
    mine = [each["AlarmName"] for each in cloudwatch.describe_alarms()["MetricAlarms"]]
    late = next(each for each in mine if "sentimentAlarmsprimaryModelLatencyp99" in each)
    target = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"][0]
    which = {key: target[key] for key in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
    before = next(each for each in cloudwatch.describe_alarms(AlarmNames=[late])["MetricAlarms"])
    cloudwatch.set_alarm_state(AlarmName=late, StateValue="ALARM", StateReason="test")
    # Above what runs: scaling would soon have fewer than the list expects.
    lower = target["MaxCapacity"] - 1
    assert lower > 12
    scaling.register_scalable_target(**which, MaxCapacity=lower)
    try:
        text = CliRunner().invoke(app, ["list"], env={"COLUMNS": "80"}).stdout
        (found,) = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)["endpoints"]
    finally:
        cloudwatch.set_alarm_state(
            AlarmName=late, StateValue=before["StateValue"], StateReason="test"
        )
        scaling.register_scalable_target(**which, MaxCapacity=target["MaxCapacity"])
    assert "1 ALARM, " in text
    assert "- in ALARM: primary ModelLatency p99 since 20" in text
    assert (
        f"- drift: primary: MaxCapacity is {lower}, the template says {target['MaxCapacity']}"
        in text
    )
    assert found["alarm_states"]["ALARM"] == 1
    assert [each["name"] for each in found["in_alarm"]] == [late]
    assert found["drift"][0]["differences"] == [
        {"path": "MaxCapacity", "found": lower, "stated": target["MaxCapacity"]}
    ]
    assert found["variants"][0] | {"instance_types": []} == {
        "name": "primary",
        "running": 12,
        "wanted": 12,
        "instance_types": [],
    }


def stands(name: str, load: RequestCounts | None = None, *alarms: AlarmReading) -> Any:
    """An endpoint without a fault but these."""
    listed = ListedEndpoint(name, STACK, "us-east-1", "InService", (), None, None)
    return listed, Standing(load, alarms, (), True, {})


def test_the_endpoint_in_alarm_is_named_next_or_the_one_that_fails() -> None:
    alarm = AlarmReading("x", "ModelLatency", "p99", 1.0, "ms", "ALARM")
    found = [stands("a"), stands("b", RequestCounts(10, 5)), stands("c", None, alarm)]
    assert "Next: `low-latency diagnose c`" in _document(found).parts
    assert "Next: `low-latency diagnose b`" in _document(found[:2]).parts
