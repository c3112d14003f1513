"""The first line of a comment is its worst one, and nothing under it says that all is well."""

from __future__ import annotations

import re
from copy import deepcopy
from random import Random

import pytest
import yaml

from low_latency_endpoint.settings.update.review import FAIL_ON
from tests.depth import examples

from .conftest import NEW_NAME, SHIPPED, Check, Checkout, settings
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
