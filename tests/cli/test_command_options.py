"""All commands together: one word for each meaning, JSON with a version, exit codes in each help."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from local_sagemaker.cli import app as local_app
from low_latency_endpoint.cli.application import COMMANDS, app
from low_latency_endpoint.report.document import Document, Table
from low_latency_endpoint.report.markdown import as_markdown

GROUP: Any = typer.main.get_command(app)
LOCAL: Any = typer.main.get_command(local_app)
HELPS: dict[str, Any] = {
    "low-latency": GROUP,
    **{f"low-latency {name}": each for name, each in GROUP.commands.items()},
    "local-sagemaker": LOCAL,
    **{f"local-sagemaker {name}": each for name, each in LOCAL.commands.items()},
}
SHIPPED = str(Path(__file__).parents[2] / "endpoint.yaml")

#: What stands for the value of an option that several commands have; another meaning is another word.
VALUES = {
    "--from-load-test": {"FILE"},
    "--html": {"FILE"},
    "--inference-component": {"NAME"},
    "--instance-type": {"TYPE"},
    "--instances": {"N"},
    "--job": {"NAME"},
    "--lock": {"FILE"},
    "--output": {"FILE", "FOLDER"},
    "--payload": {"SOURCE"},
    "--price": {"ITEM=USD"},
    "--processes": {"N"},
    "--peak-tps": {"TPS"},
    "--period": {"TIME"},
    "--profile": {"NAME"},
    "--region": {"REGION"},
    "--requests": {"N"},
    "--result": {"N"},
    "--role-arn": {"ARN"},
    "--safety-factor": {"SHARE"},
    "--seed": {"N"},
    "--settings": {"FILE"},
    "--since": {"TIME"},
    "--target": {"STAT=TIME"},
    "--timeout": {"TIME"},
    "--tokens": {"LENGTHS"},
    "--tps": {"TPS"},
    "--traffic": {"SHAPE"},
    "--traffic-from": {"FILE"},
    "--until": {"TIME"},
    "--users": {"N"},
    "--variant": {"NAME"},
}
#: Options without a value that several commands have, and a word that each of their helps has.
FLAGS = {
    "--json": "Print JSON.",
    "--markdown": "Markdown",
    "--quiet": "Omit checks that pass.",
    "--strict": "Exit with 1 on warnings",
    "--write": "into the settings file",
    "--yes": "not ask",
}
#: Names that were other words for the same: nobody brings them back.
GONE = {
    *("--rate", "--latency-threshold", "--sample-payload", "--adopt", "--point", "--hours"),
    *("--hourly-price", "--max-runtime"),
}
#: What they print is no result: a schema that is JSON already, and a server.
WITHOUT_JSON = {"schema", "local-aws"}
WITH_MARKDOWN = {
    *("plan", "preflight", "verify", "diagnose", "load-test", "compare-routing", "simulate"),
    *("list", "errors"),
}


def _options(command: str) -> dict[str, Any]:
    return {
        name: each
        for each in GROUP.commands[command].params
        if each.param_type_name == "option"
        for name in each.opts
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_has_the_same_word_everywhere(command: str) -> None:
    options = _options(command)
    assert not GONE & set(options)
    for name, option in options.items():
        if name in VALUES:
            assert option.metavar in VALUES[name], name
        elif name in FLAGS:
            # A table has several rows to write, and all else that is written is one thing.
            assert option.is_flag or (command, name) == ("recommend", "--write"), name
            assert FLAGS[name] in option.help, name
        elif name.startswith("--") and not option.is_flag:
            assert option.metavar, name


def test_an_option_of_several_commands_is_in_the_table() -> None:
    seen: dict[str, int] = {}
    for command in COMMANDS:
        for name, option in _options(command).items():
            if name.startswith("--") and not option.is_flag:
                seen[name] = seen.get(name, 0) + 1
    several = {name for name, count in seen.items() if count > 1}
    # Of one meaning only by accident of the word: what follows is said in each help.
    assert several - set(VALUES) <= {
        *("--bucket", "--content-type", "--accept", "--expect", "--zonal"),
        "--allowed-errors",
    }


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - WITHOUT_JSON))
def test_a_command_with_a_result_prints_json(command: str) -> None:
    assert "--json" in _options(command)


def test_what_people_paste_is_printed_as_markdown() -> None:
    assert {each for each in COMMANDS if "--markdown" in _options(each)} == WITH_MARKDOWN


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"schema"}))
def test_exit_codes_stand_in_the_help(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"})
    codes = re.search(r"\n  Exit codes:\n((?:    .*\n)+)", done.output)
    assert codes, done.output
    found = re.findall(r"^    (\d+)  ", codes[1], re.MULTILINE)
    assert found[0] == "0"
    assert found == sorted(found, key=int)
    assert "2" in found


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_names_arguments_in_capitals(command: str) -> None:
    usage = (
        CliRunner().invoke(app, [command, "--help"], prog_name="low-latency").output.splitlines()[0]
    )
    assert re.fullmatch(
        rf"Usage: low-latency {command} \[OPTIONS\]( [\[{{][A-Z]+[\]}}](\.\.\.)?)*", usage
    ), usage


def test_json_begins_with_the_version_of_its_format() -> None:
    for arguments in (["plan", "--settings", SHIPPED, "--json"], ["errors", "LLE604", "--json"]):
        done = CliRunner().invoke(app, arguments)
        assert next(iter(json.loads(done.stdout).items())) == ("format_version", 1)


def test_markdown_takes_no_markup_from_others() -> None:
    evil = "<img src=x onerror=alert(1)> | @everyone [x](https://evil) # 1 `code`"
    text = as_markdown(Document("", [evil, Table(("a", "b"), [(evil, "1")], title=evil)]))
    for mark in ("<img", "@everyone", "](https", " # "):  # code stays code: nothing is read in it
        assert mark not in text
    row = text.strip().splitlines()[-1]
    assert row.count("|") == 3


def test_completion_completes_commands_and_options() -> None:
    environment = {
        "_LOW_LATENCY_COMPLETE": "complete_bash",
        "COMP_WORDS": "low-latency dia",
        "COMP_CWORD": "1",
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="low-latency")
    assert done.output.split() == ["diagnose"]


@pytest.mark.parametrize("command", sorted(WITH_MARKDOWN))
@pytest.mark.parametrize("forms", [("--json", "--markdown"), ("--markdown", "--json")])
def test_two_forms_of_output_are_refused(command: str, forms: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, [command, *forms])
    assert done.exit_code == 2
    assert "give --json or --markdown, not both" in " ".join(done.output.split())


@pytest.mark.parametrize("name", HELPS)
def test_help_has_words_for_types(name: str) -> None:
    """No ``<list[str]>``: who reads a help writes no Python. Private words of the help are plain."""
    with HELPS[name].make_context(name, [], resilient_parsing=True) as context:
        text = HELPS[name].get_help(context)
        for each in HELPS[name].params:
            row = each.get_help_record(context) or ("", "")
            sentence = row[1].partition("  [")[0]
            assert re.match(r"[A-Z0-9]", sentence) or not sentence, sentence
            assert sentence.endswith(".") or not sentence, sentence
            assert not re.search(r"settings' |settings'[.,]|profile's", sentence), sentence
    assert not re.search(r"<[a-z]|\b(str|int|float|bool|Path|list)\b[\]>.]", text), text


@pytest.mark.parametrize("name", HELPS)
def test_examples_of_help_can_be_copied(name: str) -> None:
    """Each is a line of 80 columns, or goes on behind a backslash, and its command takes it."""
    with HELPS[name].make_context(name, [], resilient_parsing=True) as context:
        text = HELPS[name].get_help(context)
    found = re.search(r"\n  Examples?:\n((?:    .*\n)+)", text)
    assert found, text
    assert max(map(len, found[1].splitlines())) <= 80
    for line in re.sub(r"\\\n\s*", "", found[1]).splitlines():
        words = shlex.split(line, comments=True)
        ends = [index for index, word in enumerate(words) if word in ("|", ">")]
        words = words[: min(ends, default=len(words))]
        if words[1:2] == ["local-aws"]:
            words = ["local-sagemaker", *words[2:]]
        name = " ".join(words[:2])
        of_group = name not in HELPS
        with HELPS[words[0] if of_group else name].make_context(line, words[2 - of_group :]):
            pass
