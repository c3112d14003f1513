"""``low-latency plan NEW --against OLD``: what a reviewer reads, and what a pipeline exits with."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli import main
from low_latency_endpoint.report.markdown import MOST_CHARACTERS

SHIPPED = Path(__file__).parents[1] / "sentiment.yaml"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def against(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Compare the shipped settings, changed, with those that ship (or with other ones)."""

    def run(
        *options: str, before: dict[str, Any] | None = None, columns: int = 80, **changes: Any
    ) -> tuple[int, str, str]:
        old, new = (values_with(each) for each in (before or {}, {**(before or {}), **changes}))
        for name, values in (("old.yaml", old), ("new.yaml", new)):
            (tmp_path / name).write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(
            sys,
            "argv",
            ["low-latency", "plan", "--settings", "new.yaml", "--against", "old.yaml", *options],
        )
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def values_with(changes: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    for name, value in changes.items():
        at = (
            values if name in ("network", "endpoints", "tags") else values["endpoints"]["sentiment"]
        )
        at[name] = value
    return values


def container(**changes: Any) -> list[dict[str, Any]]:
    (made,) = values_with({})["endpoints"]["sentiment"]["containers"]
    return [{**made, **changes}]


RISE = {"rise_tps_per_minute": 10}  # as it ships
NEW_MODEL = {"s3": "s3://my-bucket/second/model.tar.gz"}


def test_a_renamed_endpoint_with_another_model_is_a_replacement(against: Run) -> None:
    code, out, _ = against(endpoint_name="mood", containers=container(data=NEW_MODEL))
    assert code == 0
    assert "2 differences: replaced" in out
    words = " ".join(out.split())
    assert "endpoint_name sentiment mood" in words
    assert (
        "mood comes up beside sentiment, then sentiment is deleted; whoever invokes it by that "
        "name is served until then, and fails from then on" in words
    )
    assert "s3://my-bucket/second/model.tar.gz" in out
    data = json.loads(against("--json", endpoint_name="mood")[1])
    assert (data["effect"], data["endpoints"]["sentiment"]["effect"]) == ("replaced", "replaced")
    assert [each["setting"] for each in data["differences"]] == [
        "endpoints.sentiment.endpoint_name"
    ]


def test_a_deployment_says_how_long_how_many_and_what_ends_it(against: Run) -> None:
    # New instances take five minutes, and each batch is watched for two: two batches of one for a
    # fleet of two, nine of one for a fleet of nine, if 1.8 is rounded down. 16 instances and a batch
    # of four (20 % of 16, rounded up); 20 % of 1,000 a second for two minutes. In 69
    # minutes a rise of 10 brings 690, for which 10 instances have 70 each; 1,000 / 180, so six, hold
    # the peak. The alarms on p99 and on errors.
    deployment = {"deployment": {"rolling": {"batch_percent": 20, "wait": "2m"}}}
    _, out, _ = against(before=deployment, containers=container(data=NEW_MODEL))
    words = " ".join(out.split())
    assert "1 difference: deployment" in words
    assert (
        "batches of 20 %, 2m each: about 14 to 63 minutes: 2 to 9 batches (AWS does not say how it "
        "rounds them), each with 5 minutes to start and 2 minutes to be watched; about 24,000 "
        "requests at the peak judge the first 20 % of a new version; nothing scales meanwhile: "
        "begin with 6 instances or more while load rises; up to 20 instances run; 2 alarms roll it "
        "back" in words
    )


def test_one_alarm_is_one(against: Run) -> None:
    """A language model has no whole call to watch: its errors roll a deployment back."""
    chat = {
        "latency": {"ttft_p95": "500ms", "itl_p95": "50ms"},
        "tokens": {"input": 512, "output": 128},
        "instance_type": "ml.g6.xlarge",
    }
    _, out, _ = against(before=chat, containers=container(data=NEW_MODEL))
    assert "instances run; one alarm rolls it back" in " ".join(out.split())


def said_of_stack(data: dict[str, Any]) -> str:
    return "\n".join(row["what"] for row in data["resources"])


def test_the_values_that_change_are_said(against: Run) -> None:
    scaling = {"scale_out_cooldown": "2m"}
    throughput = {**RISE, "peak_tps": 2000, "tps_per_instance": 200, "safety_factor": 0.65}
    data = json.loads(against("--json", scaling=scaling, throughput=throughput)[1])
    names = [difference["setting"].rpartition(".")[2] for difference in data["differences"]]
    assert names == ["peak_tps", "scale_out_cooldown"]
    # 2000 / (200 x 0.65) = 15.4 instances; twice 16, as the half in a lost zone still counts
    words = said_of_stack(data)
    assert "InitialInstanceCount 8 -> 16" in words
    assert "MaxCapacity 16 -> 32" in words
    assert "ScaleOutCooldown 60 -> 120" in words


def test_two_settings_that_together_change_nothing_of_the_fleet(against: Run) -> None:
    """Eight instances, as before, of which each holds twice as much."""
    throughput = {**RISE, "peak_tps": 2000, "tps_per_instance": 400, "safety_factor": 0.65}
    data = json.loads(against("--json", throughput=throughput)[1])
    assert data["effect"] == "in place"
    assert "TargetValue 7800 -> 15600" in said_of_stack(data)


def test_two_settings_that_only_together_start_a_deployment(against: Run) -> None:
    # 1040 / (200 x 0.65) = 8.0 and 1000 / (200 x 0.63) = 7.9: eight; together 8.3, which is nine.
    peak, factor = (
        {**RISE, "peak_tps": tps, "tps_per_instance": 200, "safety_factor": safety}
        for tps, safety in ((1040, 0.65), (1000, 0.63))
    )
    for throughput in (peak, factor):
        data = json.loads(against("--json", throughput=throughput)[1])
        assert data["effect"] in ("nothing", "in place")
    data = json.loads(against("--json", throughput={**peak, "safety_factor": 0.63})[1])
    assert data["endpoints"]["sentiment"]["effect"] == "deployment"
    assert "InitialInstanceCount 8 -> 9" in said_of_stack(data)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instance_type": "ml.m5.24xlarge"}, "UpdateEndpoint refuses to change the instance type"),
        ({"network": {"subnet_prefix_length": 23}}, "10.0.0.0/23 of use1-az1 overlaps 10.0.0.0/24"),
        ({"endpoint_name": "Sentiment"}, "SageMaker refuses a second endpoint Sentiment"),
    ],
)
def test_what_is_refused_says_why(against: Run, changes: dict[str, Any], words: str) -> None:
    _, out, _ = against(**changes)
    assert "1 difference: refused" in out
    assert words in " ".join(out.split())


