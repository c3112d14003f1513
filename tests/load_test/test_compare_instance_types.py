"""Load tests on several instance types: what a million requests cost, and what is on the frontier."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.compare.instance_types import compare_instance_types
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.result_file import LoadTestReport
from low_latency_endpoint.load_test.search.run_plans import limit_plan
from low_latency_endpoint.load_test.search.running import run
from low_latency_endpoint.load_test.search.search_plan import SearchPlan
from low_latency_endpoint.plan.prices import your_price

from .fake_account import FLEET, GOAL
from .fake_generator import FakeGenerator

Step = tuple[float, float, str]  # answered a second, p99 in ms, outcome


def result(
    folder: Path, kind: str, steps: list[Step], /, *, instances: int = 1, **more: Any
) -> Path:
    """A result file with what is read of one."""
    content = {
        "schema": "low-latency-endpoint/load-test-result/1",
        "source": f"load test on {kind}",
        "instances": instances,
        "region": "us-east-1",
        "payload": "file body.json",
        "fleet": {"instance_type": kind},
        "latency_target": {"targets_ms": {"p99": 200.0}},
        "limit": {"tps_per_instance": 1.0, "lower_bound": False},
        "steps": [
            {"purpose": "alone", "rate": 3.0, "judgement": {"outcome": "held"}},
            *(
                {
                    "purpose": "rise",
                    "rate": rate,
                    "judgement": {
                        "outcome": outcome,
                        "statistics": {"p99": {"ms": p99, "low_ms": p99 - 5, "high_ms": p99 + 5}},
                    },
                }
                for rate, p99, outcome in steps
            ),
        ],
        **more,
    }
    path = folder / f"{kind}{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


PRICES = {"ml.g5.xlarge": your_price(1.44), "ml.c5.xlarge": your_price(0.36)}
G5: list[Step] = [(50, 20, "held"), (100, 40, "held"), (200, 150, "held"), (400, 900, "broken")]
C5: list[Step] = [(10, 80, "held"), (20, 180, "held"), (40, 300, "broken")]


def test_a_million_requests_cost_an_hour_of_the_instances_over_what_they_answer(
    tmp_path: Path,
) -> None:
    """1.44 an hour at 50 a second: 1.44 / 180,000 x 1,000,000 = 8; at 200: 2.

    Two instances at 0.36 answer 20 a second, 10 each: 0.36 / 36,000 x 1,000,000 = 10; 20 each: 5.
    """
    doubled = [(2 * rate, p99, outcome) for rate, p99, outcome in C5]
    found = compare_instance_types(
        [
            result(tmp_path, "ml.g5.xlarge", G5),
            result(tmp_path, "ml.c5.xlarge", doubled, instances=2),
        ],
        PRICES,
    )
    g5, c5 = found.types
    assert [each.usd_per_million for each in g5.points] == [8.0, 4.0, 2.0, 1.0]
    assert [each.usd_per_million for each in c5.points] == [10.0, 5.0, 2.5]
    assert [(each.tps, each.limit) for each in c5.points] == [(10, False), (20, True), (40, False)]


def test_on_the_frontier_is_what_nothing_beats_in_both_and_what_held(tmp_path: Path) -> None:
    """By cost: g5 2 (150 ms), 4 (40), 8 (20); c5 5 (180) and 10 (80) are dearer and slower.

    g5's 1.00 for a million at 400 a second broke the target.
    """
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.c5.xlarge", C5)]
    found = compare_instance_types(files, PRICES)
    assert [(each.usd_per_million, each.milliseconds) for each in found.front] == [
        (2.0, 150),
        (4.0, 40),
        (8.0, 20),
    ]
    assert found.sentence == (
        "p99 within 200 ms is cheapest on ml.g5.xlarge: 2.00 US dollars for a million requests. "
        "Beaten in both at every rate: ml.c5.xlarge."
    )
    # At a tenth of its price c5 is the cheapest, and g5 the quicker one.
    cheap = compare_instance_types(files, {**PRICES, "ml.c5.xlarge": your_price(0.036)})
    assert [each.usd_per_million for each in cheap.front] == [0.5, 1.0, 4.0, 8.0]
    assert "ml.g5.xlarge is quicker, 20 ms for 8.00." in cheap.sentence
    rows = [[str(cell) for cell in row] for row in cheap.table().rows]
    assert [row[0] + " " + row[-1] for row in rows] == [
        "ml.c5.xlarge limit, frontier",
        "ml.c5.xlarge frontier",
        "ml.g5.xlarge limit",
        "ml.g5.xlarge frontier",
        "ml.g5.xlarge frontier",
    ]


def test_the_chart_has_a_line_for_each_type_and_the_frontier(tmp_path: Path) -> None:
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.c5.xlarge", C5)]
    (panel,) = compare_instance_types(files, PRICES).chart().panels
    assert [line.name for line in panel.lines] == ["ml.g5.xlarge", "ml.c5.xlarge", "frontier"]
    assert list(panel.lines[0].marks) == ["●", "●", "●", "✕"]
    assert list(panel.lines[2].x) == [2.0, 4.0, 8.0]
    assert panel.limits == [("target 200 ms", 200.0)]


def test_steps_that_the_generator_limited_count_for_nothing(tmp_path: Path) -> None:
    bound = [*C5, (1000.0, 10.0, "client-bound")]
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.c5.xlarge", bound)]
    assert len(compare_instance_types(files, PRICES).types[1].points) == 3


def test_a_price_that_the_load_test_was_told_counts_unless_another_is_given(tmp_path: Path) -> None:
    told = {"price": {"usd": 0.72, "origin": "yours"}}
    files = [
        result(tmp_path, "ml.g5.xlarge", G5, cost=told),
        result(tmp_path, "ml.c5.xlarge", C5, cost=told),
    ]
    g5, c5 = compare_instance_types(files, {"ml.g5.xlarge": PRICES["ml.g5.xlarge"]}).types
    assert (g5.price.usd, c5.price.usd) == (1.44, 0.72)
    assert c5.price.origin == "yours, in the result file"


def test_two_load_tests_of_one_type_keep_their_names(tmp_path: Path) -> None:
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.g5.xlarge", C5)]
    names = [each.name for each in compare_instance_types(files, PRICES).types]
    assert names == ["ml.g5.xlarge (ml.g5.xlarge0)", "ml.g5.xlarge (ml.g5.xlarge1)"]


@pytest.mark.parametrize(
    ("other", "code", "said"),
    [
        ({"latency_target": {"targets_ms": {"p99": 100.0}}}, "LLT160", "p99 100 ms"),
        ({"latency_target": {}}, "LLT160", "none"),
        ({"fleet": {"instance_type": "ml.g6.xlarge"}}, "LLT161", "ml.g6.xlarge"),
        ({"fleet": {}}, "LLT162", "no instance type"),
        ({"instances": None}, "LLT162", "no number of instances"),
        ({"steps": []}, "LLT162", "no step with p99"),
        ({"limit": {"problem": "interrupted"}}, "LLT114", "interrupted"),
        ({"schema": "another"}, "LLT113", "another"),
    ],
)
def test_what_cannot_be_compared_is_named(
    tmp_path: Path, other: dict[str, Any], code: str, said: str
) -> None:
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.c5.xlarge", C5, **other)]
    with pytest.raises(ConfigurationError, match=code) as refused:
        compare_instance_types(files, PRICES)
    assert said in str(refused.value)
    assert files[1].name in str(refused.value)


def test_the_command(tmp_path: Path) -> None:
    files = [result(tmp_path, "ml.g5.xlarge", G5), result(tmp_path, "ml.c5.xlarge", C5)]
    page = tmp_path / "types.html"
    given = ["compare-instance-types", *map(str, files), "--price", "ml.g5.xlarge=1.44"]
    refused = CliRunner().invoke(app, given)
    assert isinstance(refused.exception, ConfigurationError)
    assert "LLT161" in str(refused.exception)
    given += ["--price", "ml.c5.xlarge=0.36"]
    done = CliRunner().invoke(app, [*given, "--html", str(page)], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert "p99 within 200 ms is cheapest on ml.g5.xlarge" in done.output
    assert max(map(len, done.output.splitlines())) <= 120
    assert "frontier: ml.g5.xlarge" in page.read_text(encoding="utf-8")
    data = json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)
    assert [point["frontier"] for each in data["types"] for point in each["points"]] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    broken = result(tmp_path, "ml.c5.xlarge", [(10, 900, "broken")])
    slow = result(tmp_path, "ml.g5.xlarge", [(10, 900, "broken")])
    none = CliRunner().invoke(app, ["compare-instance-types", str(broken), str(slow), *given[3:]])
    assert none.exit_code == 1
    assert "None of them held p99 within 200 ms." in none.output


def test_files_as_the_load_test_writes_them(tmp_path: Path) -> None:
    """A formula: 4 workers of 20 ms and of 40 ms hold 200 and 100 a second; at the limit the slower
    one, for a quarter of the price, costs half as much."""
    files = []
    for kind, seconds in (("ml.g5.xlarge", 0.02), ("ml.c5.xlarge", 0.04)):
        done = run(
            limit_plan(SearchPlan(GOAL, 20, instances=1, poisson=False)),
            FakeGenerator(service=seconds, queue_limit=20),
        )
        fleet = replace(FLEET, instance_type=kind)
        path = tmp_path / f"{kind}.json"
        path.write_text(
            LoadTestReport(Target("e", "us-east-1"), done, fleet).to_json(), encoding="utf-8"
        )
        files.append(path)
    found = compare_instance_types(files, PRICES)
    fast, slow = (next(point for point in each.points if point.limit) for each in found.types)
    assert fast.usd_per_million == pytest.approx(1.44 / (200 * 3600) * 1e6, rel=0.06)
    assert slow.usd_per_million == pytest.approx(0.36 / (100 * 3600) * 1e6, rel=0.06)
    assert found.front[0].instance_type == "ml.c5.xlarge"
