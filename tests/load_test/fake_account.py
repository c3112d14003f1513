"""An account as a load test reads it, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import load_test, run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport, LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import RunPlan, SearchPlan, limit_plan
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics, ServingFleet
from tests import fake_aws

from .fake_generator import FakeGenerator

GOAL = LatencyGoal({"p99": 0.2})
ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/sentiment"
MADE = datetime(2026, 11, 20, tzinfo=UTC)
FLEET = ServingFleet("primary", ("primary",), "ml.m5.12xlarge", 1, "RANDOM")


def kinds(found: tuple[Any, ...]) -> list[str]:
    """The kinds of verdicts."""
    return [each.kind for each in found]


class FakeAws(fake_aws.FakeAws):
    """AWS as far as a load test reads it: an endpoint, by its variants' instances and types."""

    def __init__(
        self,
        *,
        instances: Sequence[int] = (2,),  # at each reading; the last one stays
        invocations: Sequence[float] = (1000.0,),  # the same
        series: Mapping[str, list[float]] | None = None,
        denied: Sequence[str] = (),
        missing: bool = False,
        scaled: bool = True,
    ) -> None:
        self.instances, self.invocations = list(instances), list(invocations)
        self.series, self.missing = series or {}, missing
        self.types = {"primary": "ml.m5.xlarge"}
        self.scaled = {"primary": (2, 6)} if scaled else {}
        self.suspended: dict[str, bool] = {}  # of each scalable target
        self.scheduled: list[str] = []  # names of the first target's scheduled actions
        super().__init__(
            {
                "sagemaker.DescribeEndpoint": self._endpoint,
                "sagemaker.DescribeEndpointConfig": self._configuration,
                "application-autoscaling.DescribeScalableTargets": self._targets,
                "application-autoscaling.DescribeScheduledActions": self._actions,
                "cloudwatch.GetMetricData": self._metric_data,
            }
        )
        self.denied = dict.fromkeys(denied, "AccessDeniedException")

    def account(self, region: str = "") -> Account:
        return Account(self, region, once=False)

    def counts(self) -> list[dict[str, Any]]:
        """What DescribeEndpoint tells of the variants."""
        return [{"VariantName": "primary", "CurrentInstanceCount": _next(self.instances)}]

    def _endpoint(self, request: Mapping[str, Any]) -> Any:
        name = request["EndpointName"]
        if self.missing:
            return fake_aws.Refused("ValidationException", f'Could not find endpoint "{name}".')
        return {
            "EndpointName": name,
            "EndpointArn": ARN,
            "EndpointStatus": "InService",
            "CreationTime": MADE,
            "LastModifiedTime": MADE,
            "EndpointConfigName": "c",
            "ProductionVariants": self.counts(),
        }

    def _configuration(self, request: Mapping[str, Any]) -> Any:
        routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
        return {
            "EndpointConfigName": "c",
            "EndpointConfigArn": ARN,
            "CreationTime": MADE,
            "ProductionVariants": [
                {"VariantName": name, "InstanceType": kind, "RoutingConfig": routing}
                for name, kind in self.types.items()
            ],
        }

    def _targets(self, request: Mapping[str, Any]) -> Any:
        common = {
            "ServiceNamespace": "sagemaker",
            "RoleARN": ARN,
            "CreationTime": MADE,
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
        return {
            "ScalableTargets": [
                {
                    **common,
                    "ResourceId": f"endpoint/sentiment/variant/{name}",
                    "MinCapacity": low,
                    "MaxCapacity": high,
                    "SuspendedState": self.suspended,
                }
                for name, (low, high) in self.scaled.items()
            ]
        }

    def _actions(self, request: Mapping[str, Any]) -> Any:
        resource = f"endpoint/sentiment/variant/{next(iter(self.scaled))}"
        actions = self.scheduled if request.get("ResourceId", resource) == resource else []
        return {
            "ScheduledActions": [
                {"ScheduledActionName": name, "ResourceId": resource} for name in actions
            ]
        }

    def _metric_data(self, request: Mapping[str, Any]) -> Any:
        series = {"Invocations.Sum": [_next(self.invocations)], **self.series}
        results = []
        for query in request["MetricDataQueries"]:
            stat = query["MetricStat"]
            name = f"{stat['Metric']['MetricName']}.{stat['Stat']}"
            of = {each["Name"]: each["Value"] for each in stat["Metric"]["Dimensions"]}
            values = series.get(f"{of['VariantName']}.{name}", series.get(name, []))
            times = [request["StartTime"] + timedelta(minutes=at) for at in range(len(values))]
            results.append({"Id": query["Id"], "Values": values, "Timestamps": times})
        return {"MetricDataResults": results}


def _next(values: list[Any]) -> Any:
    return values.pop(0) if len(values) > 1 else values[0]


class TwoVariants(FakeAws):
    """Requests are divided between two variants; a third has no weight."""

    def __init__(self, second: str = "ml.m5.xlarge", **more: Any) -> None:
        super().__init__(**more)
        self.types = {"a": "ml.m5.xlarge", "b": second, "idle": "ml.g5.xlarge"}
        self.scaled = {"b": (3, 6)}

    def counts(self) -> list[dict[str, Any]]:
        return [
            {"VariantName": name, "CurrentInstanceCount": count, "CurrentWeight": weight}
            for name, count, weight in (("a", 1, 1.0), ("b", 3, 2.0), ("idle", 9, 0.0))
        ]


def loaded(
    monkeypatch: pytest.MonkeyPatch,
    aws: FakeAws,
    plan: RunPlan,
    generator: FakeGenerator,
    target: Target | None = None,
    **options: Any,
) -> LoadTestReport:
    """Test the endpoint of an account."""
    monkeypatch.setattr(
        "low_latency_endpoint.load_test.search.load_testing.open_clients",
        lambda profile, region: (aws, region),
    )
    return load_test(
        target or Target("sentiment", "us-east-1"),
        Payloads.of_bytes(b"{}"),
        plan,
        generator=lambda: generator,
        **options,
    )


def limit_test(
    monkeypatch: pytest.MonkeyPatch, aws: FakeAws, generator: FakeGenerator, **options: Any
) -> LoadTestReport:
    """Look for the limit of what an account describes."""
    plan = limit_plan(SearchPlan(GOAL, 20, poisson=False))
    return loaded(monkeypatch, aws, plan, generator, metrics_wait=None, **options)


def report_of(
    plan: RunPlan, metrics: bool = False, more: dict[str, Any] | None = None, **generator: Any
) -> LoadTestReport:
    """The report of a formula, with or without CloudWatch."""
    done = run(plan, FakeGenerator(**{"queue_limit": 20, **generator}))
    joined = _metrics(done) if metrics else JoinedMetrics(unknown=("CloudWatch: not permitted",))
    return LoadTestReport(
        Target("sentiment", "us-east-1"),
        done,
        FLEET,
        joined,
        verdicts(done, FLEET, joined),
        payload="file body.json",
        **{"peak_tps": 1000.0, "safety_factor": 1.0, **(more or {})},
    )


def _metrics(done: LoadTestRun) -> JoinedMetrics:
    """Of each minute of the run one more than of the minute before."""
    minutes = range(int((done.steps[-1].result.ended_at - FakeGenerator().clock) // 60) + 1)
    return metrics_of(
        ModelLatency_p99=[40 + minute for minute in minutes],
        ModelLatency_p50=[20 + minute for minute in minutes],
        ModelLatency_Average=[22 + minute for minute in minutes],
        OverheadLatency_Average=[3 + minute for minute in minutes],
        CPUUtilization_Average=[60 + minute for minute in minutes],
        Invocations_Sum=[6000 + minute for minute in minutes],
        InvocationsPerInstance_Sum=[6000 + minute for minute in minutes],
        Invocation5XXErrors_Sum=[4 + minute for minute in minutes],
    )


def metrics_of(**series: list[float | None]) -> JoinedMetrics:
    """Series by ``Metric_Statistic`` with a value for each minute from the fake clock's start."""
    first = datetime.fromtimestamp(FakeGenerator().clock, UTC)
    return JoinedMetrics(
        {
            tuple(name.split("_")): Series(
                {  # type: ignore[misc]
                    first + timedelta(minutes=minute): value
                    for minute, value in enumerate(values)
                    if value is not None
                }
            )
            for name, values in series.items()
        },
        True,
    )