def test_warnings_gained_and_lost(against: Run) -> None:
    topic = values_with({})["endpoints"]["sentiment"]["throughput"] | {"safety_factor": 0.45}
    data = json.loads(against("--json", throughput=topic, latency={"p99": "5ms"})[1])
    warnings = {
        name: [each["warning"] for each in found] for name, found in data["warnings"].items()
    }
    # At 0.45 twelve instances serve the peak, and six hold 1,200 TPS; one of two gets 90 %. 5 ms leave little to the model.
    assert [text for text in warnings["lost"] if "if a zone fails" in text]
    assert [text for text in warnings["gained"] if "5 ms" in text]


def test_the_cost_before_and_after(against: Run) -> None:
    # 2, 8, 16 and 32 instances at 2 dollars and two interface endpoints at 1 cent; then 3 at least.
    prices = ("--price", "ml.m5.12xlarge=2", "--price", "interface_endpoint=0.01")
    _, out, _ = against(*prices, instances={"min": 3})
    assert (
        "US dollars per hour: at least 4.02 -> 6.02, at first 16.02, at most 32.02, in an update "
        "64.02" in " ".join(out.split())
    )
    _, out, _ = against(instances={"min": 3})
    assert "instances each hour: at least 2 -> 3, at first 8" in " ".join(out.split())


def test_the_exit_code_is_that_of_terraform(against: Run) -> None:
    assert against("--detailed-exitcode")[0] == 0
    assert against("--detailed-exitcode", volume_size_gib=64)[0] == 2
    assert against(volume_size_gib=64)[0] == 0
    code, out, err = against("--detailed-exitcode", volume_size_gib=0)
    assert (code, out) == (1, "")
    assert "volume_size_gib" in err
    code, _, err = against("--detailed-exitcode", "--json", "--markdown")
    assert code == 1
    assert "not both" in err


def test_it_keeps_to_80_columns(against: Run) -> None:
    second = values_with({})["endpoints"]["sentiment"] | {"endpoint_name": "second"}
    for changes in (
        {"endpoint_name": "mood", "containers": container(data=NEW_MODEL)},
        {"throughput": {"peak_tps": 9000, "tps_per_instance": 200}, "tags": {"team": "nlp"}},
        {"endpoints": {"second": second}},
    ):
        _, out, _ = against(**changes)
        assert max(map(len, out.splitlines())) <= 80
        assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_a_secret_is_not_shown(against: Run) -> None:
    _, out, _ = against(containers=container(environment={"API_TOKEN": "a1b2c3d4e5f6g7h8i9j0"}))
    assert "containers[0].environment.API_TOKEN" in out
    assert "a1b2c3" not in out


def test_what_a_comment_holds_is_no_markup(against: Run) -> None:
    evil = "a|b `c` @nobody <img src=x> *d* #1"
    _, out, _ = against("--markdown", containers=container(environment={"NOTE": evil}))
    (row,) = [line for line in out.splitlines() if "environment.NOTE" in line]
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == 5  # three, and what is before the first and after the last
    assert "<img" not in row
    assert "@nobody" not in row
    assert "`c`" not in row


def test_a_comment_is_the_same_each_time_and_no_longer_than_github_takes(against: Run) -> None:
    few = {"HF_TASK": "fill-mask"}
    first, second = (
        against("--markdown", containers=container(environment=few))[1] for _ in range(2)
    )
    assert first == second
    assert "Cut to" not in first
    many = {f"NAME_{number}": "x" * 300 for number in range(90)}
    out = against(
        "--markdown",
        endpoints={
            f"endpoint-{number}": values_with({})["endpoints"]["sentiment"]
            | {"endpoint_name": f"e{number}", "containers": container(environment=many)}
            for number in range(3)
        },
        before={
            "endpoints": {
                f"endpoint-{number}": values_with({})["endpoints"]["sentiment"]
                | {"endpoint_name": f"e{number}"}
                for number in range(3)
            }
        },
    )[1]
    assert len(out) <= MOST_CHARACTERS
    assert "lines are missing" in out
    assert out.count("<details") == out.count("</details>")
