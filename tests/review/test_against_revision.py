"""``low-latency plan --against REVISION``: what is compared with what, and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.change.verdict import FAIL_ON, limit_of

from .conftest import NEW_NAME, SHIPPED, Check, Checkout, settings

CHEAP = {"prices": {"ml.m5.12xlarge": 2, "interface_endpoint": 0.01}}


def named(stack: str, shared: dict[str, Any] | None = None) -> str:
    """The settings of a stack and an endpoint of that name."""
    return settings({"stack_name": stack, **(shared or {})}, endpoint_name=stack)


def found(check: Check, *arguments: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(check(*arguments, "--json").out)
    return data


def test_a_revision_alone_is_compared_with_the_files_as_they_are(
    check: Check, checkout: Checkout
) -> None:
    same = check("main")
    assert (same.code, same.err) == (0, "")
    assert "**:white_check_mark: Nothing that is deployed changes" in same.out
    (checkout.folder / "endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")  # not committed
    other = check("main")
    assert other.code == 0  # a replacement is nothing that fails unless the team chose it
    assert "**:x: replaced: sentiment: mood comes up beside" in other.out
    assert "endpoint&#95;name | sentiment | mood" in other.out


def test_from_a_folder_below_files_are_named_from_there(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit({"live/endpoint.yaml": settings()})
    (checkout.folder / "live/endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")
    monkeypatch.chdir(checkout.folder / "live")
    assert [each["settings"] for each in found(check, "main")["files"]] == ["live/endpoint.yaml"]


def test_main_may_have_gone_on(check: Check, checkout: Checkout) -> None:
    """What others have merged meanwhile is none of the branch's doing."""
    checkout.git("checkout", "-q", "-b", "larger")
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=64)})
    checkout.git("checkout", "-q", "main")
    checkout.commit({"endpoint.yaml": NEW_NAME})
    checkout.git("checkout", "-q", "larger")

    def settings_of(against: str) -> list[str]:
        (file,) = found(check, against)["files"]
        return [each["setting"] for each in file["differences"]]

    volume, name = (f"endpoints.sentiment.{each}" for each in ("volume_size_gib", "endpoint_name"))
    assert settings_of("main...HEAD") == settings_of("main...") == [volume]
    assert sorted(settings_of("main")) == [name, volume]  # what deploying the branch does


def test_two_dots_compare_with_the_base_itself(check: Check, checkout: Checkout) -> None:
    """A push that takes commits back: what HEAD lacks is a change of what is deployed."""
    deployed = checkout.commit({"endpoint.yaml": NEW_NAME})
    checkout.git("checkout", "--quiet", "--detach", "HEAD~1")
    for against, effect in ((f"{deployed}..HEAD", "replaced"), (f"{deployed}...HEAD", "nothing")):
        data = json.loads(check(against, "--json").out)
        assert data["files"][0]["effect"] == effect
    assert json.loads(check(f"{deployed}..", "--json").out)["against"] == deployed
    text = check("main..HEAD").out.splitlines()[0]
    assert text.endswith(f"against main at {deployed[:10]}")


def test_several_merge_bases_are_refused(check: Check, checkout: Checkout) -> None:
    """Two branches that merged each other: a merge of them keeps what either base changed."""
    start = checkout.git("rev-parse", "HEAD")
    one = checkout.commit({"endpoint.yaml": NEW_NAME})
    checkout.git("checkout", "--quiet", "-b", "other", start)
    other = checkout.commit({"other": "1"})
    for branch, merged in (("other", one), ("main", other)):
        checkout.git("checkout", "--quiet", branch)
        checkout.git("merge", "--quiet", "--no-ff", "-m", "Merge", merged)
    answer = check("main...other")
    assert (answer.code, answer.out) == (2, "")
    assert "2 merge bases" in answer.err
    assert "merge the base branch into yours" in answer.err
    assert check("main..other").code == 0
    checkout.git("checkout", "--quiet", "other")
    checkout.git("merge", "--quiet", "--no-ff", "-m", "Merge", "main")
    assert check("main...other").code == 0


