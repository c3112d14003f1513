"""What is generated and committed is in step with the models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from docs import make_settings_tables
from docs.make_settings_tables import missing_in, rewrite, settings_tables

from low_latency_endpoint.errors.frozen import dataclass
from low_latency_endpoint.facts import limits
from low_latency_endpoint.facts.durations import duration_of_text
from low_latency_endpoint.options.option import Option, Options, options_of
from low_latency_endpoint.settings import parse_settings, settings_json_schema
from tests.option_groups import groups

REPOSITORY = Path(__file__).parents[2]
SCHEMA = settings_json_schema()
GROUPS = {"the file": SCHEMA, **SCHEMA["$defs"]}
PROPERTIES = [(group, name) for group in GROUPS for name in GROUPS[group].get("properties", ())]


def validator_of(schema: dict[str, Any]) -> Any:
    import jsonschema  # type: ignore[import-untyped]  # a second of every test process otherwise

    return jsonschema.Draft202012Validator(schema)


def test_the_committed_schema_is_in_step() -> None:
    committed = json.loads((REPOSITORY / "endpoint.schema.json").read_text(encoding="utf-8"))
    assert committed == SCHEMA, "run: low-latency schema > endpoint.schema.json"


def test_the_schema_is_a_schema() -> None:
    validator_of({}).check_schema(SCHEMA)


def test_the_shipped_file_satisfies_the_schema() -> None:
    text = (REPOSITORY / "endpoint.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=endpoint.schema.json\n")
    assert list(validator_of(SCHEMA).iter_errors(yaml.safe_load(text))) == []


def test_the_settings_of_the_jumpstart_page_are_valid() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "jumpstart.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    [container] = parse_settings(shown).endpoints["chat"].containers
    assert container.data is not None
    assert container.data.accept_eula


@pytest.mark.parametrize(("group", "name"), PROPERTIES)
def test_every_setting_is_described_and_shown(group: str, name: str) -> None:
    setting = GROUPS[group]["properties"][name]
    text = setting.get("description", "")
    assert text.endswith("."), (
        f"{group}: write a text below the field {name} that ends with a period"
    )
    if setting.get("type") != "boolean" and "enum" not in setting:
        assert setting.get("examples"), f"{group}.{name}: give its Option an example= for editors"


@pytest.mark.parametrize(("group", "name"), PROPERTIES)
def test_examples_satisfy_the_schema(group: str, name: str) -> None:
    setting = {**GROUPS[group]["properties"][name], "$defs": SCHEMA["$defs"]}
    for example in setting.get("examples", ()):
        if "..." not in str(example):
            validator_of(setting).validate(example)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ("", False),
        ("stack_name: 1st", True),
        ("region: us-east-1", False),
        ("unknown: 1", True),
        ("client_zones: {}", True),
        ("client_zones: {ids: [use1-az1, use1-az2], names: [us-east-1a, us-east-1b]}", True),
        ("tags: {'aws:a': b}", True),
        ("network: {subnet_prefix_length: 29}", True),
        ("endpoints: {a_b: {}}", True),
    ],
)
def test_the_schema_refuses_what_loading_refuses(change: str, refused: bool) -> None:
    values = {
        "client_zones": {"ids": ["use1-az1", "use1-az2"]},
        "endpoints": {
            "a": {
                "containers": [{"image": {"uri": "a/b:1"}}],
                "instance_type": "ml.m5.large",
                "latency": {"p99": "1s"},
            }
        },
        **(yaml.safe_load(change) or {}),
    }
    assert bool(list(validator_of(SCHEMA).iter_errors(values))) == refused
    if refused:
        with pytest.raises(Exception, match=r"LL[A-Z]"):
            parse_settings(yaml.safe_dump(values))
    else:
        parse_settings(yaml.safe_dump(values))


def test_patterns_are_plain_enough_for_editors() -> None:
    """JavaScript, in which editors check, lacks inline flags such as ``(?i:...)``."""
    patterns = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', json.dumps(SCHEMA))
    patterns += [
        key
        for group in GROUPS.values()
        for setting in group["properties"].values()
        for key in setting.get("patternProperties", ())
    ]
    assert len(patterns) > 20
    for pattern in patterns:
        assert not re.search(r"\(\?[a-zA-Z-]+[:)]", pattern), pattern


def test_the_reference_page_is_in_step(tmp_path: Path) -> None:
    page = REPOSITORY / "docs" / "reference" / "settings.md"
    copy = tmp_path / "settings.md"
    copy.write_bytes(page.read_bytes())
    rewrite(copy, settings_tables())
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), "run: make docs"


def test_the_reference_names_every_setting_and_its_links_lead_somewhere() -> None:
    tables = settings_tables()
    for _, name in PROPERTIES:
        assert f"| `{name}`" in tables
    headings = {
        re.sub(r"[^\w-]", "", title.lower())
        for title in re.findall(r"^## (.*)$", tables, flags=re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]*)\)", tables))
    assert links
    assert links <= headings
    errors = (REPOSITORY / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for code in set(re.findall(r"errors\.md#(lle\d{3})", tables)):
        assert f"### {code.upper()}\n" in errors, "run: make docs"


def test_the_reference_tells_no_bound_that_nobody_reaches() -> None:
    takes = re.findall(r"^\| `\w+`[^|]*\| ([^|]*) \|", settings_tables(), re.M)
    assert len(takes) > 100
    assert [text for text in takes if re.search(r"\de[+-]?\d", text)] == []


def test_a_text_names_the_default_that_its_option_has() -> None:
    for group in groups():
        for each in options_of(group):
            if each.option is not None and isinstance(each.default, (int, float, timedelta)):
                named = re.search(r"Default: ([\d.]*\w+)", each.text_in_file)
                assert named, f'{group.__name__}.{each.name}: say "Default: ...." below the field'
                stated: Any = (
                    duration_of_text(named[1]) if each.lasting else yaml.safe_load(named[1])
                )
                assert stated == each.default, f"{group.__name__}.{each.name}"


def test_every_option_says_what_it_means_to_readers_of_a_file() -> None:
    for group in groups():
        for each in options_of(group):
            if each.option is not None:
                text = each.text_in_file
                assert "In Python" not in text, f"{each.name}: give it a paragraph of its own"
                assert ":class:" not in text, f"{each.name}: a file has no classes"


def test_every_option_says_of_itself_what_the_reference_shows() -> None:
    assert sorted({each for group in groups() for each in missing_in(group)}) == []


@dataclass(frozen=True, kw_only=True)
class Careless(Options):
    count: Annotated[int | None, Option(example=25)] = None
    shares: Annotated[Mapping[str, float] | None, Option()] = None
    """Shares"""
    name: Annotated[str | None, Option(limits.VARIANT_NAME)] = None


@dataclass(frozen=True, kw_only=True)
class Careful(Options):
    on: Annotated[bool, Option()] = False
    """Whether it is on. Default: false."""
    prices: Annotated[Mapping[str, float] | None, Option(limits.PEAK_TPS)] = None
    """Prices.

    In Python any number
    """


def test_what_an_option_does_not_say_is_asked_for_by_name() -> None:
    assert list(missing_in(Careful)) == []
    limit = (
        "give its Option a limit of facts/limits.py; where AWS names no largest, make one there: "
        "number_range(code, what, least, None)"
    )
    assert list(missing_in(Careless)) == [
        "Careless.count: write a text below the field count",
        f"Careless.count: {limit}",
        "Careless.shares: end the first paragraph of the text below the field with a period",
        f"Careless.shares: {limit}",
        "Careless.name: write a text below the field name",
    ]


def test_the_reference_is_not_written_before_an_option_says_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(make_settings_tables, "missing_in", lambda group: iter(["A.b: say it"]))
    with pytest.raises(ValueError, match=r"^A\.b: say it$"):
        settings_tables()
