"""An account as a load test reads it, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.joined_metrics import JoinedMetrics
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import load_test
from low_latency_endpoint.load_test.search.result_file import LoadTestReport
from low_latency_endpoint.load_test.search.run_plans import RunPlan, limit_plan
from low_latency_endpoint.load_test.search.running import LoadTestRun, run
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.search_plan import SearchPlan
from low_latency_endpoint.load_test.search.serving import ServingFleet

from .fake_generator import FakeGenerator

GOAL = LatencyGoal({"p99": 0.2})
FLEET = ServingFleet("primary", ("primary",), "ml.m5.12xlarge", 1, "RANDOM")


ANSWERED = ("_describe_", "_get_metric_")


def kinds(found: tuple[Any, ...]) -> list[str]:
    """The kinds of verdicts."""
    return [each.kind for each in found]


@dataclass
class FakeAws:
    """AWS as far as a load test reads it."""

    instances: list[int] = field(default_factory=lambda: [2])
    """At each reading; the last one stays."""
    invocations: list[float] = field(default_factory=lambda: [1000.0])
    denied: tuple[str, ...] = ()
    missing: bool = False
    scaled: bool = True
    series: dict[str, list[float]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def account(self, region: str = "") -> Account:
        return Account(lambda service: self, region, once=False)

    @property
    def meta(self) -> Any:
        names = (name.removeprefix("_") for name in dir(type(self)) if name.startswith(ANSWERED))
        return SimpleNamespace(
            method_to_api_mapping={
                name: "".join(map(str.capitalize, name.split("_"))) for name in names
            }
        )

    def can_paginate(self, operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        if operation.startswith("__"):
            raise AttributeError(operation)

        def call(**request: Any) -> dict[str, Any]:
            self.asked.append(operation)
            if operation in self.denied:
                refusal = {"Code": "AccessDeniedException", "Message": "no"}
                raise ClientError({"Error": refusal}, operation)
            return dict(getattr(self, f"_{operation}")(**request))

        return call

    def _describe_endpoint(self, EndpointName: str) -> dict[str, Any]:
        if self.missing:
            error = {
                "Code": "ValidationException",
                "Message": f'Could not find endpoint "{EndpointName}".',
            }
            raise ClientError({"Error": error}, "DescribeEndpoint")
        count = self.instances.pop(0) if len(self.instances) > 1 else self.instances[0]
        one = {"VariantName": "primary", "CurrentInstanceCount": count}
        return {"EndpointConfigName": "c", "ProductionVariants": [one]}

    def _describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
        one = {"VariantName": "primary", "InstanceType": "ml.m5.xlarge", "RoutingConfig": routing}
        return {"ProductionVariants": [one]}

    def _describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        resource = "endpoint/sentiment/variant/primary"
        one = {"ResourceId": resource, "MinCapacity": 2, "MaxCapacity": 6}
        return {"ScalableTargets": [one] * self.scaled}

    def _get_metric_data(
        self, MetricDataQueries: list[dict[str, Any]], StartTime: datetime, **_: Any
    ) -> dict[str, Any]:
        counted = self.invocations.pop(0) if len(self.invocations) > 1 else self.invocations[0]
        series = {"Invocations.Sum": [counted], **self.series}
        results = []
        for query in MetricDataQueries:
            stat = query["MetricStat"]
            name = f"{stat['Metric']['MetricName']}.{stat['Stat']}"
            of = {each["Name"]: each["Value"] for each in stat["Metric"]["Dimensions"]}
            values = series.get(f"{of['VariantName']}.{name}", series.get(name, []))
            times = [StartTime + timedelta(minutes=number) for number in range(len(values))]
            results.append({"Id": query["Id"], "Values": values, "Timestamps": times})
        return {"MetricDataResults": results}


@dataclass
class TwoVariants(FakeAws):
    """Requests are divided between two variants; a third has no weight."""

    types: tuple[str, str, str] = ("ml.m5.xlarge", "ml.m5.xlarge", "ml.g5.xlarge")

    def _describe_endpoint(self, EndpointName: str) -> dict[str, Any]:
        all_ = [
            {"VariantName": name, "CurrentInstanceCount": count, "CurrentWeight": weight}
            for name, count, weight in (("a", 1, 1.0), ("b", 3, 2.0), ("idle", 9, 0.0))
        ]
        return {"EndpointConfigName": "c", "ProductionVariants": all_}

    def _describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        all_ = zip(("a", "b", "idle"), self.types, strict=True)
        return {
            "ProductionVariants": [
                {"VariantName": name, "InstanceType": kind} for name, kind in all_
            ]
        }

    def _describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        one = {"ResourceId": "endpoint/sentiment/variant/b", "MinCapacity": 3, "MaxCapacity": 6}
        return {"ScalableTargets": [one]}


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
        lambda profile, region: (lambda service: aws, region),
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
