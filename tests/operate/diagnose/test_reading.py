"""What is read: thresholds, units, pages; and that what may not be read is unknown, never fine."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest
from botocore.exceptions import NoCredentialsError

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.measurements import Threshold
from low_latency_endpoint.operate.diagnose.terminal import alarms_text, verdict

from .conftest import Run
from .faults import FAULTS
from .scenarios import END, ENDPOINT, MINUTE, Scenario, constant

_SATURATED = next(fault.scenario for fault in FAULTS if fault.finding == "LLD102")


def test_latency_is_in_milliseconds_and_utilization_of_the_whole_instance(run: Run) -> None:
    scenario = Scenario(spread=0.0, overhead=constant(6), cpu=constant(45))
    variant = run(scenario).measurements.variants[0]
    assert variant.get("ModelLatency", "p50").mean == pytest.approx(40, rel=0.03)
    assert variant.get("OverheadLatency", "Average").mean == pytest.approx(6, rel=0.05)
    # ml.m5.12xlarge publishes up to 4800 percent for its 48 vCPUs.
    assert variant.get("CPUUtilization", "Average").mean == pytest.approx(45, rel=0.03)
    assert len(variant.get("Invocations", "Sum")) == 60
    assert variant.get("Invocations", "Sum").sum == pytest.approx(600 * 3600)


@pytest.mark.parametrize(
    ("options", "thresholds", "expected"),
    [
        ({}, None, Threshold(160, "an alarm's threshold")),
        ({}, {}, Threshold(160, "the plan's threshold")),
        ({"targets": {"p99": 100.0}}, None, Threshold(80, "80% of the target 100 ms")),
    ],
)
def test_whose_threshold(
    run: Run, options: dict[str, object], thresholds: dict[str, float] | None, expected: Threshold
) -> None:
    """The command line's target first, then the alarms', then the plan's."""
    scenario = Scenario()
    if thresholds is not None:
        scenario.thresholds = {}
    found = run(scenario, **options).measurements.variants[0].thresholds
    assert found["ModelLatency", "p99"] == expected


def test_the_statistics_of_a_target_are_read(run: Run) -> None:
    variant = run(Scenario(), targets={"p99.9": 300.0}).measurements.variants[0]
    assert len(variant.get("ModelLatency", "p99.9")) == 60


def test_no_target_known_is_said(run: Run) -> None:
    made = run(Scenario(thresholds={}, planned=None, latency=lambda m, i: 4000))
    assert made.healthy
    assert "without a latency target" in verdict(made)


def test_full_instances_are_found_without_a_target(run: Run) -> None:
    scenario = _SATURATED()
    scenario.thresholds, scenario.planned = {}, None
    assert [finding.id for finding in run(scenario).findings] == ["LLD102"]


_DENIALS = {
    "DescribeScalableTargets": (
        "scaling of primary",
        "application-autoscaling:DescribeScalableTargets: not permitted",
    ),
    "DescribeScalingActivities": (
        "scaling activities of primary",
        "application-autoscaling:DescribeScalingActivities: not permitted",
    ),
    "DescribeAlarms": ("alarms", "cloudwatch:DescribeAlarms: not permitted"),
    "ListMetrics": ("metrics per instance and zone", "cloudwatch:ListMetrics: not permitted"),
    "DescribeModel": ("model sentiment-model", "sagemaker:DescribeModel: not permitted"),
    "DescribeStackResources": (
        "the stack's plan",
        "cloudformation:DescribeStackResources: not permitted",
    ),
    "GetTemplate": ("the stack's plan", "cloudformation:GetTemplate: not permitted"),
}


@pytest.mark.parametrize("operation", _DENIALS)
def test_what_may_not_be_read_is_unknown(operation: str, run: Run) -> None:
    scenario = Scenario()
    account = scenario.account()
    account.denied = {operation: "AccessDeniedException"}
    made = run(scenario, account)
    assert [(u.what, u.why) for u in made.measurements.unknown] == [_DENIALS[operation]]
    assert made.healthy
    assert "unknown" in verdict(made)
    assert made.to_dict()["unknown"][0]["what"] == _DENIALS[operation][0]


def test_unknown_scaling_is_not_taken_for_none(run: Run) -> None:
    """A saturated fleet whose scaling may not be read: saturated, and no word on scaling."""
    scenario = _SATURATED()
    account = scenario.account()
    account.denied = {"DescribeScalableTargets": "AccessDeniedException"}
    made = run(scenario, account)
    assert [(f.id, f.confidence) for f in made.findings] == [("LLD101", "medium")]


def test_an_unknown_instance_type_leaves_utilization_unknown(run: Run) -> None:
    scenario = Scenario()
    account = scenario.account()
    account.denied = {"DescribeEndpointConfig": "AccessDenied"}
    made = run(scenario, account)
    assert "CPU and GPU utilization of primary" in [u.what for u in made.measurements.unknown]
    assert not made.measurements.variants[0].get("CPUUtilization", "Average")


