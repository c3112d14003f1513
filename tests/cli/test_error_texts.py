"""What every error has in common: a value that can be read, and a suggestion that helps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import LONGEST_GOT, ErrorRule, did_you_mean, rules
from low_latency_endpoint.errors.findings import LONGEST_VALUE, located, shown
from low_latency_endpoint.plan.recorded_traffic import recording_of
from tests.refusals import refused

_NAMES = st.text("abcAB12-_", min_size=1, max_size=8)


@given(_NAMES, st.lists(_NAMES, max_size=5))
def test_a_name_itself_is_never_suggested(name: str, known: list[str]) -> None:
    said = did_you_mean(name, [name, *known])
    assert said != f"Did you mean {name}?"
    assert said == did_you_mean(name, [each for each in known if each != name])


def test_the_same_name_in_another_case_is_suggested() -> None:
    assert did_you_mean("Gone", ["gone", "Gone"]) == "Did you mean gone?"


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.code)
def test_a_long_value_is_cut_and_its_length_told(rule: ErrorRule) -> None:
    error = rule.error(got="0.125, " * 9_000, allowed="x")
    assert len(error.got) == LONGEST_GOT
    assert error.got.endswith("... (63,000 characters)")
    assert located(error, "elsewhere").got == error.got
    assert shown("y" * 1_234).endswith("... (1,234 characters)")


@given(st.text(max_size=LONGEST_VALUE))
def test_what_fits_is_told_whole(text: str) -> None:
    assert shown(text) == text


def test_a_list_of_names_is_told_whole() -> None:
    """Somebody is to delete or choose one of them."""
    names = ", ".join(f"/low-latency-endpoint/load-test-fleet/chat/stack-{n}" for n in range(15))
    assert next(rules()).error(got=names, allowed="one").got == names


def test_a_file_of_another_form_is_not_printed() -> None:
    """As vLLM's `start_times` have it: a list of numbers where a time must be."""
    times = [{"Timestamp": [0.1 * n for n in range(5_000)], "Sum": 1}] * 2
    with refused("LLS130") as caught:
        recording_of(json.dumps({"Datapoints": times}), "vllm", "vllm.json")
    assert len(str(caught.value)) < 1_000
