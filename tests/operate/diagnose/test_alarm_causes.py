"""Each alarm that can page has a cause, and a fault in which it is on and diagnose names the cause."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from local_sagemaker.cloudwatch.metric_alarms import evaluate
from local_sagemaker.cloudwatch.metric_store import MetricStore
from low_latency_endpoint import (
    AlarmOptions,
    CanaryOptions,
    ClientZones,
    Container,
    ContainerImage,
    EndpointOptions,
    InstanceCounts,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    ModelData,
    SlowRequests,
    WarmUpPayload,
)
from low_latency_endpoint.account.alarm_kinds import alarm_kind
from low_latency_endpoint.operate.diagnose.alarm_causes import _CAUSES, ALARM_KINDS, explains
from low_latency_endpoint.operate.diagnose.findings import KINDS
from tests.depth import sampled

from .account import MINUTE, FakeAccount
from .conftest import Run
from .faults.fault import Fault
from .scenarios import ENDPOINT, Scenario
from .steady_faults import FAULTS
from .update_faults import ALL_FAULTS

#: Kinds whose alarms no row's metrics can put on, and why; LLD710 is what remains for them.
_NOT_EVALUATED = {
    "Anomaly": "nobody knows the band that CloudWatch has learnt",
    "BurnRate": "hours of slow requests",
    "GPUMemoryUtilization": "the made account has no such metric",
    "GPUUtilization": "the made stack has a CPU type",
    "ZoneImbalance": "the made account's zones have even shares",
    "TimeToFirstToken": "a query on the containers' metrics: test_tokens.py",
    "InterTokenLatency": "the same",
    "RequestsWaiting": "the same",
    "KvCacheUse": "the same",
}


def _stack(name: str, *, silence: bool) -> dict[str, Any]:
    stack = Stack(App(), name, env=Environment(account="123456789012", region="us-east-1"))
    options = AlarmOptions(
        actions=[cloudwatch_actions.SnsAction(sns.Topic(stack, "Topic"))],
        client_error_rate=0.01,
        model_error_rate=0.01,
        gpu_utilization=90 if silence else None,
        gpu_memory_utilization=90 if silence else None,
        cache_miss_rate=0.05,
        model_loading_wait=Duration.millis(100),
        zone_imbalance=1.5,
        anomalies={"Invocations": "Sum"},
        expect_traffic=silence,
        slow_requests=SlowRequests(objective=0.99, threshold=Duration.millis(160)),
    )
    payload = WarmUpPayload(data={"inputs": "I like you."}, target_model="a.tar.gz")
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/s:1")
    data = ModelData.from_uri("s3://my-bucket/models/")
    LowLatencyEndpoint(
        stack,
        "Sentiment",
        endpoint=EndpointOptions(endpoint_name=ENDPOINT),
        client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
        containers=[Container(image=image, data=data, multi_model=True)],
        instance_type=InstanceType("ml.g5.12xlarge" if silence else "ml.m5.12xlarge"),
        instances=InstanceCounts(max=8),
        latency=LatencyTarget(p99=Duration.millis(200)),
        throughput=MeasuredThroughput(peak_tps=1040, tps_per_instance=200),
        canary=None if silence else CanaryOptions(payload=payload),
        alarms=options,
    )
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return {f"{name}{key}": _named(resource, name) for key, resource in found.items()}


def _named(value: Any, stack: str) -> Any:
    """A template's part with the stack's name before each reference to a resource."""
    if isinstance(value, dict):
        reference = value.get("Ref")
        if reference and not str(reference).startswith("AWS::"):
            return {"Ref": f"{stack}{reference}"}
        return {name: _named(each, stack) for name, each in value.items()}
    return [_named(each, stack) for each in value] if isinstance(value, list) else value


@cache
def _resources() -> dict[str, Any]:
    """Stacks with the scenarios' endpoint, and all alarms that such an endpoint can have."""
    # A canary's requests are traffic: an alarm on silence is for another stack, and so are GPUs.
    return {**_stack("Expected", silence=True), **_stack("Watched", silence=False)}


