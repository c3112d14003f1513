"""What never reached an instance is told as such: no limit, no client, no container."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.connections import _ERRORS, connection_error
from low_latency_endpoint.load_test.engine.failure_causes import (
    CONNECTIONS,
    NOT_THE_INSTANCES,
    SENDER,
    cause_of,
    cause_of_most,
    explanation,
)
from low_latency_endpoint.load_test.engine.measurement import Measurement
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.report import document, verdict
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.reached import NO_INSTANCE_REACHED, NOTHING_ANSWERED
from low_latency_endpoint.load_test.search.result_file import (
    LoadTestReport,
    LoadTestRun,
    write_text,
)
from low_latency_endpoint.load_test.search.run_plans import (
    SearchPlan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.load_test.search.settings_file import read_found_limit
from low_latency_endpoint.load_test.search.verdict_texts import VERDICTS
from tests.refusals import refused

from .fake_account import FLEET, GOAL, kinds, metrics_of
from .fake_generator import QUEUE_FULL, FakeGenerator, failed

#: By the code of each error of the system that a socket can give, and by each other kind.
OF_CONNECTIONS = sorted(
    {f"connection {said}" for _, said in _ERRORS}
    | {str(connection_error(OSError(code, os.strerror(code)))) for code in errno.errorcode}
)
OTHERS = [
    "400 ThrottlingException",
    "429 Too Many Requests",
    "429 ModelNotReadyException",
    "400 ValidationError",
    "403 AccessDeniedException",
    "403 ExpiredTokenException",
    "407 Proxy Authentication Required",
    "500 InternalFailure",
    "credentials CredentialRetrievalError",
    "client RuntimeError",
    "session EndpointConnectionError",
    "session NoCredentialsError",
]
SHOWN = [f"connection {said}" for _, said in _ERRORS] + ["connection Too many open files", *OTHERS]
OF_INSTANCES = [
    "424 ModelError 500",
    "424 ModelError 503",
    "424 ModelError 0",
    "timeout",
    QUEUE_FULL,
]


@dataclass
class Leaving(FakeGenerator):
    """From a step on, and a time in it, nothing but one kind of failure is left."""

    kind: str = ""
    from_step: int = 0
    from_second: float = 0.0
    leaves_at: float = math.inf

    def run(self, step: Step, *more: Any) -> StepResult:
        """Run one step."""
        self.broken = self.kind if len(self.steps) > self.from_step else ""
        self.leaves_at = self.from_second if len(self.steps) == self.from_step else math.inf
        return super().run(step, *more)

    def _open(self, step: Step, *more: Any) -> Iterator[tuple[float, float, str]]:
        for at, ended, kind in super()._open(step, *more):
            gone = at >= self.leaves_at
            yield failed(at, self.kind) if gone else (at, ended, kind)


def report_of(done: LoadTestRun) -> LoadTestReport:
    """With all that CloudWatch could mislead with."""
    full = metrics_of(CPUUtilization_Average=[97.0] * 8, ModelLatency_Average=[900.0] * 8)
    found = verdicts(done, FLEET, full)
    return LoadTestReport(Target("e", "us-east-1"), done, FLEET, full, found, peak_tps=100)


@pytest.mark.parametrize("kind", OF_CONNECTIONS)
def test_every_error_of_a_connection_has_its_words(kind: str) -> None:
    assert cause_of(kind) in (CONNECTIONS, SENDER)
    meaning = explanation(kind)
    assert meaning is not None
    assert "container" not in meaning.said + meaning.fix


def test_every_cause_has_its_verdict() -> None:
    assert NOT_THE_INSTANCES.keys() <= VERDICTS.keys()


@pytest.mark.parametrize("bound_above", [math.inf, 0.0])
@pytest.mark.parametrize("kind", SHOWN)
def test_what_reaches_no_instance_is_no_ones_limit(kind: str, bound_above: float) -> None:
    """Neither the machine's that sent, however busy it was with failing, nor the container's."""
    for plan in (
        rate_plan([50, 100], seconds=10, goal=GOAL, alone_seconds=0),
        users_plan([4], seconds=10, goal=GOAL, alone_seconds=0),
    ):
        done = run(plan, FakeGenerator(broken=kind, client_bound_above=bound_above))
        assert {step.judgement.outcome for step in done.loads} == {"broken"}
        report = report_of(done)
        assert kinds(report.verdicts) == [cause_of(kind)]
        (found,) = report.verdicts
        assert "container" not in found.title + found.advice
        assert not report.held


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("from_step", [2, 4, 6, 9])
def test_a_search_ends_when_no_instance_is_reached_any_more(kind: str, from_step: int) -> None:
    generator = Leaving(kind=kind, from_step=from_step)
    done = run(limit_plan(SearchPlan(GOAL, 20, instances=1)), generator)
    assert len(generator.steps) == from_step + 1
    assert done.interrupted
    assert NO_INSTANCE_REACHED.code in done.failure
    assert kind in done.failure
    report = report_of(done)
    assert not report.run.held
    assert not report.throughput
    limit = done.limit
    assert limit is not None, "what was measured before is kept"
    assert limit.lower_bound
    assert limit.rate <= generator.capacity
    assert cause_of(kind) in kinds(report.verdicts)
    assert "client-bound" not in kinds(report.verdicts)
    assert "errors" not in kinds(report.verdicts)


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize(("from_step", "from_second"), [(3, 0.0), (3, 9.0), (3, 15.0), (9, 9.0)])
@pytest.mark.parametrize("slow", [False, True])
def test_what_ended_a_search_stands_first_and_once(
    kind: str, from_step: int, from_second: float, slow: bool, tmp_path: Path
) -> None:
    """Ahead of the requests that waited before, and before the plan in what to do."""
    more = {"queue_limit": None if slow else 2}
    done = run(
        limit_plan(SearchPlan(GOAL, 20, instances=1)),
        Leaving(kind=kind, from_step=from_step, from_second=from_second, **more),
    )
    if not done.failure:  # its last step missed by something else
        return
    report = report_of(done)
    found = kinds(report.verdicts)
    assert found[0] == cause_of(kind)
    assert found.count(cause_of(kind)) == 1
    file = tmp_path / "result.json"
    write_text(file, report.to_json())
    with refused("LLT138") as caught:
        read_found_limit(file)
    assert "--up-to" not in caught.value.fix
    assert "--up-to" not in str(document(report))


def test_it_says_since_when_and_what_holds_at_least() -> None:
    generator = Leaving(kind="connection refused", from_step=3, from_second=4.0)
    done = run(limit_plan(SearchPlan(GOAL, 20, instances=1)), generator)
    assert "connections to SageMaker failed" in done.failure
    assert "UTC" in done.failure
    assert "one instance holds at least" in verdict(report_of(done))


def test_a_step_of_which_few_fail_so_does_not_end_the_search() -> None:
    done = run(
        limit_plan(SearchPlan(GOAL, 20, instances=1)),
        Leaving(kind="connection closed", from_step=3, from_second=15.0),
    )
    assert NO_INSTANCE_REACHED.code in done.failure, "the next step has no other answer"
    lost = replace(done.steps[1].result, errors={"connection closed": 1})
    assert not cause_of_most(lost)


@pytest.mark.parametrize("kind", OF_INSTANCES)
def test_failures_of_instances_are_a_limit_still(kind: str) -> None:
    assert cause_of(kind) not in NOT_THE_INSTANCES
    done = run(rate_plan([50], seconds=10, goal=GOAL, alone_seconds=0), FakeGenerator(broken=kind))
    assert kinds(verdicts(done, FLEET, JoinedMetrics()))[0] == "errors"


@pytest.mark.parametrize(("lost", "cause"), [(49, ""), (50, CONNECTIONS)])
def test_half_of_the_requests_are_most(lost: int, cause: str) -> None:
    measured = Measurement(sent=100, errors={"connection refused": lost, "timeout": 1})
    assert cause_of_most(measured) == cause


def test_steps_are_not_sent_to_an_endpoint_that_is_gone() -> None:
    generator = Leaving(kind="connection refused", from_step=1)
    done = run(rate_plan([50, 100, 150], seconds=10, goal=GOAL, alone_seconds=0), generator)
    assert len(generator.steps) == 2
    assert NO_INSTANCE_REACHED.code in done.failure
    throttled = Leaving(kind="400 ThrottlingException", from_step=1)
    run(rate_plan([50, 100, 150], seconds=10, goal=GOAL, alone_seconds=0), throttled)
    assert len(throttled.steps) == 3, "a lower rate may be throttled no more"


@pytest.mark.parametrize(
    ("kind", "code", "fix"),
    [
        ("connection timeout", NO_INSTANCE_REACHED.code, "security group"),
        ("connection name unknown", NO_INSTANCE_REACHED.code, "DNS"),
        ("credentials CredentialRetrievalError", NO_INSTANCE_REACHED.code, "Sign in"),
        ("403 AccessDeniedException", NOTHING_ANSWERED.code, "sagemaker:InvokeEndpoint"),
        ("424 ModelError 500", NOTHING_ANSWERED.code, "container's log"),
    ],
)
def test_a_caller_alone_who_reaches_nothing(kind: str, code: str, fix: str) -> None:
    with refused(code) as caught:
        run(rate_plan([50], seconds=10, goal=GOAL), FakeGenerator(broken=kind))
    assert fix in caught.value.fix
    assert ("container" in caught.value.fix) is kind.startswith("424")


def test_an_endpoint_that_was_deleted_is_told_by_its_message() -> None:
    meaning = explanation("400 ValidationError", "Endpoint sentiment of account … not found.")
    assert meaning is not None
    assert meaning.said == "the endpoint does not exist"
    assert explanation("400 ValidationError", "Content type not supported.") is None
