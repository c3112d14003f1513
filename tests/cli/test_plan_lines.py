"""What ``low-latency plan FILE`` shows first: six lines an endpoint, and warnings that are meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.settings import explain_variants, load_settings, parse_settings

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "tests" / "sentiment.yaml"
Run = Callable[..., list[str]]


@pytest.fixture
def lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Plan the shipped settings with the endpoint changed, in a terminal of 80 columns."""

    def run(*options: str, copies: int = 1, topic: bool = False, **changes: Any) -> list[str]:
        values = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        endpoint = {**values["endpoints"]["sentiment"], **changes}
        values["endpoints"] = {
            f"number-{number}": {**endpoint, "endpoint_name": f"number-{number}"}
            for number in range(copies)
        }
        path = tmp_path / "endpoint.yaml"
        path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys, "argv", ["low-latency", "plan", "--settings", str(path), *options])
        with pytest.raises(SystemExit):
            main()
        out = capsys.readouterr().out.splitlines()
        assert max(map(len, out)) <= 80
        assert not [line for line in out if line != line.rstrip()]
        return out

    return run


def test_six_lines_say_what_is_deployed(lines: Run) -> None:
    out = lines()
    assert out[:2] == ["LowLatencyEndpoint: callers in use1-az1, use1-az2", ""]
    # 1000 / (200 x 0.65) = 7.7, so eight; 200 x 0.65 x 60 = 7,800; 80 and 20 % of 200 ms; and
    # alarms on errors, CPU, memory, disk and all instances serving. 3 x 200 x 0.65 / 200 = 195 %.
    # 48 workers of 8 instances, each missed once in a thousand times: 384 x ln(384 x 1,000) = 4,938.
    assert out[2:15] == [
        "number-0  ml.m5.12xlarge",
        "  Instances  8 at first, then 2 to 16 as load changes; 8 at peak",
        "  Routing    LEAST_OUTSTANDING_REQUESTS",
        "  Scaling    7,800 invocations per instance and minute, 65 % of its limit",
        "  Alarms     ModelLatency p99 160 ms; OverheadLatency Average 40 ms; 5 others",
        "  Warm-up    4,938 requests after each deployment, sent by the stack itself",
        "  Cost       not known: low-latency prices, or --price ml.m5.12xlarge=USD",
        "  Assumed    20 % of the target is overhead; instances spread evenly; no zone",
        "             fails while 2 to 7 instances serve: of 3, 1 would remain, at up to",
        "             195 % of the limit; no deployment while load rises and fewer than 3",
        "             instances serve; a new instance takes traffic 5 minutes after",
        "             scaling decides; the routing suits the model (AWS: responses up to",
        "             hundreds of milliseconds may benefit more from RANDOM)",
    ]
    decision = "  Zone hops, caller to     0 to 1 hops"
    assert decision not in out
    assert decision in lines("-v")


def test_a_price_makes_the_cost(lines: Run) -> None:
    out = lines("--price", "ml.m5.12xlarge=2.5")
    assert "  Cost       5.00 at least, 20.00 at first, 40.00 at most (US dollars per hour)" in out


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"throughput": None}, "  Instances  2, as nothing scales"),
        ({"throughput": None}, "  Scaling    none: no throughput is measured"),
        ({"scaling": {"enabled": False}}, "  Scaling    off, as you chose"),
        (
            {"scaling": {"metric": "concurrency", "concurrency_target": 4}},
            "  Scaling    4 requests in flight per instance",
        ),
        (
            {"instances": {"min": 8, "max": 8}},
            "  Scaling    none: minimum and maximum are the same",
        ),
        ({"routing": "random"}, "  Routing    RANDOM (your choice)"),
        (
            {"warm_up": {"payload": {"text": "hello"}, "requests": 20}},
            "  Warm-up    20 requests after each deployment, sent by the stack itself",
        ),
        (
            {"alarms": {"model_latency": {"p99": "150ms"}}},
            "  Alarms     ModelLatency p99 150 ms; OverheadLatency Average 40 ms; 5 others",
        ),
        (
            {"instances": {"min": 8}, "routing": "least_outstanding_requests"},
            "  Assumed    20 % of the target is overhead; instances spread evenly",
        ),
    ],
)
def test_the_lines_follow_the_settings(lines: Run, changes: dict[str, Any], line: str) -> None:
    assert line in lines(**changes)


@pytest.mark.parametrize(
    "warm_up", [None, {"payload": {"text": "hello"}, "requests": 0}], ids=["none", "no requests"]
)
def test_without_a_warm_up_nothing_is_said_of_it(lines: Run, warm_up: dict[str, Any]) -> None:
    assert not [line for line in lines(warm_up=warm_up) if "Warm-up" in line]


def test_of_several_variants_the_endpoint_s_warm_up_is_told_once(lines: Run) -> None:
    out = lines(variants={"second": {"weight": 1}}, scaling={"enabled": False})
    assert len([line for line in out if "Warm-up" in line]) == 1


def test_a_name_that_is_not_stated_is_said_to_follow(lines: Run) -> None:
    """A line, not a warning: in development nothing is wrong with it."""
    said = "  Name       follows stack and key: in production state endpoint_name"
    assert said not in lines()
    unnamed = parse_settings(SHIPPED.read_text(encoding="utf-8").replace("endpoint_name:", "#"))
    explained = explain_variants(unnamed, "sentiment")["sentiment"]
    assert said.split(maxsplit=1)[1] == explained.summary[-1].text
    assert not [text for text in explained.warnings if "stack and key" in text]


def test_stated_thresholds_are_what_the_decisions_show() -> None:
    text = SHIPPED.read_text(encoding="utf-8").replace(
        "    latency:", "    alarms: {model_latency: {p90: 90ms}}\n    latency:"
    )
    plan = explain_variants(parse_settings(text), "sentiment")["sentiment"]
    alarms = {each.name: (each.value, each.overridden) for each in plan if "metric" in each.inputs}
    assert alarms == {
        "alarm_model_latency_p90": (90.0, True),
        "alarm_overhead_latency_average": (40.0, False),
    }


def test_a_warning_of_all_endpoints_stands_once(lines: Run) -> None:
    out = lines(copies=3)
    assert len([line for line in out if "Instances  8 at first" in line]) == 3
    assert len([line for line in out if "the alarms notify nobody" in line]) == 1
    assert "All endpoints" in out


@pytest.mark.parametrize(
    "path",
    [ROOT / "endpoint.yaml", *sorted((ROOT / "examples").glob("*.yaml"))],
    ids=lambda path: path.name,
)
def test_settings_that_ship_warn_of_nothing(path: Path) -> None:
    settings = load_settings(path)
    warnings = [
        warning
        for key in settings.endpoints
        for warning in explain_variants(settings, key)[key].warnings
    ]
    assert warnings == [], "change the example, or do not warn where the plan is sound"
