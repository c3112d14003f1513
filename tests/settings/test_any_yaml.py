"""Whatever the file holds, loading gives settings or a SettingsError, never anything else."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import SettingsError
from low_latency_endpoint.settings import Settings, parse_settings, settings_json_schema
from tests.depth import examples, sampled
from tools.fuzzing.cases import settings_values

SCHEMA = settings_json_schema()
NAMES = sorted(
    {name for group in [SCHEMA, *SCHEMA["$defs"].values()] for name in group.get("properties", ())}
)
# Values that come near to right ones, so that the checks between settings are reached too.
NEAR = [
    *("use1-az1", "use1-az2", "us-east-1a", "vpc-0123456789abcdef0", "10.0.0.0/16"),
    *("200ms", "5m", "0s", "random", "Serial", "Direct", "concurrency", "no"),
    *("ml.m5.large", "ml.inf1.xlarge", "ml.t2.medium", "s3://bucket/model/", "a/b:1"),
    *("#strategy", "[key]", 0, 1, 10, -1, 0.5, 1e308, 10**25, True, None, [], {}),
]
LEAVES = st.one_of(
    st.sampled_from(NEAR),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.dates(),
    st.binary(max_size=4),
)
KEYS = st.one_of(
    st.sampled_from([*NAMES, "#prefix_aware", "[key]", "<<"]),
    st.text(max_size=6),
    st.integers(),
    st.booleans(),
    st.none(),
)


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda below: st.one_of(
            st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=5)
        ),
        max_leaves=12,
    )


def values_of(group: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Mappings with the keys of a group of the schema and any values."""
    if "$ref" in group:
        return st.deferred(
            lambda: values_of(SCHEMA["$defs"][group["$ref"].removeprefix("#/$defs/")])
        )
    choices = [trees(LEAVES)]
    if "properties" in group:
        choices.append(
            st.fixed_dictionaries(
                {}, optional={name: values_of(each) for name, each in group["properties"].items()}
            )
        )
    elif "patternProperties" in group:
        [below] = group["patternProperties"].values()
        choices.append(
            st.dictionaries(st.sampled_from(["a", "b-1", "c_2"]), values_of(below), max_size=2)
        )
    elif "items" in group:
        choices.append(st.lists(values_of(group["items"]), max_size=3))
    elif "oneOf" in group:
        choices += [values_of(each) for each in group["oneOf"]]
    return st.one_of(choices)


def settings_or_error(text: str) -> None:
    try:
        assert isinstance(parse_settings(text), Settings)
    except SettingsError as error:
        found = error.problems
    else:
        return
    lines = text.count("\n") + 1
    assert found
    for line, problem in found:
        assert 1 <= line <= lines
        assert problem.code.startswith("LL")
        assert problem.what
        assert problem.allowed


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
@given(values_of(SCHEMA))
def test_mappings_that_resemble_settings(values: Any) -> None:
    settings_or_error(yaml.dump(values, allow_unicode=True))


@settings(max_examples=examples(50))
@given(
    st.text(
        alphabet=st.sampled_from("abk:-[]{}&*!|>'\"#%@`,?<~ \n\t0.\x00\ud800\ufeff"), max_size=40
    )
)
def test_text_that_may_not_even_be_yaml(text: str) -> None:
    settings_or_error(text)


def places(values: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """Where every value below stands, a group before its parts."""
    if isinstance(values, (dict, list)):
        keys: Any = values if isinstance(values, dict) else range(len(values))
        for key in keys:
            yield (*above, key)
            yield from places(values[key], *above, key)


@pytest.mark.parametrize("seed", sampled(range(12), 4))
def test_a_file_in_which_one_value_is_empty(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules between values hold their words where one of the values holds nothing."""
    monkeypatch.chdir(tmp_path)
    base = settings_values(Random(seed))
    for *above, last in places(base):
        for empty in ([], {}, "", None):
            values = deepcopy(base)
            group = values
            for key in above:
                group = group[key]
            group[last] = empty
            settings_or_error(yaml.dump(values, sort_keys=False))
