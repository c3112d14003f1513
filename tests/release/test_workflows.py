"""GitHub's files: of the published form, pinned, with the least rights, and calling what exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in WORKFLOWS}
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [GITHUB / "dependabot.yml"],
    "vendor.github-issue-config": [GITHUB / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-issue-forms": [
        GITHUB / "ISSUE_TEMPLATE" / "bug.yml", GITHUB / "ISSUE_TEMPLATE" / "feature.yml",
    ],
    "vendor.github-discussion": sorted((GITHUB / "DISCUSSION_TEMPLATE").glob("*.yml")),
}  # fmt: skip


def jobs():
    for name, text in TEXTS.items():
        for job, content in yaml.safe_load(text)["jobs"].items():
            yield f"{name}: {job}", content


@pytest.mark.parametrize("schema", SCHEMAS)
def test_they_are_of_the_published_form(schema):
    # Here: it brings grammars that take seconds, for each process that collects tests.
    from check_jsonschema.cli.main_command import main as check_jsonschema

    assert SCHEMAS[schema]
    arguments = ["--builtin-schema", schema, *map(str, SCHEMAS[schema])]
    done = CliRunner().invoke(check_jsonschema, arguments)
    assert done.exit_code == 0, done.output


def test_every_file_of_githubs_is_among_them():
    found = set(GITHUB.rglob("*.yml"))
    assert found == {path for paths in SCHEMAS.values() for path in paths}


def test_nothing_in_them_is_known_to_be_unsafe():
    command = [str(Path(sys.executable).parent / "zizmor"), "--offline", "--quiet", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_are_pinned_by_commit_with_their_version():
    for name, text in TEXTS.items():
        for line in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), (name, line)


def test_an_action_has_one_version_in_all_workflows():
    used = {line for text in TEXTS.values() for line in re.findall(r"uses: (.*)", text)}
    names = [line.partition("@")[0] for line in used]
    assert len(names) == len(set(names)), names


def test_each_job_states_its_rights():
    for text in TEXTS.values():
        assert yaml.safe_load(text)["permissions"] == {}
    rights = {name: job["permissions"] for name, job in jobs()}
    more = {name: given for name, given in rights.items() if given != {"contents": "read"}}
    assert more == {
        "release.yml: attest": {"attestations": "write", "id-token": "write"},
        "release.yml: publish": {"id-token": "write"},
        "release.yml: github-release": {"contents": "write"},
        "release.yml: site": {"contents": "write"},
    }


def test_what_has_rights_runs_for_tags_alone_and_no_code_of_the_repository():
    for name, job in jobs():
        if job["permissions"] == {"contents": "read"}:
            continue
        assert job["if"] == "github.event_name == 'push' && github.ref_type == 'tag'", name
        uses = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        assert "actions/checkout" not in uses, name
        runs = "\n".join(step.get("run", "") for step in job["steps"])
        assert not re.search(r"\b(make|python|pip)\b", runs), name


def test_a_release_is_published_only_after_the_build_and_from_its_environment():
    workflow = yaml.safe_load(TEXTS["release.yml"])
    tags = ["v*", "low-latency-client-v*", "local-sagemaker-v*"]
    assert workflow[True]["push"] == {"tags": tags}  # YAML's `on`
    assert "pull_request" in workflow[True]
    steps = workflow["jobs"]
    assert steps["attest"]["needs"] == "build"
    assert steps["publish"]["needs"] == ["build", "attest"]
    assert steps["publish"]["environment"] == "pypi"
    assert steps["github-release"]["needs"] == ["build", "publish"]
    assert steps["site"]["needs"] == "github-release"


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("v0.2.0", "cdk-low-latency-endpoint"),
        ("low-latency-client-v0.2.0", "low-latency-client"),
        ("local-sagemaker-v0.2.0rc1", "local-sagemaker"),
    ],
)
def test_a_tag_names_one_distribution(tag, name, tmp_path):
    workflow = yaml.safe_load(TEXTS["release.yml"])
    (step,) = [
        step for step in workflow["jobs"]["build"]["steps"] if step.get("id") == "distribution"
    ]
    output = tmp_path / "output"
    environment = {**os.environ, "TAG": tag, "GITHUB_OUTPUT": str(output)}
    subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, check=True)
    assert output.read_text() == f"name={name}\n"


def test_the_dry_run_says_at_its_end_what_it_leaves_out():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\nrelease-dry-run:")[2].partition("\n\n")[0]
    end = recipe.rpartition("\t@echo ")[2]
    workflow = yaml.safe_load(TEXTS["release.yml"])
    left_out = [name for name in workflow["jobs"] if name != "build"]
    assert re.findall(r"([\w-]+) \(", end) == left_out


def test_no_clone_keeps_credentials():
    for name, job in jobs():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name


def test_what_they_run_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name, job in jobs():
        for step in job["steps"]:
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in targets, (name, target)


def test_hooks_before_a_commit_are_the_pinned_tools():
    """By path: the versions of requirements-dev.txt, and no others from elsewhere."""
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = settings["repos"]
    assert repository["repo"] == "local"
    tools = {hook["entry"].split()[0] for hook in repository["hooks"]}
    assert tools == {".venv/bin/ruff", ".venv/bin/mypy"}


def test_owners_are_named_for_paths_that_exist():
    lines = (GITHUB / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    rules = [line.split() for line in lines if line and not line.startswith("#")]
    for pattern, *owners in rules:
        assert owners
        assert list(ROOT.glob(pattern.strip("/"))), pattern
