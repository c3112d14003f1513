"""One verdict and one number for one thing, in the text and in the JSON."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace

import pytest

from low_latency_endpoint.cli.output import print_document
from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.diagnosis import unjudged
from low_latency_endpoint.operate.diagnose.document import document
from tests.depth import sampled

from .conftest import Run
from .faults.fault import Fault, between, from_minute, slow, watched
from .scenarios import PerMinute, Scenario, constant
from .steady_faults import FAULTS


def _text(made: Diagnosis) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        print_document(document(made))
    return " ".join(printed.getvalue().split())


@pytest.mark.parametrize("fault", sampled(FAULTS, 4), ids=str)
def test_text_and_json_say_the_same(fault: Fault) -> None:
    made = fault.diagnosed
    verdict = made.to_dict()["verdict"]
    assert verdict["state"] == ("faulty" if verdict["faults"] else "at_risk")
    assert document(made).verdict.startswith("Faulty: " if verdict["faults"] else "At risk: ")


def test_the_words_of_a_verdict(run: Run) -> None:
    risk = Scenario(canary=watched(CanaryOutOfZone=constant(1)))
    for scenario, state, healthy, words in (
        (risk, "at_risk", False, "At risk: 1 risk."),
        (Scenario(), "healthy", True, "Nothing found: the endpoint is healthy."),
        (Scenario(tps=constant(0)), "not_judged", None, "Nothing to judge"),
    ):
        made = run(scenario)
        assert (made.state, made.healthy) == (state, healthy)
        assert made.to_dict()["verdict"]["state"] == state
        assert document(made).verdict.startswith(words)


@pytest.mark.parametrize("tps", [constant(0), from_minute(30, 600, 0)])
def test_a_variant_of_weight_zero_may_be_silent(tps: PerMinute, run: Run) -> None:
    """Beside another one; the only variant of an endpoint is expected to be asked."""
    (silent,) = run(Scenario(tps=tps)).measurements.variants
    made = run(Scenario())
    (asked,) = made.measurements.variants
    beside = [replace(asked, name="other"), replace(silent, weight=0.0)]
    two = replace(made.measurements, variants=tuple(beside))
    alone = replace(made.measurements, variants=(beside[1],))
    assert not list(unjudged(two))
    weighted = replace(two, variants=(beside[0], replace(silent, weight=0.5)))
    for measured in (weighted, alone):
        (why,) = {each.why for each in unjudged(measured)}
        assert why in ("no_requests", "requests_ended")


def test_a_share_of_errors_says_over_which_time_it_is(run: Run) -> None:
    """Half of the requests fail from minute 20 on: a third of the hour's."""
    made = run(Scenario(errors={"Invocation5XXErrors": from_minute(20, 0, 0.5)}))
    (onset,) = made.to_dict()["onsets"]
    assert onset["since"] == pytest.approx(0.5, rel=0.01)
    assert "33 % of the requests of the window" in made.findings[0].evidence[0].text
    for minutes in (range(30, 34), range(60)):
        share = {m: 0.2 + 0.02 * (m % 7) for m in minutes}
        made = run(Scenario(errors={"Invocation5XXErrors": lambda m, s=share: s.get(m, 0)}))
        (onset,) = made.to_dict()["onsets"]
        assert onset["since"] == pytest.approx(sum(share.values()) / len(share), rel=0.01)


def test_a_percentile_that_no_request_had_is_not_told(run: Run) -> None:
    made = run(Scenario(latency=slow(30, 60, 302), spread=0.1))
    (model, *_) = made.to_dict()["latency_ms"]["primary"]
    assert model["p50"] is None
    low, high = model["ranges_ms"]["p50"]
    assert (low, high) == (pytest.approx(40, rel=0.05), pytest.approx(302, rel=0.05))
    assert re.search(r"model 4\d-30\d ms", _text(made))
    (steady, *_) = run(Scenario()).to_dict()["latency_ms"]["primary"]
    assert steady["p50"] == pytest.approx(40, rel=0.05)
    assert steady["ranges_ms"] == {}


def test_one_slow_minute_is_no_range(run: Run) -> None:
    made = run(Scenario(latency=lambda m, i: 400 if m == 30 else 40))
    assert made.to_dict()["latency_ms"]["primary"][0]["ranges_ms"] == {}


def test_a_small_number_is_not_zero(run: Run) -> None:
    text = _text(run(Scenario(tps=constant(0.1), instances=constant(2), cpu=constant(0.3))))
    assert re.search(r"requests a second \S+ 0\.1 to 0\.1", text)
    assert not re.search(r"(?<![\d.,])0( %)? to 0(?![.,])", text)


def test_the_command_for_the_log_has_the_endpoints_name(run: Run) -> None:
    errors = {"Invocation5XXErrors": between(30, 50, 0.05, 0)}
    made = run(Scenario(errors=errors))
    assert "run aws logs tail /aws/sagemaker/Endpoints/sentiment --since 1h" in _text(made)
    assert "<name>" not in json.dumps(made.to_dict())
