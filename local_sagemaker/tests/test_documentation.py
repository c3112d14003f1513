"""What the pages say and the wheel holds: the first call works, links lead somewhere, nothing is missing."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import runpy
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import boto3
import pytest
from commands import command, python

import local_sagemaker
from local_sagemaker import RuntimeOptions
from local_sagemaker.resources.table import TYPES

pytest_plugins = ("pytester",)
PROJECT = Path(__file__).resolve().parents[1]
README = PROJECT / "README.md"
PAGES = [README, *sorted((PROJECT / "docs").glob("*.md"))]
SOURCES = PROJECT / "src" / "local_sagemaker"


# ------------------------------------------------------------------------------ README's snippets


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with README's files, which the test runs in."""
    blocks = re.findall(
        r"^```(?:python|ini)\n# (\S+)\n(.*?)^```",
        README.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert [name for name, _ in blocks] == [
        "serve.py",
        "first_invoke.py",
        "pytest.ini",
        "test_shout.py",
    ]
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # as where nothing ran before
    # `python serve.py` is the interpreter that has the package.
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    return tmp_path


def test_the_first_call(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (words,) = re.findall(
        r"^\$ local-sagemaker --model-server '(.*)'$", README.read_text("utf-8"), re.MULTILINE
    )
    with command("--model-server", words) as (_, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        runpy.run_path("first_invoke.py", run_name="__main__")
    assert capsys.readouterr().out == "b'HELLO'\n"


def test_the_fixture(project: Path, pytester: pytest.Pytester) -> None:
    shutil.copytree(project, pytester.path, dirs_exist_ok=True)
    # In a process of its own: afterwards pytester forgets the modules that came with it, and an
    # extension such as numpy's cannot be loaded again.
    found = pytester.runpytest_subprocess(
        "-q", "-p", "local_sagemaker.pytest_plugin", "-p", "no:cacheprovider"
    )
    found.assert_outcomes(passed=1)


# ------------------------------------------------------------------------------- links and names


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))
    for link in links:
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_one_hop_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[a-z-]+\.md)", README.read_text("utf-8")))
    assert linked == {f"docs/{page.name}" for page in PAGES[1:]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_is_named_is_there(page: Path) -> None:
    for name in re.findall(r"`([a-z_/]+\.py)`", page.read_text("utf-8")):
        assert (
            (SOURCES / name).is_file()
            or name in ("serve.py", "inference.py")
            or (PROJECT.parent / name).is_file()
        ), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_snippet_is_python_and_imports_what_there_is(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "local_sagemaker"
            ):
                exec(ast.unparse(node), {})


def test_a_question_on_deletes_is_answered_in_two_hops() -> None:
    """README -> page -> module."""
    (row,) = [line for line in README.read_text("utf-8").splitlines() if "is deleted?" in line]
    link = re.search(r"\((docs/cloudformation\.md)#(on-a-delete)\)", row)
    assert link
    section = (PROJECT / link[1]).read_text("utf-8").split("## On a delete")[1].split("\n## ")[0]
    for module in re.findall(r"`([a-z_/0-9]+\.py)`", section):
        assert (SOURCES / module).is_file(), module
    assert "`cloudformation/engine.py`, `delete_all`" in section
    assert "def delete_all" in (SOURCES / "cloudformation" / "engine.py").read_text()


def test_the_page_on_choices_names_options() -> None:
    page = (PROJECT / "docs" / "limits.md").read_text("utf-8")
    named = re.findall(r"^\| `(\w+)`:", page, re.MULTILINE)
    fields = {field.name for field in dataclasses.fields(RuntimeOptions)}
    assert len(named) >= 10
    assert set(named) <= fields


# ------------------------------------------------------------------------------ what is emulated


def test_the_table_of_types_equals_the_registry() -> None:
    page = (PROJECT / "docs" / "cloudformation.md").read_text("utf-8")
    rows = re.findall(r"^\| `(AWS::[A-Za-z0-9:]+)` \| (.*) \|$", page, re.MULTILINE)
    assert dict(rows) == {
        name: ", ".join(sorted(kind.properties)) if name != _CUSTOM else "all"
        for name, kind in TYPES.items()
    }
    assert [name for name, _ in rows] == sorted(TYPES)
    assert f"| {len(TYPES)} types, each" in README.read_text("utf-8")


_CUSTOM = "AWS::CloudFormation::CustomResource"


# Modules that name types without making resources of them.
_NOT_MADE = {Path(__file__).name, "test_refusals.py", "test_schemas.py"}


def test_every_type_is_deployed_by_a_test_of_this_folder() -> None:
    """The tests of a type create, change and delete it; here it is only that none is forgotten."""
    named = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name not in _NOT_MADE:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named.add(node.value)
    assert sorted(set(TYPES) - named) == []


# --------------------------------------------------------------------- a project of its own


def test_it_imports_nothing_but_what_it_asks_for() -> None:
    """What is imported is declared, or comes with what is declared: flask with werkzeug, and botocore."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[\[><=]", name)[0] for name in project["dependencies"]}
    names = {"pyyaml": "yaml"}
    allowed = {names.get(name, name) for name in declared} | {
        "botocore",
        "flask",
        "werkzeug",
        "local_sagemaker",
        # Started as programs of their own, by path, beside each other.
        "botocore_data",
        "lambda_bootstrap",
        "process_supervisor",
        *sys.stdlib_module_names,
    }
    optional = {"pytest", "cfnlint"}
    found: dict[str, str] = {}
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            found.update({module.partition(".")[0]: path.name for module in modules})
    assert {name: path for name, path in found.items() if name not in allowed | optional} == {}
    assert "low_latency_endpoint" not in found
    assert {names.get(name, name) for name in declared} <= {*found, "yaml"}


def test_no_relative_import_leaves_the_package() -> None:
    for path in SOURCES.rglob("*.py"):
        depth = len(path.relative_to(SOURCES).parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, f"{path}: line {node.lineno}"


def test_all_that_is_public_is_there() -> None:
    for name in local_sagemaker.__all__:
        assert getattr(local_sagemaker, name) is not None
    with pytest.raises(AttributeError):
        _ = local_sagemaker.nothing_of_that_name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    built_in = ("--no-isolation", "--outdir", str(folder), str(PROJECT))
    done = python("-m", "build", "--wheel", *built_in)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    assert built.name == f"local_sagemaker-{local_sagemaker.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(built)


def test_it_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    expected = {
        f"local_sagemaker/{path.relative_to(SOURCES).as_posix()}"
        for path in SOURCES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == expected
    assert {
        "local_sagemaker/py.typed",
        "local_sagemaker/resources/table.yaml",
        "local_sagemaker/schemas/resource_types.json",
        "local_sagemaker/lambda_modules/cfnresponse.py",
    } <= names


def test_it_installs_the_command_the_plugin_and_the_license(wheel: zipfile.ZipFile) -> None:
    texts = {
        name.partition(".dist-info/")[2]: wheel.read(name).decode()
        for name in wheel.namelist()
        if ".dist-info/" in name
    }
    assert "local-sagemaker = local_sagemaker.cli:main" in texts["entry_points.txt"]
    assert "pytest_plugin = local_sagemaker.pytest_plugin" in texts["entry_points.txt"]
    assert "Apache License" in texts["licenses/LICENSE"]
    assert "License-Expression: Apache-2.0" in texts["METADATA"]
    assert "Requires-Dist: low" not in texts["METADATA"]
