"""An update under way is told, and blamed only for what it brought."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.document import began, verdict
from low_latency_endpoint.operate.diagnose.updates import OF_UPDATES

from .account import FakeAccount
from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import Fault, from_minute
from .scenarios import CONFIGURATION, NEW, VARIANT, Scaled, Scenario, Update, constant
from .update_faults import UPDATE_FAULTS, always, rolled, slow_before, steps, updated

_BLAMED = [fault for fault in UPDATE_FAULTS if fault.finding in OF_UPDATES]
_OTHERS = [fault for fault in UPDATE_FAULTS if fault.finding not in OF_UPDATES]


def _ids(made: Diagnosis) -> set[str]:
    return {finding.id for finding in made.findings}


def _said(made: Diagnosis) -> str:
    return " ".join(began(made))


HEALTHY: dict[str, Scenario] = {
    "a bake": Scenario(update=Update()),
    "a bake, fleets not apart": Scenario(update=Update(apart="")),
    "a bake beside a first fleet without series": Scenario(update=Update(apart="new")),
    "a bake with metrics of each instance": Scenario(enhanced=True, update=Update(apart="")),
    "a canary of a twentieth": Scenario(update=Update(share=constant(0.05))),
    "traffic that shifts in steps": Scenario(
        update=Update(apart="", share=steps(20, 10, 0.05, 0.25, 0.5, 0.75))
    ),
    "batches": rolled(),
    "batches, fleets not apart": rolled(apart=""),
    "instances that are being created": Scenario(
        update=Update(begun=50, asked=60, stage="Creating")
    ),
    "SageMaker's maintenance": Scenario(
        update=Update(status="SystemUpdating", configuration=CONFIGURATION)
    ),
    "SageMaker's maintenance, of which nothing is told": Scenario(
        update=Update(status="SystemUpdating", told=False, apart="")
    ),
    "a slower version within the limit": Scenario(update=Update(latency=always(60))),
    "one error in a thousand": Scenario(
        update=Update(errors={"Invocation5XXErrors": constant(0.001)})
    ),
    "one slow minute": Scenario(update=Update(latency=lambda m, i: 800 if m == 30 else 40)),
    "an alarm beside it": Scenario(update=Update(alarms=("ModelLatency-p99",))),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_an_update_without_symptoms_is_told_and_not_blamed(name: str, run: Run) -> None:
    made = run(HEALTHY[name])
    assert made.findings == ()
    assert verdict(made) == "Nothing found: the endpoint is healthy."
    told = made.to_dict()["update"]
    assert told["serving"] == CONFIGURATION
    assert "The endpoint is u" in _said(made), "updating, or under SageMaker's maintenance"
    if told["since"]:
        (event,) = [event for event in made.events if event.kind == "deployment"]
        assert event.time.isoformat() == told["since"]


def test_a_roll_back_that_ended_without_symptoms_is_an_event(run: Run) -> None:
    made = run(Scenario(update=Update(ended=35)))
    assert made.healthy
    assert made.to_dict()["update"] is None
    (event,) = made.events
    assert event.names == (NEW,)
    assert f"rolled back to {CONFIGURATION}" in event.text


def test_scaling_is_no_update(run: Run) -> None:
    """SageMaker calls the endpoint Updating, too, and has nothing pending."""
    scaled = Scenario(
        instances=from_minute(50, 8, 10),
        tps=from_minute(45, 600, 750),
        status="Updating",
        activities=[Scaled(45, 10, took=5)],
    )
    made = run(scaled)
    assert made.healthy
    assert made.to_dict()["update"] is None
    assert not _said(made)


@pytest.mark.parametrize("fault", _BLAMED, ids=str)
def test_without_its_update_nothing_is_blamed_on_one(fault: Fault, run: Run) -> None:
    made = run(replace(fault.scenario(), update=None))
    assert not _ids(made) & set(OF_UPDATES)


@pytest.mark.parametrize("fault", _BLAMED, ids=str)
def test_an_update_that_works_is_not_blamed(fault: Fault, run: Run) -> None:
    scenario = fault.scenario()
    assert scenario.update
    well = replace(scenario.update, latency=always(40), errors={})
    calm = replace(scenario, update=well, cpu=constant(45), failure="")
    assert _ids(run(calm)) == ({"LLD707"} if well.status == "RollingBack" else set())


@pytest.mark.parametrize("fault", _OTHERS, ids=str)
def test_another_cause_names_the_update_beside_it(fault: Fault) -> None:
    made = fault.diagnosed
    (finding,) = made.findings
    told = finding.besides + " ".join(shown.text for shown in finding.evidence)
    assert NEW in told
    assert "roll back" not in finding.besides or finding.id == "LLD121"


@pytest.mark.parametrize("since", [16, 25, 40])
@pytest.mark.parametrize("apart", ["both", "new", ""])
def test_what_began_before_the_update_is_not_blamed_on_it(since: int, apart: Any, run: Run) -> None:
    """By the same latency of both fleets, up to two minutes before the new one is asked."""
    scenario = slow_before(apart=apart)
    assert scenario.update
    young = replace(scenario.update, begun=since + 3, asked=since + 5)
    slower = always(300)
    early = replace(
        scenario,
        latency=lambda m, i: 300 if m >= since else 40,
        in_flight=from_minute(since, 24, 180),
        update=replace(young, latency=slower),
    )
    made = run(early)
    assert not _ids(made) & set(OF_UPDATES)
    (finding,) = made.findings
    assert "this began before it" in finding.besides


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environment": {"WORKERS": "1"}}, "WORKERS of the environment none to 1"),
        (
            {"environment": {"HUB_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz01234567"}},
            "HUB_TOKEN of the environment, which looks like a secret",
        ),
        ({"variant": {"InstanceType": "ml.m5.4xlarge"}}, "ml.m5.12xlarge to ml.m5.4xlarge"),
        (
            {"variant": {"RoutingConfig": {"RoutingStrategy": "RANDOM"}}},
            "routing LEAST_OUTSTANDING_REQUESTS to RANDOM",
        ),
        ({"variant": {"VolumeSizeInGB": 100}}, "VolumeSizeInGB"),
        ({}, "model sentiment-model to new-model"),
        ({}, "image pytorch-inference:2.6.0-cpu to pytorch-inference:2.7.0-cpu"),
        ({"image": "pytorch-inference:2.6.0-cpu"}, "of the same image, data and environment"),
    ],
)
def test_what_the_update_changes(change: dict[str, Any], words: str, run: Run) -> None:
    made = run(updated(**change))
    (finding,) = made.findings
    assert words in finding.evidence[0].text
    assert words in _said(made)
    assert "hf_" not in str(made.to_dict())


def test_how_to_roll_back_is_what_aws_documents(run: Run) -> None:
    account = updated(alarms=("ModelLatency-p99",)).account()
    account.stack_status = "UPDATE_IN_PROGRESS"
    (finding,) = run(account).findings
    commands = [change.key for change in finding.changes]
    assert commands == [
        "aws cloudwatch set-alarm-state --alarm-name ModelLatency-p99 --state-value ALARM "
        '--state-reason "roll back"',
        "aws cloudformation cancel-update-stack --stack-name Sentiment",
    ]
    assert all("not seen on AWS" in change.why for change in finding.changes)
    assert "AWS documents no call that stops an update" in finding.besides
    assert f"--endpoint-config-name {CONFIGURATION}" in finding.besides


def test_nobody_is_told_to_stop_maintenance(run: Run) -> None:
    (finding,) = run(updated(status="SystemUpdating", configuration=CONFIGURATION)).findings
    assert not finding.changes
    assert "update-endpoint" not in finding.besides


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ("DescribeEndpointConfig", "what the update changes"),
        ("DescribeModel", "what the update changes"),
        ("ListMetrics", "metrics per instance and zone"),
    ],
)
def test_what_may_not_be_read_is_unknown_and_the_update_told(
    operation: str, what: str, run: Run
) -> None:
    account = updated().account()
    account.denied = {operation: "AccessDenied"}
    made = run(account)
    assert what in {each.what for each in made.measurements.unknown}
    assert "LLD706" in _ids(made)
    assert NEW in _said(made)


def test_a_full_fleet_before_the_update_keeps_its_finding(run: Run) -> None:
    made = run(saturated(update=Update(begun=45, asked=50, latency=always(300))))
    (finding,) = made.findings
    assert finding.id == "LLD102"
    assert "this began before it" in finding.besides


def _renamed(value: Any, name: str) -> Any:
    """The same with another variant's name."""
    return json.loads(json.dumps(value, default=str).replace(f'"{VARIANT}"', f'"{name}"'))