@pytest.mark.parametrize(
    ("operation", "code", "expected", "words"),
    [
        ("GetMetricData", "AccessDenied", "LLD901", "cloudwatch:GetMetricData: not permitted"),
        ("DescribeEndpoint", "AccessDeniedException", "LLD901", "sagemaker:DescribeEndpoint"),
        ("DescribeEndpoint", "ExpiredTokenException", "LLA102", "ExpiredTokenException"),
        ("GetMetricData", "InternalServiceFault", "LLD901", "refused GetMetricData"),
    ],
)
def test_what_it_cannot_do_without(
    operation: str, code: str, expected: str, words: str, run: Run
) -> None:
    scenario = Scenario()
    account = scenario.account()
    account.denied = {operation: code}
    with pytest.raises(ConfigurationError) as refused:
        run(scenario, account)
    assert refused.value.code == expected
    assert words in refused.value.got


def test_an_endpoint_that_does_not_exist() -> None:
    account = Scenario().account()
    with pytest.raises(ConfigurationError) as refused:
        diagnose(account, "nowhere", start=END - 60 * MINUTE, end=END, now=END, region="us-east-1")
    assert (refused.value.code, refused.value.got) == ("LLA101", "nowhere in us-east-1")


def test_no_credentials() -> None:
    def client(service: str) -> object:
        raise NoCredentialsError

    with pytest.raises(ConfigurationError) as refused:
        diagnose(client, ENDPOINT, start=END - 60 * MINUTE, end=END, now=END)
    assert refused.value.code == "LLA102"


def test_missing_dimensions_are_said_not_guessed(run: Run) -> None:
    absent = run(Scenario()).measurements.absent
    assert any("no metrics per instance" in text for text in absent)
    assert any("no metrics per Availability Zone" in text for text in absent)
    assert (
        run(Scenario(enhanced=True, zones=("us-east-1a", "us-east-1b"))).measurements.absent == ()
    )


def test_instances_that_are_missing(run: Run) -> None:
    scenario = Scenario()
    account = scenario.account()
    account.endpoint["ProductionVariants"][0]["CurrentInstanceCount"] = 5
    made = run(scenario, account)
    assert [(f.id, f.confidence) for f in made.findings] == [("LLD703", "medium")]
    assert "5 of 8 instances" in made.findings[0].evidence[0].text


def test_streams_that_break_off(run: Run) -> None:
    scenario = Scenario()
    account = scenario.account()
    invocations = next(
        data
        for (_, name, dimensions), data in account.data.items()
        if name == "Invocations" and len(dimensions) == 2
    )
    key = (
        "AWS/SageMaker",
        "MidStreamErrors",
        frozenset({("EndpointName", ENDPOINT), ("VariantName", "primary")}),
    )
    account.data[key] = {time: [(1.0, 1200)] for time in invocations}
    assert [f.id for f in run(scenario, account).findings] == ["LLD406"]


def test_failed_scaling_without_slow_requests_is_a_risk(run: Run) -> None:
    scenario = Scenario()
    scenario.activities = [scenario.scaled(30, 9, "Failed", "Insufficient capacity")]
    made = run(scenario)
    assert [(f.id, f.risk) for f in made.findings] == [("LLD103", True)]


def test_first_request_to_a_new_fleet_dates_a_deployment(run: Run) -> None:
    scenario = Scenario(deployed=10)
    account = scenario.account()
    key = (
        "AWS/SageMaker",
        "Invocations",
        frozenset(
            {
                ("EndpointName", ENDPOINT),
                ("VariantName", "primary"),
                ("EndpointConfigName", "sentiment-config-2"),
            }
        ),
    )
    account.data[key] = {scenario.at(minute): [(1.0, 50)] for minute in range(17, 30)}
    deployments = run(scenario, account).measurements.deployments
    assert [(d.time, d.how) for d in deployments] == [
        (scenario.at(17), "first request to the new fleet")
    ]


def test_requests_after_a_silence_are_no_deployment(run: Run) -> None:
    """The new fleet's series lasts, and so may start anew with the traffic."""
    scenario = Scenario(tps=lambda minute: 0 if minute < 17 else 500)
    account = scenario.account()
    key = (
        "AWS/SageMaker",
        "Invocations",
        frozenset(
            {
                ("EndpointName", ENDPOINT),
                ("VariantName", "primary"),
                ("EndpointConfigName", "sentiment-config-2"),
            }
        ),
    )
    account.data[key] = {scenario.at(minute): [(1.0, 30_000)] for minute in range(17, 30)}
    assert run(scenario, account).measurements.deployments == ()


def test_an_old_configuration_is_dated_by_its_image(run: Run) -> None:
    scenario = Scenario()
    account = scenario.account()
    account.endpoint["ProductionVariants"][0]["DeployedImages"] = [
        {
            "SpecifiedImage": "model:1",
            "ResolvedImage": "model@sha256:1",
            "ResolutionTime": scenario.at(20),
        }
    ]
    deployments = run(scenario, account).measurements.deployments
    assert [(d.time, d.how) for d in deployments] == [
        (scenario.at(20), "when its image was resolved")
    ]


