"""``low-latency check-pull-request``: what is compared with what, and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.review.verdict import FAIL_ON, limit_of

from .conftest import SHIPPED, Check, Checkout, Workflow, settings

LOAD_TEST = {
    "schema": "low-latency-endpoint/load-test-result/1",
    "source": "load test of sentiment on ml.m5.12xlarge, 2026-11-20",
    "instances": 1,
    "rate": 200.0,
    "concurrency": 10,
    "slope": 0.0,
    "service_time_ms": {"quantiles": {"0": 31, "0.5": 42, "0.99": 118, "1": 160}},
}
CHEAP = {"prices": {"ml.m5.12xlarge": 2, "interface_endpoint": 0.01}}
NEW_NAME = settings(endpoint_name="mood")


def found(check: Check, *arguments: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(check(*arguments, "--json").out)
    return data


def test_outside_of_a_workflow_the_files_as_they_are_count(
    check: Check, checkout: Checkout
) -> None:
    same = check("--base", "main")
    assert (same.code, same.err) == (0, "")
    assert ":white_check_mark: Nothing that is deployed changes" in same.out
    (checkout.folder / "endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")  # not committed
    other = check("--base", "main")
    assert other.code == 0  # a replacement is nothing that fails unless the team chose it
    assert other.out.splitlines()[1].startswith("### :x: replaced: sentiment: mood comes up beside")
    assert "`endpoint_name` | `sentiment` | `mood`" in other.out


def test_from_a_folder_below_files_are_named_from_there(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit({"live/endpoint.yaml": settings()})
    (checkout.folder / "live/endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")
    monkeypatch.chdir(checkout.folder / "live")
    assert [each["settings"] for each in found(check, "--base", "main")["files"]] == [
        "live/endpoint.yaml"
    ]


def test_main_may_have_gone_on(check: Check, checkout: Checkout) -> None:
    """What others have merged meanwhile is none of the branch's doing."""
    checkout.git("checkout", "-q", "-b", "larger")
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=64)})
    checkout.git("checkout", "-q", "main")
    checkout.commit({"endpoint.yaml": NEW_NAME})
    checkout.git("checkout", "-q", "larger")
    (file,) = found(check, "--base", "main")["files"]
    assert [each["setting"] for each in file["differences"]] == [
        "endpoints.sentiment.volume_size_gib"
    ]


@pytest.mark.parametrize(
    "name", ["pull_request", "pull_request_of_a_fork", "pull_request_target", "merge_group", "push"]
)
def test_the_event_says_what_to_compare_with(
    check: Check, checkout: Checkout, workflow: Workflow, name: str
) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": NEW_NAME})
    workflow(name, base, head)
    data = found(check)
    assert data["base"] == base
    assert data["files"][0]["effect"] == "replaced"


def test_a_merge_that_github_made_is_compared_with_its_first_parent(
    check: Check, checkout: Checkout, workflow: Workflow
) -> None:
    """The event's base is as old as the event; main went on, and GitHub merged into that."""
    old = checkout.git("rev-parse", "HEAD")
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=64)})
    base, head = checkout.pull_request({"README.md": "Nothing else"})
    workflow("pull_request", old, head)
    data = found(check)
    assert data["base"] == base != old
    assert data["files"][0]["effect"] == "nothing"