def test_files_of_both_revisions_that_the_settings_name(check: Check, checkout: Checkout) -> None:
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
    file = found(check, f"{base}...{head}")["files"][0]
    # Two instances at least, and an interface endpoint in two zones at AWS's cent an hour.
    assert [file["cost"][side]["at_least"] for side in ("before", "after")] == [4.02, 4.02]
    assert file["changed_prices_and_measurements"] == ["prices.ml.m5.12xlarge 2 -> 3"]
    text = check(f"{base}...{head}").out
    assert "costs below are at the former prices: prices.ml.m5.12xlarge 2" in text
    assert "| payload.json | payload.json (other content) |" in text
    assert "/tmp" not in text.replace("&#", "")
    assert "low-latency-" not in text


def test_a_file_that_is_new_and_one_that_is_deleted(check: Check, checkout: Checkout) -> None:
    checkout.commit({"live/old.yaml": named("old"), "live/same.yaml": named("same")})
    (checkout.folder / "live/old.yaml").unlink()
    (checkout.folder / "live/new.yaml").write_text(named("new", CHEAP), encoding="utf-8")
    files = {
        each["settings"]: each
        for each in found(check, "main", "--settings", "live/*.yaml")["files"]
    }
    assert {name: each["file"] for name, each in files.items()} == {
        "live/new.yaml": "new",
        "live/same.yaml": "in both",
        "live/old.yaml": "deleted",  # a pattern finds it in the base
    }
    answer = check("main", "--settings", "live/*.yaml", "--fail-on", "deletion")
    assert answer.code == 1
    assert ":x: deleted: live/old.yaml is deleted; its stack stays" in answer.out
    assert "It describes the stack new with sentiment." in answer.out
    assert "its own prices do not count" in answer.out
    assert "at least none -&gt; 2," in answer.out  # instances, of a price that nobody agreed on
    answer = check("main", "--settings", "live/new.yaml", "--fail-on", "new-warning")
    assert answer.code == 1  # all warnings of a new file are new


def test_a_file_that_never_was_is_a_mistake(check: Check, checkout: Checkout) -> None:
    answer = check("main", "--settings", "no-such.yaml")
    assert (answer.code, "there is no such file" in answer.out) == (1, True)
    assert check("main", "--settings", "none/*.yaml").code == 2


def test_mistakes_are_shown_with_their_lines(check: Check, checkout: Checkout) -> None:
    wrong = settings(volume_size_gib=0)
    line = 1 + wrong.splitlines().index("    volume_size_gib: 0")
    (checkout.folder / "endpoint.yaml").write_text(wrong, encoding="utf-8")
    answer = check("main")
    assert answer.code == 1
    assert ":x: Mistakes in endpoint.yaml" in answer.out
    assert f"- :x: mistake endpoint.yaml:{line}: LLE" in answer.out
    for chosen in FAIL_ON:
        assert check("main", "--fail-on", chosen).code == 1  # mistakes fail in any case
    text = check("main", "--text")
    assert (text.code, f"endpoint.yaml:{line}: LLE" in text.out) == (1, True)
    assert "The check fails. What would fail it: mistakes." in text.out


def test_a_base_with_mistakes_leaves_nothing_to_compare(check: Check, checkout: Checkout) -> None:
    """Whoever asks for refusals, replacements or deletions gets no pass on what nobody knows."""
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=0)})
    (checkout.folder / "endpoint.yaml").write_text(settings(), encoding="utf-8")
    answer = check("main")
    assert answer.code == 0
    assert "has mistakes before, so nothing is compared" in answer.out
    for chosen in ("refused", "replacement", "deletion"):
        answer = check("main", "--fail-on", chosen)
        assert (answer.code, "nobody knows what the change does" in answer.out) == (1, True)


