"""The first line of a comment is its worst one, and nothing under it says that all is well."""

from __future__ import annotations

import re
from copy import deepcopy
from random import Random

import pytest
import yaml

from low_latency_endpoint.change.verdict import FAIL_ON
from tests.depth import examples

from .conftest import NEW_NAME, ROOT, SHIPPED, Check, Checkout, settings
from .test_costs_of_a_change import TYPES, base, changed

MARKS = (":white_check_mark:", ":new:", ":large_orange_diamond:", ":grey_question:", ":x:")
_TABLE = re.compile(r"^\| (:\w+:) \w+(?: \w+)? \|", re.MULTILINE)


def marks(text: str) -> tuple[str, list[str]]:
    """The mark of the first line, and those of all effects below."""
    first = re.search(r"^\*\*(:\w+:) ", text, re.MULTILINE)
    assert first
    return first[1], _TABLE.findall(text)


def well(mark: str) -> bool:
    return MARKS.index(mark) < MARKS.index(":large_orange_diamond:")


@pytest.mark.parametrize("seed", range(examples(12)))
def test_the_first_line_is_the_worst(check: Check, checkout: Checkout, seed: int) -> None:
    random = Random(seed)
    before = base({TYPES[0]: 2.0}) if random.random() < 0.5 else deepcopy(SHIPPED)
    files: dict[str, str | None] = {}
    former: dict[str, str | None] = {}
    for name in ("a", "b")[: random.randint(1, 2)]:
        values = {**deepcopy(before), "stack_name": name}
        values["endpoints"]["sentiment"]["endpoint_name"] = name
        values["endpoints"]["sentiment"].setdefault("throughput", {})
        former[f"{name}.yaml"] = yaml.safe_dump(values)
        files[f"{name}.yaml"] = yaml.safe_dump(changed(values, random))
    checkout.commit(former)
    head, parent = checkout.commit(files), "HEAD~1"
    chosen = [f"--fail-on={what}" for what in FAIL_ON if random.random() < 0.4]
    answer = check(f"{parent}...{head}", "--settings=?.yaml", *chosen)
    assert answer.code in (0, 1), answer.err
    first, below = marks(answer.out)
    assert below or "Mistakes in" in answer.out
    worst = max(map(MARKS.index, below), default=0)
    assert MARKS.index(first) >= worst or (well(first) and well(MARKS[worst]))
    if answer.code == 1:
        assert first == ":x:"
    passes = re.search(r"^(:\w+: )?The check passes", answer.out, re.MULTILINE)
    assert bool(passes) == (bool(chosen) and answer.code == 0)
    if passes and passes[1]:
        assert well(first)


def test_no_mark_of_success_stands_under_a_replacement(check: Check, checkout: Checkout) -> None:
    (checkout.folder / "endpoint.yaml").write_text(NEW_NAME, encoding="utf-8")
    for form in ((), ("--text",)):
        answer = check("main", "--fail-on", "refused", *form)
        assert (answer.code, "The check passes" in answer.out) == (0, True)
        assert ":white_check_mark: The check passes" not in answer.out


def test_a_check_that_fails_has_no_mark_of_success(check: Check, checkout: Checkout) -> None:
    """An update in place, whose costs nobody knows."""
    (checkout.folder / "endpoint.yaml").write_text(settings(instances={"min": 3}), "utf-8")
    answer = check("main", "--fail-on", "cost-increase")
    assert answer.code == 1
    assert "**:x: in place: " in answer.out


def test_a_gained_warning_has_no_mark_of_success(check: Check, checkout: Checkout) -> None:
    """Also where nothing that is deployed changes."""
    shipped = (ROOT / "endpoint.yaml").read_text(encoding="utf-8")
    fleet = "    instances: {min: 12, initial: 12, max: 24}\n    latency:\n"
    text = shipped.replace("    latency:\n", fleet)
    checkout.commit({"endpoint.yaml": text})
    more = text.replace("peak_tps: 1000", "peak_tps: 2300")
    (checkout.folder / "endpoint.yaml").write_text(more, encoding="utf-8")
    answer = check("main", "--fail-on", "refused")
    assert "Warning gained" in answer.out
    assert "**:large_orange_diamond: Nothing that is deployed changes**" in answer.out
    assert ":white_check_mark: The check passes" not in answer.out


def test_the_verdict_names_few_files(check: Check, checkout: Checkout) -> None:
    """GitHub takes no comment above 65,536 characters, and the verdict stands in it."""
    wrong: dict[str, str | None] = {f"{'n' * 180}{number:04d}.yaml": "x" for number in range(5)}
    checkout.commit(wrong)
    answer = check("HEAD~1...HEAD", "--settings", "n*.yaml")
    verdict = next(line for line in answer.out.splitlines() if "Mistakes in" in line)
    assert verdict.count(".yaml") == 3
    assert "and 2 more: nothing" in verdict


def test_a_folder_may_be_called_as_a_pattern(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.commit({"proj[1]/endpoint.yaml": settings()})
    monkeypatch.chdir(checkout.folder / "proj[1]")
    for against in ("main", "main...HEAD"):
        for name in ("endpoint.yaml", "*.yaml"):
            answer = check(against, "--settings", name)
            assert (answer.code, "**proj&#91;1&#93;/endpoint.yaml**" in answer.out) == (0, True)


@pytest.mark.parametrize("against", ["main", "main...HEAD"])
def test_a_pattern_that_means_nothing_is_a_usage_error(check: Check, against: str) -> None:
    answer = check(against, "--settings", "e**/x.yaml")
    assert (answer.code, "** means any folders" in answer.err) == (2, True)


def test_a_fault_of_ours_is_no_failed_check(
    check: Check, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 would be the verdict of a check, under which no comment says why."""

    def broken(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("low_latency_endpoint.change.file_review.review_files", broken)
    answer = check("main")
    assert (answer.code, answer.out) == (2, "")
    assert "RecursionError: too deep" in answer.err
    assert "A fault of low-latency" in answer.err


def test_files_with_long_paths_leave_room_for_the_verdict(check: Check, checkout: Checkout) -> None:
    folder = "/".join(["endpoints", *["@" * 248] * 15])
    checkout.commit({f"{folder}/{number}.yaml": "stack_name: [" for number in range(3)})
    answer = check("HEAD~1...HEAD", "--settings=endpoints/**/*.yaml", "--fail-on=refused")
    first = next(line for line in answer.out.splitlines() if line.startswith("**:x:"))
    assert answer.code == 1
    assert re.findall(r"/(\d)\.yaml", first) == ["0", "1", "2"]
    assert first.endswith(": nothing of it can be deployed**")
    assert "The check fails" in answer.out
