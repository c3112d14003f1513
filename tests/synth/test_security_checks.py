"""What four packs of cdk-nag find in everything that ships, against docs/reference/security-checks.md."""

from __future__ import annotations

import json
import re
import runpy
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aws_cdk as cdk
import cdk_nag
import pytest

from low_latency_endpoint import LoadTestFleetStack, LowLatencyEndpointStack
from low_latency_endpoint.settings import load_settings

from .judges import cfn_lint

ROOT = Path(__file__).parents[2]
FLAGS = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
PACKS = (
    cdk_nag.AwsSolutionsChecks,
    cdk_nag.NIST80053R5Checks,
    cdk_nag.PCIDSS321Checks,
    cdk_nag.HIPAASecurityChecks,
)
SETTINGS = [
    "endpoint.yaml",
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.yaml"))),
]
EXAMPLES = [
    f"examples/{path.name}"
    for path in sorted((ROOT / "examples").glob("*.py"))
    if "app.synth()" in path.read_text(encoding="utf-8")
]


class Row(NamedTuple):
    finding: str
    where: str
    gone_with: str
    why: str


def rows():
    text = (ROOT / "docs/reference/security-checks.md").read_text(encoding="utf-8")
    section = text.partition("## What the packs find")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return [
        Row(finding.strip("` "), where.strip("`"), gone_with, why)
        for finding, where, gone_with, why in cells
    ]


def found_in(name, folder):
    """Pairs of a rule, without its pack's name, and the path of a construct below its stack."""
    app = cdk.App(outdir=str(folder), context=FLAGS, analytics_reporting=False)
    cdk.Validations.of(app).add_plugins(*(pack(app) for pack in PACKS))
    if name.endswith(".yaml"):
        settings = load_settings(str(ROOT / name))
        env = cdk.Environment(account="123456789012", region="us-east-1")
        serving = LowLatencyEndpointStack(app, settings.stack_name, settings=settings, env=env)
        LoadTestFleetStack(app, "Fleet", serving=serving, env=env)
        synthesise = app.synth
    else:
        synthesise = partial(runpy.run_path, str(ROOT / name), run_name="__main__")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdk, "App", lambda: app)  # an example makes its own, and synthesises
        with pytest.raises(RuntimeError, match="ValidationFailed"):
            synthesise()
    report = json.loads((folder / "validation-report.json").read_text(encoding="utf-8"))
    return {
        (
            re.sub(r"^(NIST\.800\.53\.R5|PCI\.DSS\.321|HIPAA\.Security)-", "", each["ruleName"]),
            construct["constructPath"],
        )
        for plugin in report["pluginReports"]
        for each in plugin.get("violations", [])
        for construct in each["violatingConstructs"]
        if not each["ruleName"].startswith("Annotation")
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return {name: found_in(name, tmp_path_factory.mktemp("out")) for name in [*SETTINGS, *EXAMPLES]}


def explained(finding, table):
    rule, path = finding
    return any(rule == row.finding and fnmatch(path, row.where) for row in table)


def test_every_finding_is_explained(found):
    table = rows()
    unexplained = {
        (name, *finding)
        for name, findings in found.items()
        for finding in findings
        if not explained(finding, table)
    }
    assert unexplained == set()


def test_every_explanation_has_a_finding(found):
    findings = set().union(*found.values())
    idle = [row for row in rows() if not any(explained(each, [row]) for each in findings)]
    assert idle == []


def test_the_example_for_regulated_organisations_keeps_only_what_stays(found):
    stays = [row for row in rows() if row.gone_with == "-"]
    left = {each for each in found["examples/regulated.yaml"] if not explained(each, stays)}
    assert left == set()


def test_every_reason_is_one():
    """Likewise refers to the row before, which has one."""
    table = rows()
    assert len(table) > 10
    for row in table:
        assert row.why.startswith("Likewise") or len(row.why.split()) >= 4, row
        assert "AwsSolutions" not in row.finding  # acknowledged at the resource, or fixed


def test_cfn_lint_finds_nothing_in_the_example_for_regulated_organisations(tmp_path):
    app = cdk.App(outdir=str(tmp_path), context=FLAGS, analytics_reporting=False)
    settings = load_settings(str(ROOT / "examples/regulated.yaml"))
    LowLatencyEndpointStack(
        app,
        "Regulated",
        settings=settings,
        env=cdk.Environment(account="123456789012", region="us-east-1"),
    )
    app.synth()
    template = (tmp_path / "Regulated.template.json").read_text(encoding="utf-8")
    assert cfn_lint(template) == []