FAILING: dict[str, tuple[str, str, str]] = {
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
    assert check("main", "--fail-on", what).code == 0
    (checkout.folder / "endpoint.yaml").write_text(after, encoding="utf-8")
    answer = check("main", "--fail-on", what)
    assert answer.code == 1
    assert f":x: The check fails. What would fail it: `mistakes`, `{what}`." in answer.out
    verdict = found(check, "main", "--fail-on", what)["verdict"]
    assert {each["limit"] for each in verdict["because"]} == {what}
    assert why in verdict["because"][0]["what"]
    assert check("main").code == 0
    assert set(FAILING) == set(FAIL_ON)


def test_two_files_are_judged_by_the_same_choices(check: Check, checkout: Checkout) -> None:
    before, after, why = FAILING["replacement"]
    for name, text in (("old.yaml", before), ("endpoint.yaml", after)):
        (checkout.folder / name).write_text(text, encoding="utf-8")
    answer = check("old.yaml", "--fail-on", "replacement")
    assert (answer.code, why in answer.out) == (1, True)
    assert check("old.yaml", "--fail-on", "deletion").code == 0
    assert "The check passes." in check("old.yaml", "--text", "--fail-on", "deletion").out


def test_a_percentage_that_is_not_reached(check: Check, checkout: Checkout) -> None:
    before, after, _ = FAILING["cost-increase"]
    checkout.commit({"endpoint.yaml": before})
    (checkout.folder / "endpoint.yaml").write_text(after, encoding="utf-8")
    # 6.02 is 49.75 % more than 4.02
    assert check("main", "--fail-on", "cost-increase=49").code == 1
    assert check("main", "--fail-on", "cost-increase=50").code == 0


def test_instances_without_a_price_may_cost_more(check: Check, checkout: Checkout) -> None:
    """A limit on what nobody knows is no pass."""
    (checkout.folder / "endpoint.yaml").write_text(settings(instances={"min": 3}), "utf-8")
    answer = check("main", "--fail-on", "cost-increase")
    assert (answer.code, "not known without prices of" in answer.out) == (1, True)


def test_the_help_names_every_choice(check: Check) -> None:
    out = "".join(check("main", "--text", "--help").out.split())
    assert [each for each in FAIL_ON if each not in out] == []


def test_a_lower_price_hides_no_larger_fleet(check: Check, checkout: Checkout) -> None:
    """A tenth of the throughput is ten times the fleet, whatever the same change says of prices."""
    held = {"peak_tps": 1000, "tps_per_instance": 200, "rise_tps_per_minute": 10}
    checkout.commit({"endpoint.yaml": settings(CHEAP, throughput=held)})
    cheaper = {"prices": {**CHEAP["prices"], "ml.m5.12xlarge": 0.01}}
    changed = settings(cheaper, throughput={**held, "tps_per_instance": 20})
    (checkout.folder / "endpoint.yaml").write_text(changed, encoding="utf-8")
    answer = check("main", "--fail-on", "cost-increase=5")
    assert answer.code == 1
    assert "prices.ml.m5.12xlarge 2 -&gt; 0.01" in answer.out
    assert "throughput.tps&#95;per&#95;instance 200 -&gt; 20" in answer.out


def test_a_load_test_result_of_the_same_change_hides_no_higher_peak(
    check: Check, checkout: Checkout
) -> None:
    """Ten times the peak at ten times the throughput costs the same, if the throughput is true."""
    held = {"peak_tps": 1000, "tps_per_instance": 200, "rise_tps_per_minute": 10}
    checkout.commit({"endpoint.yaml": settings(CHEAP, throughput=held)})
    changed = settings(CHEAP, throughput={**held, "peak_tps": 10_000, "tps_per_instance": 2000})
    (checkout.folder / "endpoint.yaml").write_text(changed, encoding="utf-8")
    answer = check("main", "--fail-on", "cost-increase=5")
    assert (answer.code, "with the former load-test result" in answer.out) == (1, True)


@pytest.mark.parametrize(
    "text", ["", "cheap", "error", "refused=3", "cost-increase=", "cost-increase=-1"]
)
def test_what_cannot_be_chosen(text: str) -> None:
    with pytest.raises(ValueError, match=r"none of|percentage"):
        limit_of(text)


def test_what_git_does_not_have_is_said(check: Check, checkout: Checkout) -> None:
    for against in (
        "origin/main",
        "no-such",
        "--upload-pack=touch owned",
        "a\0b",
        "main...no-such",
    ):
        answer = check(against)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("LLE980: ")
    assert not (checkout.folder / "owned").exists()


def test_outside_of_a_checkout(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert check("main").err.startswith("LLE980: ")
    monkeypatch.setenv("PATH", str(tmp_path))  # no Git
    assert check("main").err.startswith("LLE980: ")


def test_what_goes_with_a_file_alone(check: Check, checkout: Checkout) -> None:
    assert check("main", "--endpoint=sentiment").code == 2
    assert check("main", "--price=ml.m5.12xlarge=1").code == 2
    assert check("endpoint.yaml", "--settings", "endpoint.yaml", "--settings", "x.yaml").code == 2
    assert check("main", "--detailed-exitcode").code == 0
    (checkout.folder / "endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")
    assert check("main", "--detailed-exitcode").code == 2


def test_files_are_held_against_each_other(check: Check, checkout: Checkout) -> None:
    """A copy overwrites the other's stack, or SageMaker refuses the endpoint's name."""
    for copy in (settings(), settings({"stack_name": "Other"})):
        (checkout.folder / "copy.yaml").write_text(copy, encoding="utf-8")
        answer = check("main", "--settings", "*.yaml")
        assert (answer.code, ":x: Mistakes in copy.yaml, endpoint.yaml" in answer.out) == (1, True)
        assert "endpoint&#95;name sentiment is that of endpoint.yaml too" in answer.out
    other = settings(
        {
            "stack_name": "Other",
            "region": "eu-west-1",
            "client_zones": {"ids": ["euw1-az1", "euw1-az2"]},
        }
    )
    (checkout.folder / "copy.yaml").write_text(other, encoding="utf-8")
    assert check("main", "--settings", "*.yaml").code == 0


def test_a_moved_file_is_compared_with_the_file_of_its_stack(
    check: Check, checkout: Checkout
) -> None:
    checkout.commit({"endpoint.yaml": None, "live/moved.yaml": NEW_NAME})
    (file,) = found(check, "HEAD~1...HEAD", "--settings", "*.yaml", "--settings", "live/*.yaml")[
        "files"
    ]
    assert (file["settings"], file["file"], file["effect"]) == (
        "live/moved.yaml",
        "in both",
        "replaced",
    )


@pytest.mark.parametrize("kept", ["", "mood"])
def test_a_name_that_a_stack_keeps_is_refused(check: Check, checkout: Checkout, kept: str) -> None:
    """The file moved to another stack, or to a file that was there; the former stack has the name."""
    sentiment = {**SHIPPED["endpoints"]["sentiment"], "endpoint_name": kept}
    if kept:
        text = settings({"stack_name": "Other", "endpoints": {"mood": sentiment}})
        checkout.commit({"other.yaml": text})
    chosen = ("--settings", "*.yaml", "--fail-on", "refused")
    checkout.commit({"endpoint.yaml": None, "other.yaml": settings({"stack_name": "Other"})})
    answer = check("HEAD~1...HEAD", *chosen)
    assert answer.code == 1
    assert (
        "**:no_entry: refused: other.yaml: " in answer.out or "**:x: refused: other" in answer.out
    )
    assert (
        answer.out.count(
            "the stack that stays has endpoint&#95;name sentiment of LowLatencyEndpoint"
        )
        > 1
    )
    checkout.git("reset", "--quiet", "--hard", "HEAD~1")
    checkout.commit(
        {"endpoint.yaml": None, "other.yaml": settings({"stack_name": "Other"}, endpoint_name="o")}
    )
    assert check("HEAD~1...HEAD", *chosen).code == 0


def test_another_stack_starts_with_what_differs(check: Check, checkout: Checkout) -> None:
    sentiment = {**SHIPPED["endpoints"]["sentiment"], "endpoint_name": "o"}
    other = settings({"stack_name": "Other", "endpoints": {"other": sentiment}})
    (checkout.folder / "endpoint.yaml").write_text(other, encoding="utf-8")
    answer = check("main")
    assert "the new stack has no such endpoint; LowLatencyEndpoint keeps it" in answer.out
    assert "whoever invokes it fails" not in answer.out