def test_capacity_set_by_hand_is_no_deployment(run: Run) -> None:
    """It changes the endpoint too, and the time at which that was modified last."""
    scenario = Scenario(instances=lambda m: 5 if m < 27 else 8, tps=constant(500))
    account = scenario.account()
    account.endpoint["LastModifiedTime"] = scenario.at(27.2)
    account.configuration["CreationTime"] = scenario.at(-60)
    assert run(scenario, account).measurements.deployments == ()
    scenario.instances = constant(8)
    account = scenario.account()
    account.endpoint["LastModifiedTime"] = scenario.at(27.2)
    account.configuration["CreationTime"] = scenario.at(-60)
    assert [d.how for d in run(scenario, account).measurements.deployments] == [
        "when the update ended"
    ]


def test_longer_windows_take_longer_periods(run: Run) -> None:
    scenario = Scenario(minutes=60)
    account = scenario.account()
    made = diagnose(account, ENDPOINT, start=END - timedelta(days=7), end=END, now=END)
    assert made.measurements.period == timedelta(minutes=5)
    assert len(made.measurements.variants[0].get("Invocations", "Sum")) == 12


def test_everything_is_json() -> None:
    for fault in FAULTS:
        made = fault.diagnosed().to_dict()
        text = json.dumps(made, allow_nan=False)
        assert json.loads(text)["findings"][0]["id"]


@pytest.mark.parametrize("finding", ["LLD121", "LLD201"])
def test_what_began_before_the_window_still_explains_it(finding: str) -> None:
    """A scale-out begun a minute before the window: no request before it tells the old count."""
    fault = [fault for fault in FAULTS if fault.finding == finding][-1]
    made = diagnose(fault.account(), ENDPOINT, start=END - 38 * MINUTE, end=END, now=END)
    assert [f.id for f in made.findings] == [finding]


def test_an_activity_that_was_not_begun_did_not_fail(run: Run) -> None:
    scenario = Scenario()
    scenario.activities = [
        scenario.scaled(
            minute,
            16,
            "Failed",
            "Attempting to scale due to alarm triggered",
            reasons=("AlreadyAtMaxCapacity",),
        )
        for minute in (20, 30)
    ]
    made = run(scenario)
    assert made.findings == ()
    assert "Not scaled: AlreadyAtMaxCapacity" in made.events[0].text


def test_only_alarms_that_limit_latency_are_thresholds(run: Run) -> None:
    """An alarm on too little latency, or on counts, says nothing about how fast it must be."""
    scenario = Scenario()
    account = scenario.account()
    first = account.alarms[0]
    account.alarms += [
        {**first, "AlarmName": "too-fast", "ComparisonOperator": "LessThanThreshold"},
        {**first, "AlarmName": "looser", "Threshold": 900_000.0},
        {**first, "AlarmName": "burn", "ExtendedStatistic": "PR(160000:)", "Threshold": 14.4},
    ]
    thresholds = run(scenario, account).measurements.variants[0].thresholds
    assert {key: limit.value for key, limit in thresholds.items()} == {
        ("ModelLatency", "p99"): 160.0,
        ("OverheadLatency", "Average"): 40.0,
    }


def test_the_rate_of_an_alarm_on_errors(run: Run) -> None:
    """The endpoint's own error rate, stated as a formula, replaces the default of one percent."""
    scenario = Scenario(errors={"Invocation5XXErrors": constant(0.03)})
    account = scenario.account()
    dimensions = [
        {"Name": "EndpointName", "Value": ENDPOINT},
        {"Name": "VariantName", "Value": "primary"},
    ]
    account.alarms.append(
        {
            "AlarmName": "rate",
            "Threshold": 0.05,
            "ComparisonOperator": "GreaterThanThreshold",
            "StateValue": "OK",
            "Metrics": [
                {"Id": "rate", "Expression": "IF(invocations >= 20, errors / invocations, 0)"},
                *(
                    {
                        "Id": name,
                        "ReturnData": False,
                        "MetricStat": {
                            "Metric": {
                                "Namespace": "AWS/SageMaker",
                                "MetricName": metric,
                                "Dimensions": dimensions,
                            },
                            "Period": 60,
                            "Stat": "Sum",
                        },
                    }
                    for name, metric in (
                        ("errors", "Invocation5XXErrors"),
                        ("invocations", "Invocations"),
                    )
                ),
            ],
        }
    )
    assert run(scenario, account).findings == ()
    assert [finding.id for finding in run(scenario).findings] == ["LLD402"]


def test_alarms_of_scaling_are_no_incident() -> None:
    """Application Auto Scaling's low alarm is on whenever it may scale in."""
    named = ("p99", "TargetTracking-endpoint/sentiment/variant/primary-AlarmLow-1")
    alarms = [SimpleNamespace(name=name, state="ALARM") for name in named]
    said = list(alarms_text(SimpleNamespace(alarms=alarms)))
    assert said == ["in ALARM now: p99"]