def _paging(resources: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The alarms that page: those with actions, and what the composite alarms with actions name."""
    named: set[str] = set()
    for resource in resources.values():
        if resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
            named |= set(re.findall(r"'Ref': '(\w+)'", str(resource["Properties"]["AlarmRule"])))
    for name, resource in resources.items():
        if resource["Type"] != "AWS::CloudWatch::Alarm":
            continue
        actions = resource["Properties"].get("AlarmActions")
        scales = "ScalingPolicy" in str(actions)
        if name in named or (actions and not scales):
            yield resource["Properties"]


def test_the_causes_exist() -> None:
    for kind, causes in _CAUSES.items():
        for cause in causes:
            assert any(known.startswith(cause) for known in KINDS), (kind, cause)


def test_each_paging_alarm_is_in_the_table() -> None:
    kinds = {alarm_kind(alarm) for alarm in _paging(_resources())}
    assert len(kinds) > 12
    assert sorted(kinds - set(ALARM_KINDS)) == []


def _stored(account: FakeAccount) -> MetricStore:
    store = MetricStore()
    for (namespace, name, dimensions), periods in account.data.items():
        for time, samples in periods.items():
            datum = {
                "MetricName": name,
                "Dimensions": [{"Name": n, "Value": v} for n, v in sorted(dimensions)],
                "Timestamp": time,
                "Values": [value for value, _ in samples],
                "Counts": [weight for _, weight in samples],
            }
            store.put(namespace, datum, time)
    return store


def _resolved(value: Any) -> Any:
    """A template's values as they are in the account: names of the endpoint and the Region."""
    if isinstance(value, dict):
        if "Ref" in value or "Fn::GetAtt" in value:
            return "us-east-1" if value.get("Ref") == "AWS::Region" else ENDPOINT
        return {name: _resolved(each) for name, each in value.items()}
    return [_resolved(each) for each in value] if isinstance(value, list) else value


def _goes_on(alarm: dict[str, Any], fault: Fault, store: MetricStore) -> bool:
    """Whether the alarm would be on at any minute of the fault's window."""
    settings, start = _resolved(alarm), fault.account.start
    minutes = fault.scenario().minutes
    return any(
        evaluate(settings, store, (start + n * MINUTE).timestamp(), "OK").state == "ALARM"
        for n in range(5, minutes + 1)
    )


def _alarms_by_kind() -> dict[str, dict[str, Any]]:
    return {alarm_kind(alarm): alarm for alarm in _paging(_resources())}


@pytest.mark.parametrize(
    "kind", sorted(set(ALARM_KINDS) - set(_NOT_EVALUATED) - {"CanaryOutOfZone"})
)
def test_a_fault_puts_the_alarm_on_and_names_its_cause(kind: str) -> None:
    alarms = [alarm for alarm in _paging(_resources()) if alarm_kind(alarm) == kind]
    rows = [row for row in FAULTS if explains(kind, row.finding) and row.scenario().minutes == 60]
    assert any(_goes_on(alarm, row, _stored(row.account)) for row in rows for alarm in alarms), (
        f"{len(rows)} rows"
    )


@pytest.mark.parametrize("kind", ALARM_KINDS)
def test_no_alarm_that_is_on_is_called_healthy(kind: str, run: Run) -> None:
    """Whatever the alarm, and though nothing else is found."""
    alarm = _alarms_by_kind().get(kind)
    if alarm is None:
        pytest.skip("an alarm of other endpoints")
    of_gpu = kind in ("GPUUtilization", "GPUMemoryUtilization")
    scenario = Scenario(instance_type="ml.g5.xlarge") if of_gpu else Scenario()
    account = scenario.account()
    state = {"AlarmName": "made", "StateValue": "ALARM", "StateUpdatedTimestamp": account.start}
    account.alarms.append({**_resolved(alarm), **state})
    made = run(account)
    assert made.healthy is False
    assert "LLD710" in {finding.id for finding in made.findings}
    account.alarms[-1]["StateValue"] = "OK"
    assert "LLD710" not in {finding.id for finding in run(account).findings}


@pytest.mark.parametrize("fault", sampled(ALL_FAULTS, 3), ids=str)
def test_what_makes_requests_slow_is_a_cause_of_the_alarm(fault: Fault) -> None:
    """Beside a finding of slow requests, the alarm on them is not one without a cause."""
    findings = fault.diagnosed.findings
    words = " ".join(shown.text for finding in findings for shown in finding.evidence)
    slow = re.search(r"ModelLatency p99 above [^;]* periods of", words)
    assert not slow or any(explains("ModelLatency", finding.id) for finding in findings)


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "an-alarm-went-off.md"
_HEAD, _END = "<!-- alarm causes -->\n", "\n<!-- end -->"


def _table() -> str:
    """What can be the cause of each kind of alarm; ids that begin alike are one."""
    rows = ["| Alarm on | Findings that are its cause |", "|---|---|"]
    for kind, causes in _CAUSES.items():
        rows.append(f"| {kind} | {', '.join(f'{each:x<6}' for each in causes)} |")
    return "\n".join(rows)


def test_the_page_has_the_table() -> None:
    """``UPDATE_DOCS=1 pytest <this file>`` renews it."""
    page = PAGE.read_text("utf-8")
    before, found, after = page.partition(_HEAD)
    assert found
    shown, end, rest = after.partition(_END)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + _HEAD + _table() + end + rest, "utf-8")
        return
    assert shown == _table()
