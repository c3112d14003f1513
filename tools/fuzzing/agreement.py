"""One settings file: its problems have lines, and what synthesis refuses has a code and a setting."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from low_latency_endpoint.change.synthesis import vpc_of_settings
from low_latency_endpoint.cli.plan import PlanOptions
from low_latency_endpoint.cli.plan import plan as plan_command
from low_latency_endpoint.errors import ConfigurationError, SettingsError
from low_latency_endpoint.facts.zones import region_of_zone
from low_latency_endpoint.options.option import options_of
from low_latency_endpoint.plan.launched_names import as_named
from low_latency_endpoint.settings import Settings, load_settings
from low_latency_endpoint.settings.stack import NAMES_OF_PARTS
from tests.pinned_models import written_lock

from .cases import FILES, ROOT

SLOW_SECONDS = 5.0
ACCOUNT = "123456789012"
"""In which stacks are synthesised whose settings state no account."""


@dataclass(frozen=True)
class Judged:
    """What became of a file; ``fault`` says what should not have been."""

    accepted: bool
    codes: tuple[str, ...] = ()
    fault: str = ""
    seconds: float = 0.0
    resources: int = 0


@contextlib.contextmanager
def folder_of_files() -> Iterator[Path]:
    """A folder with what settings name beside themselves."""
    folder = Path(tempfile.mkdtemp(prefix="plan-fuzz-"))
    try:
        written_lock(folder)
        for name, content in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder)


def text_of(values: Any) -> str:
    """The settings as YAML; what UTF-8 cannot carry stands there as an escape."""
    return yaml.safe_dump(values, sort_keys=False, width=10_000)


def judge(text: str, folder: Path, *, synthesise: bool) -> Judged:
    """Plan a settings file in that folder, and synthesise what is accepted if asked to."""
    file = folder / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    try:
        settings = load_settings(file)
    except SettingsError as error:
        seconds = time.process_time() - began
        codes = tuple(sorted({problem.code for _, problem in error.problems}))
        return Judged(False, codes, _lines_fault(text, error) or _slow(seconds), seconds)
    except Exception as error:  # the subject of this test
        return Judged(False, (), f"loading: {type(error).__name__}: {error}")
    try:
        _print_all(file)
    except Exception as error:  # the subject of this test
        return Judged(True, (), f"printing: {type(error).__name__}: {error}")
    seconds = time.process_time() - began
    if not synthesise:
        return Judged(True, (), _slow(seconds), seconds)
    try:
        template = synthesised(settings)
    except ConfigurationError as error:
        fault = _refusal_fault(settings, error) or _slow(seconds)
        return Judged(True, (error.code,), fault, seconds)
    except Exception as error:  # the subject of this test
        return Judged(True, (), f"synthesis: {type(error).__name__}: {str(error)[:2000]}", seconds)
    made = len(template["Resources"])
    return Judged(True, (), _slow(seconds), seconds, made)


def _refusal_fault(settings: Settings, error: ConfigurationError) -> str:
    """What a refusal lacks: a code, or the name of a setting in the place that it names."""
    if not (error.code.startswith("LL") and error.what and error.allowed):
        return f"synthesis: no code or words: {error}"
    options = (option.name.replace("_", "") for option in options_of(Settings))
    names = {*(key.lower() for key in settings.endpoints), *options}
    if names.isdisjoint(re.split(r"[./]", error.where.replace("_", "").lower())):
        return f"synthesis: no setting is named: {error}"
    return ""


def _slow(seconds: float) -> str:
    return f"slow: {seconds:.1f} s of processor time" if seconds > SLOW_SECONDS else ""


def _print_all(file: Path) -> None:
    for form in ({}, {"json": True}, {"markdown": True}):
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
            plan_command(
                **{**dataclasses.asdict(PlanOptions(settings=[str(file)], verbose=True)), **form}
            )
            out.flush()
            if not out.buffer.getvalue():
                raise AssertionError("an empty plan")


def _lines_fault(text: str, error: SettingsError) -> str:
    if not error.problems:
        return "refused without a problem"
    marks = _line_of_each_path(text, [problem.where for _, problem in error.problems])
    for line, problem in error.problems:
        if not (problem.code.startswith("LL") and problem.what and problem.allowed):
            return f"a problem without a code or words: {problem}"
        where = problem.where
        while where and where not in marks:  # a missing setting has the line of what is around it
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        if problem.where and line != marks.get(where, 1):
            return f"line {line} instead of {marks.get(where, 1)} for {problem}"
    str(error).encode("utf-8")
    return ""


def _line_of_each_path(text: str, wanted: list[str]) -> dict[str, int]:
    """An oracle of its own: the lines of what lies on the way there, as PyYAML's nodes have them.

    Nowhere else: an alias may hold itself.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return {}
    lines: dict[str, int] = {}

    def visit(node: yaml.Node, path: str, line: int) -> None:
        if not any(each.startswith(path) for each in wanted):
            return
        lines[path] = line
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                for name in {key.value, key.value.encode("unicode_escape").decode()}:
                    visit(value, f"{path}.{name}" if path else str(name), key.start_mark.line + 1)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                visit(value, f"{path}[{index}]", value.start_mark.line + 1)

    if root is not None:
        visit(root, "", root.start_mark.line + 1)
    return lines