def test_a_shallow_checkout_fetches_the_base_alone(
    check: Check,
    checkout: Checkout,
    workflow: Workflow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As actions/checkout makes it: one commit, whose parents are named and not there."""
    base, head = checkout.pull_request({"endpoint.yaml": NEW_NAME})
    checkout.git("branch", "merged", "HEAD")
    checkout.git("config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub allows it
    shallow = Checkout(tmp_path / "shallow")
    checkout.git(
        *("clone", "-q", "--depth=1", "--branch=merged", f"file://{checkout.folder}"),
        str(shallow.folder),
    )
    monkeypatch.chdir(shallow.folder)
    workflow("pull_request", base, head)
    assert found(check)["base"] == base
    assert shallow.git("rev-list", "--all", "--count") == "1"  # no history came along


def test_files_of_both_revisions_that_the_settings_name(
    check: Check, checkout: Checkout, workflow: Workflow
) -> None:
    prices = (
        "# prices\nitem,region,usd,unit,published,version,read,source\n"
        "ml.m5.12xlarge,us-east-1,{},instance-hour,2026-09-20,1,2026-11-23,https://aws.amazon.com\n"
    )
    payload = {"payload": {"file": "payload.json", "content_type": "application/json"}}
    text = settings({"prices": {"file": "prices.csv"}}, warm_up=payload)
    checkout.commit(
        {"endpoint.yaml": text, "prices.csv": prices.format(2), "payload.json": '{"inputs": 1}'}
    )
    base, head = checkout.pull_request(
        {"prices.csv": prices.format(3), "payload.json": '{"inputs": 2}'}
    )
    workflow("pull_request", base, head)
    data = found(check, "--fail-on", "cost-increase")
    cost = data["files"][0]["cost"]
    # Two instances at least, and an interface endpoint in two zones at AWS's cent an hour.
    assert [cost[side]["at_least"] for side in ("before", "after")] == [4.02, 6.02]
    assert data["verdict"]["because"][0]["limit"] == "cost-increase"
    text = check().out
    assert "`payload.json` | `payload.json (other content)`" in text
    assert "/tmp" not in text.replace("&#", "")
    assert "low-latency-" not in text.replace("low-latency-endpoint:", "")


def test_a_file_that_is_new_and_one_that_is_deleted(check: Check, checkout: Checkout) -> None:
    checkout.commit({"live/old.yaml": settings(), "live/same.yaml": settings()})
    (checkout.folder / "live/old.yaml").unlink()
    (checkout.folder / "live/new.yaml").write_text(settings(CHEAP), encoding="utf-8")
    files = {
        each["settings"]: each for each in found(check, "--base", "main", "live/*.yaml")["files"]
    }
    assert {name: each["file"] for name, each in files.items()} == {
        "live/new.yaml": "new",
        "live/same.yaml": "in both",
        "live/old.yaml": "deleted",  # a pattern finds it in the base
    }
    answer = check("--base", "main", "live/*.yaml", "--fail-on", "deletion")
    assert answer.code == 1
    assert "### :x: deleted: `live/old.yaml` is deleted; its stack stays" in answer.out
    assert "The file is new: `LowLatencyEndpoint` with `sentiment` is made." in answer.out
    assert "at least 0.00 -&gt; 4.02" in answer.out
    answer = check("--base", "main", "live/new.yaml", "--fail-on", "new-warning")
    assert answer.code == 1  # all warnings of a new file are new


def test_a_file_that_never_was_is_a_mistake(check: Check, checkout: Checkout) -> None:
    answer = check("--base", "main", "no-such.yaml")
    assert (answer.code, "there is no such file" in answer.out) == (1, True)
    assert check("--base", "main", "none/*.yaml").code == 2


def test_mistakes_are_shown_with_their_lines(check: Check, checkout: Checkout) -> None:
    wrong = settings(volume_size_gib=0)
    line = 1 + wrong.splitlines().index("    volume_size_gib: 0")
    (checkout.folder / "endpoint.yaml").write_text(wrong, encoding="utf-8")
    answer = check("--base", "main")
    assert answer.code == 1
    assert ":no_entry: Mistakes in `endpoint.yaml`" in answer.out
    assert f"- endpoint.yaml:{line}: LLE" in answer.out
    assert check("--base", "main", "--fail-on", "refused").code == 0


def test_a_base_with_mistakes_leaves_nothing_to_compare(check: Check, checkout: Checkout) -> None:
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=0)})
    (checkout.folder / "endpoint.yaml").write_text(settings(), encoding="utf-8")
    answer = check("--base", "main")
    assert answer.code == 0
    assert "The former file has mistakes" in answer.out


FAILING: dict[str, tuple[str, str, str]] = {
    "error": (settings(), settings(volume_size_gib=0), "1 mistake"),
    "refused": (
        settings(),
        settings(instance_type="ml.m5.24xlarge"),
        "UpdateEndpoint refuses to change the instance type",
    ),
    "replacement": (settings(), NEW_NAME, "mood comes up beside sentiment"),
    "deletion": (
        settings(),
        settings(
            {"endpoints": {"other": {**SHIPPED["endpoints"]["sentiment"], "endpoint_name": "o"}}}
        ),
        "sentiment",
    ),
    "new-warning": (settings(), settings(latency={"p99": "5ms"}), "5 ms"),
    # 2, 8 and 16 instances at 2 dollars and two interface endpoints at one cent; then 3 at least
    "cost-increase": (
        settings(CHEAP),
        settings(CHEAP, instances={"min": 3}),
        "at least 4.02 -> 6.02 US dollars per hour",
    ),
}


@pytest.mark.parametrize("what", FAILING)
def test_the_team_chooses_what_fails(check: Check, checkout: Checkout, what: str) -> None:
    before, after, why = FAILING[what]
    checkout.commit({"endpoint.yaml": before})
    assert check("--base", "main", "--fail-on", what).code == 0
    (checkout.folder / "endpoint.yaml").write_text(after, encoding="utf-8")
    answer = check("--base", "main", "--fail-on", what)
    assert answer.code == 1
    assert f"**The check fails.** It fails on: `{what}`. Because of:" in answer.out
    verdict = found(check, "--base", "main", "--fail-on", what)["verdict"]
    assert {each["limit"] for each in verdict["because"]} == {what}
    assert why in verdict["because"][0]["what"]
    assert check("--base", "main", "--fail-on", "nothing").code == 0


def test_by_default_it_fails_on_what_cannot_be_deployed(check: Check, checkout: Checkout) -> None:
    for what in FAILING:
        before, after, _ = FAILING[what]
        checkout.commit({"endpoint.yaml": before})
        (checkout.folder / "endpoint.yaml").write_text(after, encoding="utf-8")
        assert check("--base", "main").code == int(what in ("error", "refused")), what


def test_a_percentage_that_is_not_reached(check: Check, checkout: Checkout) -> None:
    before, after, _ = FAILING["cost-increase"]
    checkout.commit({"endpoint.yaml": before})
    (checkout.folder / "endpoint.yaml").write_text(after, encoding="utf-8")
    # 6.02 is 49.75 % more than 4.02
    assert check("--base", "main", "--fail-on", "cost-increase=49").code == 1
    assert check("--base", "main", "--fail-on", "cost-increase=50").code == 0


def test_instances_without_a_price_may_cost_more(check: Check, checkout: Checkout) -> None:
    """A limit on what nobody knows is no pass."""
    (checkout.folder / "endpoint.yaml").write_text(settings(instances={"min": 3}), "utf-8")
    answer = check("--base", "main", "--fail-on", "cost-increase")
    assert (answer.code, "not known without prices of" in answer.out) == (1, True)


def test_p99_before_and_after_is_simulated_of_what_was_measured(
    check: Check, checkout: Checkout
) -> None:
    (checkout.folder / "result.json").write_text(json.dumps(LOAD_TEST), encoding="utf-8")
    load_test = ("--base", "main", "--from-load-test", "result.json")
    same = found(check, *load_test)["files"][0]["p99_ms"]["sentiment"]
    assert same["before"] == same["after"]  # the same chance
    # An instance that is picked at random has a queue while another one idles.
    other = settings(routing="random")
    (checkout.folder / "endpoint.yaml").write_text(other, encoding="utf-8")
    p99 = found(check, *load_test)["files"][0]["p99_ms"]["sentiment"]
    assert p99["before"] == same["before"]
    assert p99["after"]["mean"] > p99["before"]["mean"]
    answer = check(*load_test, "--fail-on", "p99-increase")
    assert answer.code == 1
    assert "| Endpoint | p99 of the model at the peak, before | after |" in answer.out
    assert check(*load_test, "--fail-on", "p99-increase=1000").code == 0
    assert check("--base", "main", "--fail-on", "p99-increase").code == 2  # nothing to know it by


def test_a_load_test_of_another_instance_type_tells_no_p99(
    check: Check, checkout: Checkout
) -> None:
    result = {**LOAD_TEST, "fleet": {"instance_type": "ml.m5.12xlarge"}}
    (checkout.folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    other = settings(instance_type="ml.m5.24xlarge")
    (checkout.folder / "endpoint.yaml").write_text(other, encoding="utf-8")
    load_test = ("--base", "main", "--from-load-test", "result.json")
    p99 = found(check, *load_test)["files"][0]["p99_ms"]["sentiment"]
    assert p99["before"]["mean"] > 0
    assert "the load test ran on ml.m5.12xlarge" in p99["after"]
    assert check(*load_test, "--fail-on", "p99-increase").code == 1


@pytest.mark.parametrize(
    "text", ["", "cheap", "refused=3", "cost-increase=", "cost-increase=-1", "p99-increase=nan"]
)
def test_what_cannot_be_chosen(text: str) -> None:
    with pytest.raises(ValueError, match=r"none of|percentage"):
        limit_of(text)


def test_the_help_names_every_choice(check: Check) -> None:
    out = "".join(check("--help").out.split())
    assert [each for each in FAIL_ON if each not in out] == []


def test_what_git_does_not_have_is_said(check: Check, checkout: Checkout) -> None:
    for arguments in ((), ("--base", "no-such"), ("--base", "--upload-pack=touch owned")):
        answer = check(*arguments)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("LLE980: ")
    assert not (checkout.folder / "owned").exists()


def test_outside_of_a_checkout(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert check().err.startswith("LLE980: ")
    monkeypatch.setenv("PATH", str(tmp_path))  # no Git
    assert check().err.startswith("LLE980: ")


def test_the_markdown_goes_into_a_file_too(
    check: Check, checkout: Checkout, tmp_path: Path
) -> None:
    out = tmp_path / "comment.md"
    assert out.write_text(check("--base", "main", "-o", str(out)).out) == out.stat().st_size
