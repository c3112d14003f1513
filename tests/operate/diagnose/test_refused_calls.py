"""ModelLatency may hold calls that failed: where many fail at once, nothing is fast by comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.document import document
from tests.depth import sampled

from .conftest import Run
from .faults.fault import from_minute, slow
from .scenarios import ENDPOINT, VARIANT, Scenario, Update, constant

#: When a fleet whose answers take 100 ms refuses nine calls of ten within 5 ms.
_SHAPES: dict[str, Callable[[int], bool]] = {
    "always": lambda m: True,
    "at first": lambda m: m < 20,
    "at last": lambda m: m >= 40,
    "for ten minutes": lambda m: 25 <= m < 35,
    "every tenth minute": lambda m: m % 10 == 0,
    "less and less": lambda m: m < 50,
}
_ENDPOINTS: dict[str, dict[str, Any]] = {
    "one target": {},
    "no target": {"thresholds": {}, "planned": None},
    "a new deployment": {"deployed": 20},
    "an update": {"update": Update(latency=lambda m, i: 100.0)},
    "random routing": {"routing": None},
    "instances apart": {"enhanced": True, "zones": ("us-east-1a", "us-east-1b")},
    "full while it refuses": {"cpu": "full"},
    "no scaling": {"scaling": None},
    "a GPU": {"instance_type": "ml.g5.xlarge", "gpu": constant(55)},
}
_CLIENT = {"p50": 110.0, "p99": 230.0}


def _refusing(shape: str, answer: float = 100, **more: Any) -> Scenario:
    """Answers that take so many milliseconds, and refusals of 5 ms in some minutes."""
    then = _SHAPES[shape]
    fade = shape == "less and less"
    share = lambda m: 0.0 if not then(m) else 0.9 - 0.012 * m if fade else 0.9  # noqa: E731
    if more.get("cpu") == "full":
        more["cpu"] = lambda m: 98 if then(m) else 45
    values: dict[str, Any] = {
        "tps": constant(300),
        "latency": lambda m, i: share(m) * 5 + (1 - share(m)) * answer,
        "thresholds": {("ModelLatency", "p99"): 300.0},
        "errors": {"Invocation5XXErrors": share, "InvocationModelErrors": share},
    }
    return Scenario(**(values | more))


def _told(made: Diagnosis) -> dict[str, list[str]]:
    """What is told beside the errors."""
    findings = [finding for finding in made.findings if finding.path[0] != "errors"]
    return {finding.id: [shown.text for shown in finding.evidence] for finding in findings}


_PAIRS = [(shape, endpoint) for shape in _SHAPES for endpoint in _ENDPOINTS]


@pytest.mark.parametrize(("shape", "endpoint"), sampled(_PAIRS, 2))
def test_quick_refusals_make_no_answer_slow(shape: str, endpoint: str, run: Run) -> None:
    """The same answers as ever: nothing is slower than the refusals, inside or outside."""
    made = run(_refusing(shape, **_ENDPOINTS[endpoint]), client_latency=_CLIENT)
    assert made.findings
    assert not _told(made)
    words = " ".join(shown.text for finding in made.findings for shown in finding.evidence)
    assert "ModelLatency was" in words
    assert "may hold the" in words


@pytest.mark.parametrize(
    ("shape", "endpoint"),
    sampled([pair for pair in _PAIRS if pair[0] not in ("always", "less and less")], 2),
)
def test_slow_answers_are_not_blamed_on_what_changed_with_the_refusals(
    shape: str, endpoint: str, run: Run
) -> None:
    """Always as slow: without refusals it has a cause, and with them no other."""
    refusing = _refusing(shape, 400, **_ENDPOINTS[endpoint])
    if refusing.update:
        refusing.update = replace(refusing.update, latency=lambda m, i: 400.0)
    answering = replace(refusing, latency=lambda m, i: 400, errors={})
    assert set(_told(run(refusing))) <= set(_told(run(answering)))


@pytest.mark.parametrize(("share", "ids"), [(0.004, {"LLD801"}), (0.9, {"LLD402"})])
def test_the_path_is_named_where_nearly_all_calls_succeed(
    share: float, ids: set[str], run: Run
) -> None:
    """The client's 608 ms are of good answers, the model's 7 ms of the refusals."""
    errors = dict.fromkeys(("Invocation5XXErrors", "InvocationModelErrors"), constant(share))
    made = run(Scenario(latency=lambda m, i: 7, errors=errors), client_latency={"p50": 608.0})
    assert {finding.id for finding in made.findings} == ids


@pytest.mark.parametrize("failing", [0.0, 0.9])
def test_an_instance_is_not_slow_beside_those_that_refuse(failing: float, run: Run) -> None:
    scenario = Scenario(
        instances=constant(6),
        tps=constant(300),
        enhanced=True,
        latency=lambda m, i: 100 if i == 5 else 10,
        thresholds={("ModelLatency", "p99"): 150.0},
    )
    account = scenario.account()
    for minute in range(scenario.minutes):
        for instance in range(5):
            of = {"EndpointName": ENDPOINT, "VariantName": VARIANT, "InstanceId": f"i-{instance}"}
            key = ("AWS/SageMaker", "Invocation5XXErrors", frozenset(of.items()))
            samples = [(1.0, failing * 3000)]
            account.data.setdefault(key, {})[scenario.at(minute)] = samples
    told = {finding.id for finding in run(account).findings}
    assert ("LLD501" in told) is (failing == 0)


def test_refusals_while_it_is_slow_leave_the_cause(run: Run) -> None:
    """Slow is slow: quick refusals could only have hidden it."""
    scenario = Scenario(
        latency=slow(20, 60, 400), cpu=from_minute(20, 45, 12), in_flight=from_minute(20, 24, 240)
    )
    failing = replace(scenario, errors={"Invocation5XXErrors": from_minute(20, 0, 0.3)})
    assert set(_told(run(failing))) == set(_told(run(scenario))) == {"LLD123"}


def test_the_table_of_latencies_says_what_it_may_hold(run: Run) -> None:
    words = "The model's latency may hold the 90 % of the calls that failed."
    assert words in str(document(run(_refusing("always"))))
    assert "may hold" not in str(document(run(Scenario())))
