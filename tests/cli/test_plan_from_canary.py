"""``low-latency plan --from-canary``: the measured overhead in plan and file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import canary_adoption
from low_latency_endpoint.cli.application import app
from low_latency_endpoint.settings import load_settings
from tests.operate.diagnose.faults.fault import watched
from tests.operate.diagnose.scenarios import END, ENDPOINT, Scenario, constant

SETTINGS = f"""\
# ours
region: us-east-1
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  sentiment:
    endpoint_name: {ENDPOINT}
    containers: [{{image: {{uri: "registry.example.com/scorer:1"}}}}]
    instance_type: ml.m5.12xlarge
    latency: {{p99: 200ms}}  # the callers'
    canary: {{payload: {{text: hello}}}}
"""

Run = Callable[..., Any]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "endpoint.yaml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, settings: Path) -> Run:
    """Run the command where the model takes 40 ms, and callers in one zone wait so long."""

    def run(*options: str, answer: float | None = 55.5, **scenario: Any) -> Any:
        seen: dict[str, Any] = {}
        if answer is not None:
            seen["canary"] = watched(CanaryAnswerTime=constant(answer))
            seen["canary"]["use1-az2"]["CanaryAnswerTime"] = constant(min(answer, 50))
        account = Scenario(**seen, **scenario).account()
        monkeypatch.setattr(canary_adoption, "open_clients", lambda *_: (account, "us-east-1"))
        monkeypatch.setattr(canary_adoption, "account_now", lambda: END + timedelta(hours=1))
        made = CliRunner().invoke(
            app, ["plan", "--settings", str(settings), "--from-canary", *options]
        )
        if made.exception and not isinstance(made.exception, SystemExit):
            raise made.exception
        return made

    return run


def test_the_measured_overhead_is_planned_with_and_written(run: Run, settings: Path) -> None:
    """55.5 ms less 40 ms are 15.5 of 200: 8 %, rounded up; the model keeps 184 ms."""
    made = run("--write")
    assert made.exit_code == 0, made.output
    (endpoint,) = load_settings(settings).endpoints.values()
    assert endpoint.latency is not None
    assert endpoint.latency.overhead_share == 0.08
    assert endpoint.latency.milliseconds == {"p99": 200.0}
    assert "# the callers'" in settings.read_text()
    said = " ".join(made.output.split())
    assert re.search("callers in use1-az1, the slowest zone, waited 1[56] ms longer", said)
    assert "184" in made.output


def test_as_json_with_its_source(run: Run, settings: Path) -> None:
    told = json.loads(run("--json").stdout)
    assert told["from_canary"]["overhead_share"] == 0.08
    assert told["from_canary"]["overhead_ms"] == pytest.approx(15.5, abs=1)
    assert told["from_canary"]["written"] is False
    assert settings.read_text() == SETTINGS
    decisions = {each["name"]: each for each in told["endpoints"]["sentiment"]["decisions"]}
    assert decisions["alarm_model_latency_p99"]["value"] == 184
    assert "measured by the canary" in decisions["alarm_model_latency_p99"]["note"]


@pytest.mark.parametrize(("answer", "share"), [(40.5, 0.01), (400.0, 0.9)])
def test_a_share_stays_within_what_a_plan_takes(run: Run, answer: float, share: float) -> None:
    told = json.loads(run("--json", answer=answer).stdout)
    assert told["from_canary"]["overhead_share"] == share


def test_an_overhead_below_zero_is_no_overhead(run: Run, settings: Path) -> None:
    with pytest.raises(Exception, match="LLA108") as refused:
        run("--write", answer=30.0)
    assert "10 ms less than the model took" in str(refused.value)
    assert settings.read_text() == SETTINGS


def test_without_a_canary_nothing_is_planned(run: Run) -> None:
    with pytest.raises(Exception, match="LLA106") as refused:
        run(answer=None)
    assert "nothing of sentiment in a week" in str(refused.value)


def test_the_overhead_of_other_requests_is_not_adopted(run: Run, settings: Path) -> None:
    """5 bytes, ``hello``, say nothing of requests of 50 and more."""
    settings.write_text(SETTINGS + "    payload_bytes: 49\n")
    assert run("--write").exit_code == 0
    settings.write_text(SETTINGS + "    payload_bytes: 50\n")
    with pytest.raises(Exception, match="LLA107") as refused:
        run("--write")
    assert "the canary sends 5 bytes, and callers send 50 (payload_bytes)" in str(refused.value)
    assert "overhead_share" not in settings.read_text()


def test_without_a_target_there_is_no_share(run: Run, settings: Path) -> None:
    settings.write_text(SETTINGS.replace("    latency: {p99: 200ms}  # the callers'\n", ""))
    with pytest.raises(Exception, match="LLE928"):
        run()


def test_one_measurement_at_a_time(run: Run, tmp_path: Path) -> None:
    made = run("--from-load-test", str(tmp_path / "result.json"))
    assert made.exit_code == 2
    assert "one after the other" in made.output.replace("\n", " ")
