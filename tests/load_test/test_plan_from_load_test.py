"""``low-latency plan --from-load-test``: the measured throughput in the plan and in the file."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.errors import LowLatencyEndpointError
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from low_latency_endpoint.load_test.search.settings_file import adopt_limit
from low_latency_endpoint.settings import load_settings

from .fake_account import GOAL, report_of

SHIPPED = (Path(__file__).resolve().parents[1] / "sentiment.yaml").read_text("utf-8")
MEASURED = 187.0
CHANGED = "      tps_per_instance: 200\n"
NOW = "      tps_per_instance: 187\n"

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run ``plan``, its output piped."""

    def run_plan(settings: Path, *arguments: object) -> tuple[int, str, str]:
        command = ["low-latency", "plan", "--settings", str(settings)]
        monkeypatch.setattr("sys.argv", [*command, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return run_plan


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The settings file that ships, to be written to."""
    file = tmp_path / "endpoint.yaml"
    file.write_text(SHIPPED, "utf-8")
    return file


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result file with a limit of 187 requests a second and instance."""
    return _result(tmp_path)


def _result(folder: Path, endpoint: str = "sentiment", **changes: Any) -> Path:
    """A real result file whose limit was found by a formula, then changed as the test wants it."""
    report = report_of(limit_plan(SearchPlan(GOAL, 4, instances=1)))
    content = replace(report, target=Target(endpoint, "us-east-1")).to_dict()
    found = {"tps_per_instance": MEASURED, "confidence": 0.95} | changes.pop("limit", {})
    held = {"low": found["tps_per_instance"], "high": None}
    content["limit"] |= held | {"assured": None} | found
    content["rate"] = held["low"]
    file = folder / "result.json"
    file.write_text(json.dumps({**content, **changes}), "utf-8")
    return file


def test_nothing_is_written_unless_it_is_asked_for(cli: Cli, settings: Path, result: Path) -> None:
    code, out, err = cli(settings, "--from-load-test", result)
    assert code == 0
    assert settings.read_text("utf-8") == SHIPPED
    assert f"-{CHANGED[:-1].strip()}" in out.replace("-      ", "-")
    assert f"+{NOW}" in out
    assert "load test of sentiment on ml.m5.12xlarge" in out
    assert "as it was; --write changes it" in err


def test_written_with_every_comment(cli: Cli, settings: Path, result: Path) -> None:
    code, _, err = cli(settings, "--from-load-test", result, "--write")
    assert code == 0
    assert f"wrote {settings}" in err
    assert CHANGED in SHIPPED
    assert settings.read_text("utf-8") == SHIPPED.replace(CHANGED, NOW)
    assert load_settings(settings).endpoints["sentiment"].throughput.tps_per_instance == MEASURED
    _, out, err = cli(settings, "--from-load-test", result, "--write")
    assert "says so already" in out
    assert "wrote" not in err


def test_instances_and_scaling_target_follow(cli: Cli, settings: Path, result: Path) -> None:
    _, out, _ = cli(settings, "--from-load-test", result, "--json")
    content = json.loads(out)
    decisions = {each["name"]: each for each in content["endpoints"]["sentiment"]["decisions"]}
    assert decisions["instances_at_peak"]["value"] == math.ceil(1000 / (MEASURED * 0.65)) == 9
    assert decisions["scaling_target"]["value"] == pytest.approx(MEASURED * 0.65 * 60)
    for name in ("instances_at_peak", "scaling_target"):
        assert "measured: load test of sentiment on ml.m5.12xlarge" in decisions[name]["note"]
    assert "measured: " not in decisions["warm_up_requests"]["note"]
    taken = content["from_load_test"]
    assert (taken["endpoint"], taken["tps_per_instance"], taken["written"]) == (
        "sentiment",
        MEASURED,
        False,
    )
    assert {each["decision"] for each in taken["changes"]} >= {
        "instances_at_peak",
        "scaling_target",
    }


def test_stated_numbers_of_instances_are_raised_with_it(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    content = yaml.safe_load(SHIPPED)
    content["endpoints"]["sentiment"]["instances"] = {"min": 2, "initial": 8, "max": 10}
    settings.write_text(yaml.safe_dump(content), "utf-8")
    slow = _result(tmp_path, limit={"tps_per_instance": 120.0})
    code, out, _ = cli(settings, "--from-load-test", slow)
    assert code == 0
    for line in ("instances.initial: 8 to 13", "instances.max: 10 to 13", "+      max: 13"):
        assert line in out
    assert yaml.safe_load(settings.read_text("utf-8")) == content, "shown, and not written"
    cli(settings, "--from-load-test", slow, "--write")
    assert yaml.safe_load(settings.read_text("utf-8"))["endpoints"]["sentiment"]["instances"] == {
        "min": 2,
        "initial": 13,
        "max": 13,
    }
    _, out, _ = cli(settings, "--from-load-test", _result(tmp_path), "--json")
    assert json.loads(out)["from_load_test"]["raised"] == [], "never lowered"


def test_markdown_and_against(cli: Cli, settings: Path, result: Path, tmp_path: Path) -> None:
    _, out, _ = cli(settings, "--from-load-test", result, "--markdown")
    assert "**sentiment ml.m5.12xlarge**" in out
    assert out.count("easured: load test of sentiment") == 3
    other = tmp_path / "other.yaml"
    other.write_text(SHIPPED, "utf-8")
    _, out, _ = cli(settings, "--from-load-test", result, "--against", other, "--json")
    assert {each["decision"] for each in json.loads(out)["changes"]} >= {"scaling_target"}


def _said(cli: Cli, settings: Path, *arguments: object) -> tuple[list[str], str]:
    """The warnings of the endpoint's plan, and the caution before it."""
    _, out, _ = cli(settings, "--from-load-test", *arguments, "--json")
    content = json.loads(out)
    key = content["from_load_test"]["endpoint"]
    return content["endpoints"][key]["warnings"], content["from_load_test"]["caution"]


def test_another_instance_type_is_said_first(cli: Cli, settings: Path, tmp_path: Path) -> None:
    settings.write_text(SHIPPED.replace("ml.m5.12xlarge", "ml.m5.24xlarge"), "utf-8")
    unsure = {"confidence": None, "assured": ASSURED}
    result = _result(tmp_path, limit=unsure, latency_target=LatencyGoal({"p95": 0.2}).to_dict())
    warnings, caution = _said(cli, settings, result)
    said = "the load test ran on ml.m5.12xlarge, the settings have ml.m5.24xlarge"
    assert warnings[0].startswith(said)
    assert caution.startswith(said)
    goal = "the load test's goal was p95 within 200 ms, at most 0.1 % errors"
    assert warnings[1].startswith(goal)
    assert warnings[2].startswith("the limit of 187 requests per second has no confidence")
    _, out, _ = cli(settings, "--from-load-test", result)
    first, second, third = " ".join(out.split()).split("Careful: sentiment: ")[1:]
    assert first.startswith(said)
    assert second.startswith(goal)
    assert third.startswith("the limit of 187")


def test_a_goal_that_does_not_show_the_target_is_said_first_and_written_nevertheless(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    """The settings' target is p99 within 200 ms, and their alarm on errors stands at 1 %."""
    target = "and the settings' target is p99 within 200 ms: this rate may miss it"
    errors = "the load test allowed 5 % errors, and the alarm on server errors stands at 1 %"
    goals = (
        (LatencyGoal({"p99": 0.2}, 0.01), []),
        (LatencyGoal({"p99.9": 0.15, "p50": 3.0}), []),
        (LatencyGoal({"p95": 0.2}), [target]),
        (LatencyGoal({"p99": 2.0}, 0.05), [target, errors]),
        (LatencyGoal({"ttft-p99": 0.1}), [target]),
        (LatencyGoal({"p99": 0.2}, 0.05), [errors]),
    )
    for goal, expected in goals:
        settings.write_text(SHIPPED, "utf-8")
        result = _result(tmp_path, latency_target=goal.to_dict())
        warnings, caution = _said(cli, settings, result)
        cautions = [text for text in warnings if text in caution]
        assert cautions == warnings[: len(expected)]
        assert len(cautions) == len(expected)
        for text, part in zip(cautions, expected, strict=True):
            assert part in text
        code, out, _ = cli(settings, "--from-load-test", result, "--write")
        assert code == 0
        assert out.startswith("Careful: sentiment: ") is bool(expected)
        assert NOW in settings.read_text("utf-8")


def test_errors_are_allowed_up_to_what_an_objective_leaves(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    """An objective of 99.99 % sets the alarm at 14.4 times its budget of 0.0001."""
    alarms = "    alarms: {slow_requests: {threshold: 200ms, objective: 0.9999}}\n    warm_up:"
    settings.write_text(SHIPPED.replace("    warm_up:", alarms, 1), "utf-8")
    for allowed, warned in ((0.001, False), (0.00144, False), (0.0015, True)):
        goal = LatencyGoal({"p99": 0.2}, allowed).to_dict()
        _, caution = _said(cli, settings, _result(tmp_path, latency_target=goal))
        assert ("the alarm on server errors stands at 0.144 %" in caution) is warned


def test_a_result_without_its_goal_shows_no_target(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    warnings, caution = _said(cli, settings, _result(tmp_path, latency_target=None))
    assert warnings[0] == caution
    assert "does not say which latency it held its limit to" in caution


@pytest.mark.parametrize(
    ("name", "called", "warned"),
    [
        ("endpoint_name: toxicity", "sentiment", True),
        ("endpoint_name: toxicity", "toxicity", False),
        ("endpoint_name: toxicity", "other", False),
        ("", "sentiment", True),
        ("", "a-name-of-CloudFormation", False),
    ],
)
def test_a_limit_of_another_endpoint_is_said_first(
    cli: Cli, settings: Path, tmp_path: Path, name: str, called: str, warned: bool
) -> None:
    content = yaml.safe_load(SHIPPED)
    other = copy.deepcopy(content["endpoints"]["sentiment"])
    del other["endpoint_name"]
    content["endpoints"]["other"] = {**other, **(yaml.safe_load(name) or {})}
    settings.write_text(yaml.safe_dump(content), "utf-8")
    result = _result(tmp_path, called)
    warnings, caution = _said(cli, settings, result, "other")
    said = f"the load test called {called}, the settings' endpoint is "
    assert caution.startswith(said) is warned
    assert warnings[0].startswith(said) is warned


def _of_tokens(prompt: int, cached: int, answer: int) -> list[dict[str, Any]]:
    """Steps of 100 answers, each with so many tokens."""
    counts = {
        "prompt_tokens": 100 * prompt,
        "cached_tokens": 100 * cached,
        "output_tokens": 100 * answer,
    }
    alone = {"prompt_tokens": 10**9, "cached_tokens": 0, "output_tokens": 10**9}
    return [
        {"purpose": "alone", "completed": 1, "tokens": alone},
        {"purpose": "load", "completed": 100, "tokens": counts},
        {"purpose": "load", "completed": 100, "tokens": None},
    ]


@pytest.mark.parametrize(
    ("measured", "kinds"),
    [
        ((512, 256, 128), []),
        ((2000, 0, 900), []),  # longer ones: the limit is lower than the callers' would be
        ((410, 100, 103), []),  # 512 and 128 are 1.249 and 1.243 times as many
        ((409, 100, 102), ["prompts had 409", "answers had 102"]),  # 1.252, 1.255
        ((512, 308, 128), ["prompts without what was cached had 204"]),  # half of 512 planned
        ((0, 0, 50), ["answers had 50"]),  # a server that does not count prompts
        ((0, 0, 0), []),
    ],
)
def test_requests_with_fewer_tokens_than_the_callers_are_said_first(
    cli: Cli, settings: Path, tmp_path: Path, measured: tuple[int, int, int], kinds: list[str]
) -> None:
    tokens = "    tokens: {input: 512, output: 128, shared_prefix: 0.5}\n    warm_up:"
    settings.write_text(SHIPPED.replace("    warm_up:", tokens, 1), "utf-8")
    warnings, caution = _said(cli, settings, _result(tmp_path, steps=_of_tokens(*measured)))
    cautions = warnings[: len(kinds)]
    assert "; ".join(cautions) == caution
    for text, kind in zip(cautions, kinds, strict=True):
        assert text.startswith(f"the load test's {kind} tokens on average")


def test_a_limit_of_requests_at_equal_gaps_is_said_first(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    report = report_of(limit_plan(SearchPlan(GOAL, 4, instances=1, poisson=False)))
    warnings, caution = _said(cli, settings, _result(tmp_path, steps=report.to_dict()["steps"]))
    assert warnings[0] == caution
    assert "at equal gaps" in caution


def test_a_limit_of_another_magnitude_is_the_first_warning(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    for found, said in ((20, True), (20.1, False), (1999, False), (2000, True)):
        result = _result(tmp_path, limit={"tps_per_instance": found})
        _, out, _ = cli(settings, "--from-load-test", result, "--json")
        first = json.loads(out)["endpoints"]["sentiment"]["warnings"][0]
        assert first.startswith(f"the settings said 200 TPS per instance, and {found:,g}") is said


@pytest.mark.parametrize("own", ["", "tps_per_instance: 100"])
@pytest.mark.parametrize("called", ["primary", "challenger", ""])
def test_a_limit_taken_for_variants_that_were_not_called_names_them(
    cli: Cli, settings: Path, tmp_path: Path, own: str, called: str
) -> None:
    """Those whose plans change with it: not one that states a throughput of its own."""
    variants = f"    variants: {{challenger: {{{own}}}}}\n    warm_up:"
    settings.write_text(SHIPPED.replace("    warm_up:", variants, 1), "utf-8")
    _, out, _ = cli(settings, "--from-load-test", _result(tmp_path, variant=called))
    said = " ".join(out.split())
    taken = "its limit is taken for that of"
    if called == "primary":
        assert taken not in said
    elif called == "" and not own:
        options = "load-test with --variant primary and --variant challenger"
        assert f"{taken} primary and challenger: {options}" in said
    else:
        assert f"{taken} primary: load-test with --variant primary" in said


def test_a_limit_that_was_not_reached_is_refused_unless_it_is_accepted(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    bound = _result(tmp_path, limit={"lower_bound": True, "high": None})
    code, _, err = cli(settings, "--from-load-test", bound, "--write")
    assert (code, "LLT138" in err, "--accept-lower-bound" in err) == (2, True, True)
    assert settings.read_text("utf-8") == SHIPPED
    code, out, _ = cli(settings, "--from-load-test", bound, "--accept-lower-bound")
    assert code == 0
    assert "an instance may hold more than 187 requests per second" in " ".join(out.split())


ASSURED = {
    "tps_per_instance": 169.0,
    "concurrency_per_instance": None,
    "failures": 0.0003,
    "requests": 10_153,
    "when": "from 14:03:14 to 14:04:14 UTC",
}


def test_a_limit_without_a_confidence_is_said_first_and_the_lower_rate_is_taken(
    cli: Cli, settings: Path, tmp_path: Path
) -> None:
    unsure = _result(tmp_path, limit={"confidence": None, "assured": ASSURED})
    code, out, err = cli(settings, "--from-load-test", unsure, "--write")
    assert code == 0
    said = (
        "sentiment: the limit of 187 requests per second has no confidence; the plan takes 169, "
        "which held with 95% confidence from 14:03:14 to 14:04:14 UTC"
    )
    assert " ".join(out.split()).startswith(f"Careful: {said}")
    throughput = load_settings(settings).endpoints["sentiment"].throughput
    assert throughput.tps_per_instance == 169
    _, out, err = cli(settings, "--from-load-test", unsure, "--json")
    content = json.loads(out)
    assert said in err
    assert content["endpoints"]["sentiment"]["warnings"][0] in said
    assert content["from_load_test"]["caution"] in said
    assert content["from_load_test"]["tps_per_instance"] == 169
    _, out, _ = cli(settings, "--from-load-test", unsure, "--markdown")
    assert "has no confidence" in out.splitlines()[0]
    other = tmp_path / "other.yaml"
    other.write_text(SHIPPED, "utf-8")
    _, out, _ = cli(settings, "--from-load-test", unsure, "--against", other)
    assert " ".join(out.split()).startswith(f"Careful: {said}")
    _, _, err = cli(settings, "--from-load-test", unsure, "--against", other, "--json")
    assert said in err


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            {"assured": {**ASSURED, "failures": 0.0025, "requests": 1_200}},
            "whose latency held with 95% confidence from 14:03:14 to 14:04:14 UTC; none of 1,200 "
            "requests failed, which shows that at most 0.25 % do, not 0.1 %",
        ),
        (
            {"assured": ASSURED, "unsteady": "0.4% missed, and 18.8% missed"},
            "has no confidence: the endpoint did not answer alike at all times (0.4% missed, and "
            "18.8% missed); the plan takes 169",
        ),
    ],
)
def test_why_a_limit_has_no_confidence_is_said(
    cli: Cli, settings: Path, tmp_path: Path, limit: dict[str, Any], said: str
) -> None:
    unsure = _result(tmp_path, limit={"confidence": None, **limit})
    _, out, _ = cli(settings, "--from-load-test", unsure, "--json")
    assert said in json.loads(out)["endpoints"]["sentiment"]["warnings"][0]


@pytest.mark.parametrize("assured", [None, {**ASSURED, "tps_per_instance": None}])
@pytest.mark.parametrize("options", [(), ("--accept-lower-bound",)])
def test_a_limit_with_nothing_to_answer_for_is_refused(
    cli: Cli, settings: Path, tmp_path: Path, assured: Any, options: tuple[str, ...]
) -> None:
    unsure = _result(tmp_path, limit={"confidence": None, "assured": assured})
    code, _, err = cli(settings, "--from-load-test", unsure, "--write", *options)
    assert (code, "LLT180" in err, "--duration" in err) == (2, True, True)
    assert settings.read_text("utf-8") == SHIPPED


def test_a_limit_with_a_confidence_needs_no_caution(cli: Cli, settings: Path, result: Path) -> None:
    _, out, _ = cli(settings, "--from-load-test", result, "--json")
    content = json.loads(out)
    assert content["from_load_test"]["caution"] == ""
    assert not any("confidence" in text for text in content["endpoints"]["sentiment"]["warnings"])


def _without_throughput() -> str:
    lines = SHIPPED.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if line.strip() == "throughput:")
    return "".join(lines[:start] + lines[start + 5 :])


@pytest.mark.parametrize(("peak", "effect"), [(1000, "deployment"), (100, "not known")])
def test_it_says_what_deploying_it_does(
    cli: Cli, settings: Path, result: Path, peak: int, effect: str
) -> None:
    """A first throughput switches scaling on, and with it that updates keep the counts.

    Where the first number of instances stays 2, that is all that the endpoint's update changes:
    the configuration that serves already.
    """
    settings.write_text(_without_throughput(), "utf-8")
    asked = (settings, "--from-load-test", result, "--peak-tps", str(peak))
    _, out, _ = cli(*asked)
    assert f"Deploying it: {effect}: " in out
    said = " ".join(out.split())
    assert ("change it together with the configuration" in said) == (effect == "not known")
    _, out, _ = cli(*asked, "--json")
    assert json.loads(out)["from_load_test"]["deploying"]["effect"] == effect


def test_a_first_throughput_needs_its_peak(cli: Cli, settings: Path, result: Path) -> None:
    settings.write_text(_without_throughput(), "utf-8")
    code, _, err = cli(settings, "--from-load-test", result)
    assert code == 2
    assert "LLT163" in err
    assert "--peak-tps 500" in err
    code, _, _ = cli(settings, "--from-load-test", result, "--peak-tps", "500", "--write")
    assert code == 0
    written = yaml.safe_load(settings.read_text("utf-8"))["endpoints"]["sentiment"]["throughput"]
    assert written == {"peak_tps": 500, "tps_per_instance": 187}
    assert set(_without_throughput().splitlines()) <= set(settings.read_text("utf-8").splitlines())


def test_the_endpoint_is_found_by_its_name(settings: Path, tmp_path: Path) -> None:
    second = yaml.safe_load(SHIPPED)
    second["endpoints"]["other"] = copy.deepcopy(second["endpoints"]["sentiment"])
    second["endpoints"]["other"]["endpoint_name"] = "toxicity"
    settings.write_text(yaml.safe_dump(second), "utf-8")
    adopted = adopt_limit(settings, _result(tmp_path, "toxicity"))
    assert adopted.key == "other"
    assert adopted.before["sentiment"] == adopted.after["sentiment"]
    assert adopted.before["other"] != adopted.after["other"]
    chosen = adopt_limit(settings, _result(tmp_path, "elsewhere"), endpoint="sentiment")
    assert chosen.key == "sentiment"


@pytest.mark.parametrize(
    ("changes", "options", "code"),
    [
        ({"endpoint": "elsewhere"}, (), "LLE933"),
        ({"endpoint": "elsewhere"}, ("nobody",), "LLE933"),
        ({"limit": {"problem": "client-bound: result invalid"}}, (), "LLT114"),
        ({"limit": {"tps_per_instance": None}}, (), "LLT114"),
        ({"schema": "another"}, (), "LLT113"),
        ({}, ("--peak-tps", "-1"), "LLE606"),
    ],
)
def test_what_cannot_be_planned_with(
    cli: Cli,
    settings: Path,
    tmp_path: Path,
    changes: dict[str, Any],
    options: tuple[str, ...],
    code: str,
) -> None:
    exit_code, _, err = cli(
        settings, "--from-load-test", _result(tmp_path, **changes), "--write", *options
    )
    assert exit_code == 2
    assert code in err
    assert settings.read_text("utf-8") == SHIPPED


def test_options_that_belong_together(cli: Cli, settings: Path) -> None:
    for option in (("--write",), ("--peak-tps", "5"), ("--accept-lower-bound",)):
        code, _, err = cli(settings, *option)
        assert code == 2
        assert "--from-load-test" in err


def test_a_value_shared_by_an_anchor_is_not_touched(settings: Path, result: Path) -> None:
    settings.write_text(
        SHIPPED.replace("peak_tps: 1000 ", "peak_tps: &rate 1000 ").replace(
            "tps_per_instance: 200", "tps_per_instance: *rate"
        ),
        "utf-8",
    )
    before = settings.read_text("utf-8")
    with pytest.raises(LowLatencyEndpointError) as caught:
        adopt_limit(settings, result)
    assert getattr(caught.value, "code", "") == "LLE937"
    assert settings.read_text("utf-8") == before
