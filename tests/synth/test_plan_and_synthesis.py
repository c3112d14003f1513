"""What `plan` refuses has codes and lines, and what synthesis refuses a code and a setting.

``python -m tools.fuzzing --count 20000 --synth 1000`` makes as many cases as there is time for.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.depth import examples, sampled
from tools.fuzzing.agreement import judge, text_of
from tools.fuzzing.cases import ROOT, bases, settings_values

CASES = st.randoms(use_true_random=False)
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


# As many as find a rule that is not held at all; how rarely one fails, `make fuzz` looks for.
@settings(max_examples=examples(50), suppress_health_check=SLOW)
@given(CASES)
def test_a_plan_or_codes_and_lines(folder: Path, random: Random) -> None:
    text = text_of(settings_values(random))
    assert judge(text, folder, synthesise=False).fault == ""


@settings(max_examples=examples(4), suppress_health_check=SLOW)
@given(CASES)
def test_what_plan_accepts_has_a_template_or_a_code_and_a_setting(
    folder: Path, random: Random
) -> None:
    text = text_of(settings_values(random))
    assume(judge(text, folder, synthesise=False).accepted)
    judged = judge(text, folder, synthesise=True)
    assert judged.fault == ""
    assert judged.resources > 0 or judged.codes


@pytest.mark.parametrize(
    "values", sampled(bases(), 4), ids=lambda values: ",".join(values["endpoints"])
)
def test_what_the_cases_start_from_holds(folder: Path, values: Any) -> None:
    judged = judge(text_of(values), folder, synthesise=True)
    assert (judged.accepted, judged.fault) == (True, "")


@pytest.mark.parametrize("account", [None, "123456789012", "999999999999"])
def test_a_role_of_another_account(folder: Path, account: str | None) -> None:
    """Found by seed 1856 of 20,000: a part of the stack that the plan did not know."""
    values = bases()[0]
    values["account"] = account
    for endpoint in values["endpoints"].values():
        endpoint["role_arn"] = "arn:aws:iam::999999999999:role/foreign"
    judged = judge(text_of({k: v for k, v in values.items() if v}), folder, synthesise=True)
    # Where the file says that the role is of another account, it is refused there.
    assert (judged.accepted, judged.fault) == (account != "123456789012", "")
    assert judged.codes == (("LLE952",) if account != "999999999999" else ())


@pytest.mark.parametrize("text", ["key: &x [*x]", "&x {client_zones: *x, endpoints: {a: *x}}"])
def test_an_alias_that_holds_itself_ends_neither_the_command_nor_its_judge(
    folder: Path, text: str
) -> None:
    judged = judge(text, folder, synthesise=False)
    assert (judged.accepted, judged.fault) == (False, "")
    assert judged.codes


@pytest.mark.nightly
def test_the_command_that_makes_more_cases(tmp_path: Path) -> None:
    """In a process of its own, without what pytest puts on the path."""
    command = [sys.executable, "-m", "tools.fuzzing", "--count", "3", "--keep", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "3 files from seed 0" in ran.stdout


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.realtime
@pytest.mark.parametrize("number", STOPS)
def test_what_stops_the_command_leaves_its_tally(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tools.fuzzing", "--count", "100000", "--seed", "7"]
    command += ["--keep", str(tmp_path)]
    often = {**os.environ, "FUZZ_EACH_SECONDS": "0"}
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=often)
    assert running.stdout is not None
    with running, running.stdout:
        assert running.stdout.readline().startswith("1 files from seed 7 in ")
        running.send_signal(number)
        told = running.stdout.read().splitlines()
    assert re.match(r"stopped: \d+ files from seed 7 in \d+ s: .* 0 failed; ", told[-2])
    assert told[-1].startswith("refused with ")
    assert running.returncode == 130


@pytest.mark.realtime
@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("module", ["yaml", "low_latency_endpoint.settings"])
def test_what_stops_the_command_before_its_first_case(number: signal.Signals, module: str) -> None:
    """While it imports a module, which sends the signal."""
    code = (
        "import builtins, os, runpy, sys; was = builtins.__import__\n"
        "def read(name, *more, **named):\n"
        f"    if {module!r} in name or {module.rpartition('.')[2]!r} == name:\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "    return was(name, *more, **named)\n"
        "builtins.__import__ = read\n"
        "sys.argv[1:] = ['--count', '1']\n"
        "runpy.run_module('tools.fuzzing', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout == "stopped: before the first case\n"