def _with_candidate(account: FakeAccount, other: FakeAccount) -> FakeAccount:
    """The endpoint of the one account with the other's variant beside its own, as ``candidate``."""
    described = (account.endpoint, other.endpoint)
    pending = tuple(endpoint["PendingDeploymentSummary"] for endpoint in described)
    told = [described, (account.configuration, other.configuration), pending]
    told.append((account.coming[NEW], other.coming[NEW]))
    for mine, theirs in told:
        mine["ProductionVariants"] += _renamed(theirs["ProductionVariants"], "candidate")
    account.alarms += [
        {**_renamed(alarm, "candidate"), "AlarmName": f"candidate-{alarm['AlarmName']}"}
        for alarm in other.alarms
        if alarm["AlarmName"] in ("ModelLatency-p99", "OverheadLatency-Average")
    ]
    for (namespace, metric, dimensions), points in other.data.items():
        of_candidate = (dimensions - {("VariantName", VARIANT)}) | {("VariantName", "candidate")}
        account.data[namespace, metric, of_candidate] = points
    return account


@pytest.mark.parametrize("apart", ["both", "new", ""])
def test_each_variant_is_judged_for_itself(apart: Any, run: Run) -> None:
    """Only the candidate's new fleet is slow."""
    well, slow_one = updated(latency=always(40), apart=apart), updated(apart=apart)
    (finding,) = run(_with_candidate(well.account(), slow_one.account())).findings
    assert (finding.id, finding.variant) == ("LLD706", "candidate")
    both_well = _with_candidate(well.account(), well.account())
    assert run(both_well).findings == ()
