"""Runs the steps, remembers them in a file, and goes on from there after a kill."""

from __future__ import annotations

import json
import os
import platform
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from low_latency_endpoint import __version__

from . import looking
from .evidence import redact
from .steps import Pace, Run, Step, StepFailed, known_names
from .sweep import sweep
from .world import ROOT, World

SCHEMA = 1


class NotThisRun(Exception):
    """The state file is that of a run elsewhere."""


def read_state(path: Path, world: World) -> dict[str, Any]:
    """The state of the run that the file remembers; a new one where it remembers none."""
    place = {"account": world.account, "region": world.region, "target": world.target}
    state = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if not state or state.get("finished"):
        return {
            **place,
            "suffix": secrets.token_hex(4),
            "kept": {},
            "steps": {},
            "began": datetime.now(UTC).strftime("%Y-%m-%d"),
            "versions": versions(),
        }
    if any(state[key] != value for key, value in place.items()):
        raise NotThisRun(
            f"{path} is the state of a run in {state['account']}, {state['region']} "
            f"({state['target']}). Finish or sweep that one, or name another file."
        )
    return dict(state)


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write all of it or nothing: a kill in between leaves the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(json.dumps(state))  # in one go: json.dump takes Python's encoder, which is slow
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def run_steps(
    world: World,
    path: Path,
    steps: Iterable[Step],
    *,
    pace: Pace | None = None,
    evidence_folder: Path,
    keep: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Do the steps that are not done yet, write the evidence, sweep; gives the exit status.

    A step that fails ends the run: evidence of what was seen is written all the same, and
    everything is swept unless ``keep`` is set.
    """
    state = read_state(path, world)
    write_state(path, state)
    run = Run(
        world, state["suffix"], state["kept"], pace or Pace(), save=lambda: write_state(path, state)
    )
    failure = ""
    for step in steps:
        done = state["steps"].get(step.name, {})
        if done.get("status") == "done":
            continue
        if failure := _do(step, run, state, path, say):
            break
    if failure and keep:
        say(f"kept: {run.name}. Run again to go on, or sweep.")
        return 1
    say("sweep")
    state["left"] = sweep(world, state["suffix"], say)
    write_state(path, state)
    evidence = _write_evidence(state, evidence_folder)
    state["finished"] = True
    write_state(path, state)
    say(f"evidence: {evidence}")
    for line in state["left"]:
        say(f"left: {line}")
    return 1 if failure or state["left"] else 0


def _do(step: Step, run: Run, state: dict[str, Any], path: Path, say: Callable[[str], None]) -> str:
    """One step; gives why it failed, or nothing."""
    say(f"{step.name}: {step.asserts} (about {step.minutes:.0f} minutes at AWS)")
    record = state["steps"].setdefault(step.name, {"status": "started"})
    looking.settled(run.world, run.name)
    if "marker" not in record:  # a step that is done again is measured from its first start
        record["marker"] = run.mark()
    record["status"] = "started"
    write_state(path, state)
    run.marker = record["marker"]
    began = time.monotonic()
    try:
        record |= {"saw": step.act(run), "status": "done", "why": ""}
    except StepFailed as failure:
        record |= {"status": "failed", "why": str(failure)}
        if failure.saw:
            record["saw"] = failure.saw
        say(f"{step.name} failed: {failure}")
    record["minutes"] = round((time.monotonic() - began) / 60, 2)
    write_state(path, state)
    stack = str(record.get("saw", {}).get("left_as", ""))
    if stack.endswith("_FAILED"):
        return f"nothing can be deployed any more: the stack is {stack}"
    return str(record.get("why", ""))


def versions() -> dict[str, str]:
    """What made the evidence."""

    def told(*command: str) -> str:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    cli = json.loads((ROOT / "package-lock.json").read_text("utf-8"))
    return {
        "library": __version__,
        "commit": (told("git", "rev-parse", "--short", "HEAD") or "unknown")
        + ("-dirty" if told("git", "status", "--porcelain", "--untracked-files=no") else ""),
        "cdk_cli": cli["packages"]["node_modules/aws-cdk"]["version"],
        "aws_cdk_lib": version("aws-cdk-lib"),
        "boto3": version("boto3"),
        "python": platform.python_version(),
    }


def _write_evidence(state: dict[str, Any], folder: Path) -> Path:
    names = known_names(state["steps"], {})
    document = redact(
        {
            "schema": SCHEMA,
            "target": state["target"],
            "date": state["began"],
            "region": state["region"],
            "steps": {
                name: {key: value for key, value in record.items() if key != "marker"}
                for name, record in state["steps"].items()
            },
            "left": state["left"],
        },
        names,
    ) | {"versions": state["versions"]}
    folder.mkdir(parents=True, exist_ok=True)
    commit = state["versions"]["commit"]
    path = folder / f"{state['began']}-{state['region']}-{commit}.json"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")
    return path