@cache
def _flags() -> dict[str, Any]:
    flags: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**flags, "@aws-cdk/core:failSynthOnValidationErrors": False}


def synthesised(settings: Settings) -> dict[str, Any]:
    """The template in the stack of the settings' name."""
    template: dict[str, Any] = as_named(template_of(settings))
    return template


def template_of(settings: Settings) -> dict[str, Any]:
    """The template, as the CDK's command line gets it: what is looked up is found in between."""
    import aws_cdk as cdk

    from low_latency_endpoint import LowLatencyEndpointStack

    region = settings.region or region_of_zone(settings.client_zones.zones[0]) or "us-east-1"
    env = cdk.Environment(account=settings.account or ACCOUNT, region=region)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stderr(io.StringIO()):
        for number in range(2):
            folder = Path(out, str(number))
            app = cdk.App(
                context={**_flags(), **found}, outdir=str(folder), analytics_reporting=True
            )  # as the CLI has it
            stack = LowLatencyEndpointStack(app, settings.stack_name, settings=settings, env=env)
            _refuse_unknown_names([child.node.id for child in stack.node.children], settings)
            stack.synth()
            missing = json.loads((folder / "manifest.json").read_text()).get("missing", ())
            if not missing:
                break
            if number:
                raise AssertionError(f"looked up and still missing: {missing}")
            found = {each["key"]: vpc_of_settings(settings, each["props"]) for each in missing}
        template: dict[str, Any] = json.loads(
            (folder / f"{settings.stack_name}.template.json").read_text()
        )
        _refuse_violations(folder / "validation-report.json")
    return template


def _refuse_unknown_names(names: list[str], settings: Settings) -> None:
    """What the stack calls its parts, no endpoint may be called: the plan has to know it."""
    unknown = [
        name
        for name in names
        if name not in NAMES_OF_PARTS
        and not name.startswith(("Vpc-vpc-", "Subnet-"))
        and not any(
            name in (key, f"MutableRole{key}-Role") or name.startswith((f"{key}-", f"{key}."))
            for key in settings.endpoints
        )
    ]
    if unknown:
        raise AssertionError(f"parts that the plan does not know: {unknown}")


def _refuse_violations(report: Path) -> None:
    """What the CDK's own look at the template calls an error; of the last run, as its CLI does."""
    if report.exists():
        found = [
            f"{violation['ruleName']}: {violation['description']}"
            for plugin in json.loads(report.read_text())["pluginReports"]
            for violation in plugin["violations"]
            if violation["severity"] == "error"
        ]
        if found:
            raise AssertionError("; ".join(found))
