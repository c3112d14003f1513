"""What validators say of our templates: cdk-nag, cfn-lint, security checks."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from docs.make_scanner_table import scanner_table
from docs.make_settings_tables import rewrite

from low_latency_endpoint import (
    DataCapture,
    KeepWarmOptions,
    LoadTestFleetStack,
    LowLatencyEndpointStack,
    ModelData,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.settings import load_settings
from tests.cdk_features import needs_cdk

from .conftest import WHOLE_STACKS
from .judges import REGION, cfn_lint, judged, packs

# cdk-nag and CDK's own rules are plugins of CDK's validation.
pytestmark = needs_cdk("CloudFormationValidatePlugin")

ROOT = Path(__file__).parents[2]
FLAGS = json.loads((ROOT / "cdk.json").read_text())["context"]
KEY = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000"


REGIONS = [
    pytest.param(REGION, id="region"),
    pytest.param(None, id="agnostic", marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=REGIONS)
def assembly(request, new_stack, fill):
    """Whole stacks, many to an app: most of what judging costs, it costs once for each app.

    Two whose links are in the same VPC are apart: it takes one private DNS (LLE211).
    """
    folders = {}
    existing = [name for name in WHOLE_STACKS if "existing-vpc" in name]
    for names in (
        [name for name in WHOLE_STACKS if name not in existing],
        *([n] for n in existing),
    ):
        app = None
        for name in names:
            stack = new_stack(region=request.param, name=name, app=app)
            app = cdk.App.of(stack)
            fill(stack, name)
        # Raises on any finding of CDK's rules and of cdk-nag, with the path of what it is about.
        folder = Path(judged(app).synth().directory)
        folders |= dict.fromkeys(names, folder)
    return folders


@pytest.mark.parametrize("name", WHOLE_STACKS)
def test_nothing_to_find(assembly, name):
    template = (assembly[name] / f"{name}.template.json").read_text()
    assert len(json.loads(template)["Resources"]) > 2
    assert cfn_lint(template) == []


@pytest.mark.parametrize("region", REGIONS)
def test_nothing_to_find_in_a_warm_up_with_all_its_options(new_stack, parts, region):
    stack = new_stack(region=region)
    judged(stack.node.root)
    options = WarmUpOptions(
        payload=WarmUpPayload(data={"inputs": "I like you."}),
        metrics=True,
        keep_warm=KeepWarmOptions(),
    )
    endpoint = parts.endpoint(stack)
    network = stack.node.find_child("Network")
    link = RuntimePrivateLink(stack, "Link", network=network)
    WarmUp(stack, "WarmUp", endpoint=endpoint, private_link=link, network=network, options=options)
    assembly = stack.node.root.synth()  # raises with the findings
    template = Path(assembly.directory, "Serving.template.json").read_text()
    assert cfn_lint(template) == []


def test_buckets_and_keys_of_another_stack(new_stack, parts):
    data = new_stack(name="Data")
    judged(cdk.App.of(data))
    key = kms.Key(data, "Key", enable_key_rotation=True)
    bucket = s3.Bucket(
        data, "Bucket", encryption_key=key, enforce_ssl=True, server_access_logs_prefix="access/"
    )
    stack = new_stack(app=cdk.App.of(data))
    model = parts.serving(stack, data=ModelData.from_s3(bucket, "llama/"))
    capture = DataCapture(s3=f"s3://{bucket.bucket_name}/captured", key=key)
    parts.configuration(stack, variants=[parts.variant(stack, model=model)], data_capture=capture)
    assembly = cdk.App.of(data).synth()  # raises on any finding
    template = (Path(assembly.directory) / "Serving.template.json").read_text()
    assert '"s3:PutObject"' in template


SETTINGS = [
    "endpoint.yaml",
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.yaml"))),
]

# Every right that a settings file can ask for, in one endpoint.
EVERYTHING = f"""
stack_name: Everything
region: {REGION}
client_zones: {{ids: [use1-az1, use1-az2]}}
private_link: {{sagemaker_api: true, bidirectional_streaming: true}}
tags: {{team: search}}
alarm_topic_arn: arn:aws:sns:{REGION}:123456789012:on-call
endpoints:
  ranking:
    containers:
      - image: {{ecr: {{repository: ranking}}}}
        data: {{s3_prefix: s3://models/ranking/}}
    instance_type: ml.m5.large
    latency: {{p99: 200ms}}
    network_isolation: true
    throughput: {{peak_tps: 1000, tps_per_instance: 200}}
    data_capture: {{s3: s3://captured/ranking/}}
    core_dump: {{s3: s3://captured/cores/, kms_key_arn: {KEY}}}
    kms_key_arn: {KEY}
    warm_up: {{payload: {{data: {{a: 1}}}}, keep_warm: {{every: 5m}}}}
    metrics: {{enhanced: true}}
"""


def judged_app(outdir):
    return judged(cdk.App(outdir=str(outdir), context=FLAGS, analytics_reporting=False))


@pytest.mark.parametrize("settings", [*SETTINGS, "everything"])
def test_nothing_to_find_in_a_settings_files_stack(tmp_path, settings):
    path = ROOT / settings
    if settings == "everything":
        path = tmp_path / "endpoint.yaml"
        path.write_text(EVERYTHING)
    loaded = load_settings(str(path))
    app = judged_app(tmp_path / "cdk.out")
    env = cdk.Environment(account="123456789012", region=REGION)
    LowLatencyEndpointStack(app, loaded.stack_name, settings=loaded, env=env)
    app.synth()
    (template,) = (tmp_path / "cdk.out").glob("*.template.json")
    assert cfn_lint(template.read_text()) == []


@pytest.fixture(scope="module")
def both_stacks(tmp_path_factory):
    """Both stacks of app.py, before the judges of this file: their rules are loaded once."""
    app = judged_app(tmp_path_factory.mktemp("assembly"))
    env = cdk.Environment(account="123456789012", region="us-east-1")
    settings = load_settings(str(ROOT / "endpoint.yaml"))
    serving = LowLatencyEndpointStack(app, "Serving", settings=settings, env=env)
    LoadTestFleetStack(app, "Testing", serving=serving, env=env)
    return app.synth()


def test_the_stack_for_load_tests_passes(both_stacks):
    template = (Path(both_stacks.directory) / "Testing.template.json").read_text()
    assert cfn_lint(template) == []


def test_the_endpoints_stack_does_not_need_the_fleets(both_stacks):
    stacks = {stack.stack_name: stack for stack in both_stacks.stacks}
    assert "Testing" not in str([d.id for d in stacks["Serving"].dependencies])
    assert "LoadTest" not in json.dumps(stacks["Serving"].template["Resources"])
    # Weak references: the fleet's stack holds nothing of the endpoints' stack in place.
    assert "Fn::ImportValue" not in json.dumps(stacks["Testing"].template)
    assert "Fn::GetStackOutput" in json.dumps(stacks["Testing"].template)


EXAMPLE_APPS = [
    path
    for path in sorted((ROOT / "examples").glob("*.py"))
    if "app.synth()" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", EXAMPLE_APPS, ids=lambda path: path.stem)
def test_nothing_to_find_in_an_example(tmp_path, monkeypatch, path):
    app = judged_app(tmp_path)
    monkeypatch.setattr(cdk, "App", lambda: app)
    runpy.run_path(str(path), run_name="__main__")  # synthesises
    (template,) = tmp_path.glob("*.template.json")
    assert cfn_lint(template.read_text()) == []


@pytest.mark.parametrize("name", ["network-by-zone-id", "models", "two-patterns", "keys"])
def test_findings_are_acknowledged_one_by_one_and_with_a_reason(stack, fill, name):
    fill(stack, name)
    acknowledged = {
        (construct.node.path, rule): reason
        for construct in stack.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:acknowledged-rules"
        for rule, reason in entry.data.items()
    }
    assert acknowledged
    for (path, rule), reason in acknowledged.items():
        assert len(reason.split()) >= 4, f"{path}: why is {rule} acknowledged?"
        # Only wildcards in resources, each by name, on the one construct that has it.
        assert "AwsSolutions-IAM5[Resource::" in rule
        assert path != "Serving"


def test_the_judges_are_awake(stack):
    judged(cdk.App.of(stack))
    s3.Bucket(stack, "Open")
    # CDK's default rules look only at GameLift so far; those that come judge our stacks as well.
    ports = {"FromPort": 2, "ToPort": 1, "IpRange": "10.0.0.0/8", "Protocol": "TCP"}
    fleet = {"Name": "fleet", "EC2InboundPermissions": [ports]}
    cdk.CfnResource(stack, "Fleet", type="AWS::GameLift::Fleet", properties=fleet)
    cdk.CfnResource(stack, "Broken", type="AWS::S3::Bucket", properties={"BucketNam": "b"})
    with pytest.raises(RuntimeError) as raised:
        cdk.App.of(stack).synth()
    assert "AwsSolutions-S1" in str(raised.value)
    assert "CDK-GameLift-001" in str(raised.value)
    assert "CloudFormation Validate" in str(raised.value)
    for kind, name in (("AWS::S3::Bucket", "BucketNam"), ("AWS::EC2::Subnet", "Zone")):
        resource = {"Type": kind, "Properties": {name: "x"}}
        assert cfn_lint(json.dumps({"Resources": {"R": resource}}))


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


PAGE = (ROOT / "docs/reference/security-checks.md").read_text(encoding="utf-8")


def cells(heading):
    """The cells of each row of a section's table."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith(("| `", "| -"))
    ]


def rows():
    """A row for each finding and each place that a line of the table names."""
    return [
        Row(finding, where, gone_with, why)
        for findings, places, gone_with, why in cells("What the checks find")
        for finding in names(findings)
        for where in names(places)
    ]


def names(cell):
    return [name.strip("` ") for name in cell.split(", ")]


class ScannerRule(NamedTuple):
    """A rule of checkov or of Guard, and cdk-nag's name for it."""

    type: str
    nag: str = ""
    checkov: str = ""
    guard: str = ""
    lacks: tuple[str, ...] = ()
    has: str = ""
    silent: bool = False

    @property
    def finding(self):
        return self.nag or self.checkov or self.guard

    @property
    def acknowledged(self):
        """Whether the resource has the reason, for cdk-nag too, and the page none."""
        return self.nag.startswith("AwsSolutions")

    def finds(self, resource):
        properties = resource.get("Properties", {})
        return (
            re.fullmatch(self.type, resource["Type"])
            and not any(properties.get(name) for name in self.lacks)
            and re.search(self.has, json.dumps(properties, sort_keys=True))
        )


SCANNERS = yaml.safe_load((Path(__file__).parent / "scanner_rules.yaml").read_text("utf-8"))
SCANNER_RULES = [ScannerRule(**rule) for rule in SCANNERS["rules"]]


def resources_in(folder):
    """Path -> resource of all templates of an app; a path has the stack's ID."""
    return {
        resource["Metadata"]["aws:cdk:path"]: resource
        for file in folder.glob("*.template.json")
        for resource in json.loads(file.read_text(encoding="utf-8"))["Resources"].values()
    }


def scanned(folder):
    """Pairs of a scanner's rule and a resource's path."""
    return [
        (rule, path)
        for path, resource in resources_in(folder).items()
        for rule in SCANNER_RULES
        if rule.finds(resource)
    ]


def found_in(name, folder):
    """Pairs of a rule, without its pack's name, and the path of a construct below its stack."""
    context = {**FLAGS, "aws:cdk:enable-path-metadata": True}
    app = cdk.App(outdir=str(folder), context=context, analytics_reporting=False)
    cdk.Validations.of(app).add_plugins(*(pack(app) for pack in packs()))
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
def folders(tmp_path_factory):
    """Name of a settings file or an example -> where its app's templates are."""
    return {name: tmp_path_factory.mktemp("out") for name in [*SETTINGS, *EXAMPLES]}


@pytest.fixture(scope="module")
def found(folders):
    findings = {name: found_in(name, folder) for name, folder in folders.items()}
    for name, folder in folders.items():
        for rule, path in scanned(folder):
            if not rule.acknowledged:
                findings[name].add((rule.finding, path))
    return findings


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


def test_the_page_has_each_rule_of_other_scanners_by_its_names(tmp_path):
    copy = tmp_path / "page.md"
    copy.write_text(PAGE, encoding="utf-8")
    rewrite(copy, scanner_table())
    assert copy.read_text(encoding="utf-8") == PAGE, "run: make docs"
    for rule in SCANNER_RULES:
        assert {rule.nag, rule.checkov, rule.guard} - {""} <= set(re.findall(r"`(.+?)`", PAGE))
    assert f"checkov {SCANNERS['checkov']}" in PAGE


def answers(rule, path):
    return [row for row in rows() if explained((rule.finding, path), [row])]


def test_templates_acknowledge_what_no_setting_removes_and_nothing_else(found, folders):
    assert found
    for folder in folders.values():
        final = {path: set() for path in resources_in(folder)}
        for rule, path in scanned(folder):
            stays = all(row.gone_with == "-" for row in answers(rule, path)) and not rule.silent
            final[path] |= {rule.checkov, rule.guard} - {""} if stays else set()
        acknowledged = {}
        for path, resource in resources_in(folder).items():
            metadata = resource["Metadata"]
            skipped = [entry["id"] for entry in metadata.get("checkov", {}).get("skip", [])]
            rules = [*skipped, *metadata.get("guard", {}).get("SuppressedRules", [])]
            acknowledged[path] = set(rules)
            assert len(rules) == len(acknowledged[path])
        assert acknowledged == final


def test_templates_and_the_page_give_the_same_reasons(found, folders):
    assert found
    compared = set()
    for folder in folders.values():
        resources = resources_in(folder)
        for rule, path in scanned(folder):
            skips = resources[path]["Metadata"].get("checkov", {}).get("skip", [])
            for comment in [skip["comment"] for skip in skips if skip["id"] == rule.checkov]:
                compared.add(rule.checkov)
                assert len(comment.split()) >= 4
                for row in answers(rule, path):
                    assert row.why.startswith(comment.rstrip("."))
    assert compared == {"CKV_AWS_18", "CKV_AWS_21", "CKV_AWS_111", "CKV_AWS_115", "CKV_AWS_116"}


@pytest.mark.skipif("CHECKOV" not in os.environ, reason="`make checkov` has checkov")
def test_checkov_finds_what_our_conditions_of_its_rules_find(found, folders):
    assert found
    for folder in folders.values():
        options = [
            "--framework",
            "cloudformation",
            "--compact",
            "--skip-download",
            "-o",
            "json",
            "-d",
        ]
        command = [os.environ["CHECKOV"], *options, str(folder)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        report = json.loads(run.stdout)
        assert report["summary"]["checkov_version"] == SCANNERS["checkov"]
        results = report["results"]
        paths = {
            (file.name, logical_id): resource["Metadata"]["aws:cdk:path"]
            for file in folder.glob("*.template.json")
            for logical_id, resource in json.loads(file.read_text("utf-8"))["Resources"].items()
        }
        checked = {
            (
                check["check_id"],
                paths[Path(check["file_path"]).name, check["resource"].split(".")[1]],
            )
            for check in [*results.get("failed_checks", []), *results.get("skipped_checks", [])]
        }
        assert checked == {(rule.checkov, path) for rule, path in scanned(folder) if rule.checkov}


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
