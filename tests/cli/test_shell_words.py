"""No command that is printed runs what somebody else wrote into a name."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.account.drift import _alarm_drift, _policy_drift, _suspended
from low_latency_endpoint.errors.shell_words import shell_word, shell_words

LIBRARY = Path(__file__).resolve().parents[2] / "constructs" / "low_latency_endpoint"
NAMES = [
    "sentiment",
    "a b",
    "$(x)",
    "`x`",
    "; x",
    "x'; y '",
    '"$(x)"',
    "a\\",
    "a\nb",
    "\x1b[31m",
    "a`'\\$(x)",
    "*",
    "~",
    "",
    "é{a,b}",
    "|x&>#!",
]
#: What runs commands, where a text begins with it; what follows is read by a shell.
COMMAND = re.compile(
    r"\b(aws [a-z0-9-]+ |low-latency [a-z-]+|cdk (deploy|bootstrap)|pip install|cd )"
)
#: Functions whose result is quoted.
QUOTING = {"shell_word", "shell_words", "naming"}
_FORM = "SageMaker's name, by its form; in a template it may be a token"
_TYPE = "instance types, by their form (LLE405, LLE916)"
_OURS = "the library's own words"
_PROSE = "after the command"
NOT_FOREIGN = {
    ("account/drift.py", "operation"): _OURS,
    ("account/drift.py", "made"): _OURS,
    ("account/drift.py", "again"): "quoted before",
    ("account/drift.py", "option"): "a property's name, by the library's list",
    ("account/queries.py", "OTEL_METRICS_USD"): _PROSE,
    ("account/stuck_stacks.py", "command"): "quoted before",
    ("account/stuck_stacks.py", "orphans"): "quoted before",
    ("account/stuck_stacks.py", "page"): _PROSE,
    ("cli/cost_view.py", "HOSTING_PRICES"): _PROSE,
    ("cli/cost_view.py", "given"): _PROSE,
    ("cli/cost_view.py", "options"): _TYPE,
    ("cli/cost_view.py", "pairs"): _TYPE,
    ("cli/load_test.py", "file"): "quoted before",
    ("cli/load_test.py", "peak"): "a number",
    ("cli/load_test.py", "used"): "quoted before",
    ("cli/simulate_report.py", "kind"): _TYPE,
    ("load_test_fleet/load_test_fleet.py", "self.endpoint_name"): _FORM,
    ("monitoring/alarms.py", "endpoint_name"): _FORM,
    ("monitoring/alarms.py", "name"): _FORM,
    ("monitoring/dashboard_body.py", "endpoint_name"): _FORM,
    ("monitoring/objectives.py", "endpoint_name"): _FORM,
    ("monitoring/token_alarms.py", "name"): _FORM,
    ("operate/diagnose/alarm_causes.py", "names"): "quoted before",
    ("operate/diagnose/updates.py", "update.serving"): _PROSE,
    ("operate/preflight/capacity_checks.py", "_EXECUTIONS_QUOTA"): _OURS,
    ("operate/preflight/capacity_checks.py", "needed"): "a number",
    ("operate/preflight/subnet_checks.py", "option"): _OURS,
    ("operate/sagemaker_jobs.py", "self.name_option"): _OURS,
    ("operate/sagemaker_jobs.py", "self.operation.replace('_', '-')"): _OURS,
    ("operate/sagemaker_jobs.py", "verb"): _OURS,
    ("operate/verify/alarm_checks.py", "_SEND"): _OURS,
    ("plan/hourly_cost.py", "stated"): _TYPE,
    ("plan/summary.py", "cost.instance_type"): _TYPE,
    ("plan/summary.py", "name"): _TYPE,
    ("plan/summary.py", "options"): _TYPE,
    ("warm_up/zone_canary.py", "name"): _FORM,
}


def inserted() -> Iterator[tuple[str, str]]:
    """Each value that a text of the product has after the begin of a command: file, expression."""
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                for value in _of_command(node):
                    yield str(path.relative_to(LIBRARY)), ast.unparse(value)


def _of_command(text: ast.JoinedStr) -> Iterator[ast.expr]:
    before = ""
    for part in text.values:
        if isinstance(part, ast.Constant):
            before += part.value
        elif isinstance(part, ast.FormattedValue):
            called = part.value.func if isinstance(part.value, ast.Call) else None
            name = called.id if isinstance(called, ast.Name) else ""
            if COMMAND.search(before) and name not in QUOTING:
                yield part.value
            before += "aws cli " if name == "_scaling_command" else "X"


def test_every_name_in_a_command_is_quoted_or_not_foreign() -> None:
    assert set(inserted()) == set(NOT_FOREIGN)


def _read_by_bash(words: str) -> list[str]:
    script = f"printf '%s\\0' {words}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, cwd="/")
    return done.stdout.decode().split("\0")[:-1]


def test_a_shell_reads_the_names_and_nothing_else() -> None:
    assert _read_by_bash(shell_words(NAMES)) == NAMES


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)
)
def test_a_shell_reads_any_text(names: list[str]) -> None:
    words = shell_words(names)
    assert _read_by_bash(words) == names
    assert "`" not in words
    assert words.isprintable()


def commands(name: str) -> Iterator[str]:
    """The commands that put back what somebody else has named."""
    configuration = {"TargetValue": 7.0, "PredefinedMetricSpecification": {"ResourceLabel": name}}
    configuration["PredefinedMetricSpecification"]["PredefinedMetricType"] = "Tps"
    kind = "TargetTrackingScalingPolicyConfiguration"
    stated = {"PolicyType": "TargetTrackingScaling", kind: configuration}
    live: dict[str, Any] = {"PolicyName": name, kind: {**configuration, "TargetValue": 9.0}}
    resource = f"endpoint/{name}/variant/primary"
    target = {"SuspendedState": {"DynamicScalingOutSuspended": True}}
    off = {"ActionsEnabled": False}
    for drift in (
        *_policy_drift(stated, [live], "mine", resource, "primary"),
        *_policy_drift(stated, [], name, resource, "primary"),
        *_suspended(target, resource, "primary"),
        *_alarm_drift("AWS::CloudWatch::Alarm", name, None, {}, False),
        *_alarm_drift("AWS::CloudWatch::Alarm", name, off, {}, True),
    ):
        yield from re.findall(r"`(aws [^`]*)`", drift.repair)


@pytest.mark.parametrize("name", NAMES)
def test_what_puts_back_a_drift_names_what_drifted(name: str) -> None:
    found = list(commands(name))
    assert len(found) == 5
    for command in found:
        program, *words = _read_by_bash(command)
        assert program == "aws"
        assert any(name in word for word in words)
        assert (
            shell_word(name) in command or shell_word(f"endpoint/{name}/variant/primary") in command
        )


def test_plain_names_stay_as_they_are() -> None:
    assert shlex.join(["sentiment", "a/b-1.json"]) == shell_words(["sentiment", "a/b-1.json"])
