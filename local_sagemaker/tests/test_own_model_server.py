"""A user's own model server: the page's snippets, the commands, and the pytest fixture."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Served, command, python
from hosting_site import Site

pytestmark = pytest.mark.realtime

PROJECT = Path(__file__).resolve().parents[1]
PLUGIN = "local_sagemaker.pytest_plugin"
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


def snippets() -> dict[str, str]:
    """The page's blocks that are files, by their names."""
    pages = [PROJECT / "docs" / name for name in ("hosting.md", "pytest.md")]
    blocks = re.compile(r"^```(?:python|ini)\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return dict(blocks.findall("".join(page.read_text("utf-8") for page in pages)))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the page has, which the test runs in."""
    files = snippets()
    assert sorted(files) == ["inference.py", "pytest.ini", "serve.py", "test_ranker.py"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "local_sagemaker", *arguments, env={**os.environ, **environment})


def run_pytest(folder: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    # In the order of the files: a later one looks at what an earlier one has left.
    options = ["-q", "-p", PLUGIN, "-p", "no:randomly"]
    return python("-m", "pytest", *options, *arguments, cwd=folder, **more)


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[dict[str, str]]:
    """`local-sagemaker` as a process; gives the variables that it prints."""
    with command(*arguments) as (process, exported):
        yield exported
        process.terminate()
        assert process.wait(60) == 0


def answer(served: Served, image: str, body: bytes, **container: Any) -> bytes:
    """Create an endpoint for an image, and ask it."""
    here = Site(served)
    name = here.endpoint({"ModelName": here.model(image, **container)}, wait=False)
    assert here.settled(name, 240)["EndpointStatus"] == "InService"
    return here.invoke(name, body, ContentType="application/json")["Body"]


def test_the_page_s_servers_by_the_page_s_commands(project):
    image = f"{REGISTRY}/team/ranker:1"
    with serving("--model-server", "team/measure=python serve.py", "--image", image) as variables:
        served = Served(variables)
        assert json.loads(answer(served, "team/measure", b"12345")) == {"length": 5}
        added = run("add-model-server", "team/ranker=inference.py", **variables)
        assert (added.returncode, added.stdout) == (0, ""), added.stderr
        assert added.stderr == "New instances with team/ranker have this model server.\n"
        s3 = served.client("s3")
        s3.create_bucket(Bucket="models")
        s3.put_object(Bucket="models", Key="ranker/factor.txt", Body=b"2")
        place = {"S3Uri": "s3://models/ranker/", "S3DataType": "S3Prefix"}
        source = {"S3DataSource": {**place, "CompressionType": "None"}}
        assert answer(served, "team/ranker", b"[3, 1]", ModelDataSource=source) == b"[2.0, 6.0]"
        ecr = served.client("ecr")
        assert ecr.list_images(repositoryName="team/ranker")["imageIds"][0]["imageTag"] == "1"
        more = run("add-image", f"{REGISTRY}/team/other:2", **variables)
        assert more.returncode == 0, more.stderr
        assert ecr.list_images(repositoryName="team/other")["imageIds"][0]["imageTag"] == "2"

        another = {**variables, "LOCAL_SAGEMAKER_TOKEN": "another"}
        other = run("add-model-server", "x=simulated", **another)
        assert (other.returncode, other.stdout) == (2, "")
        assert "token" in other.stderr
        port = variables["AWS_ENDPOINT_URL"].rpartition(":")[2]
        taken = run("--port", port)
        assert (taken.returncode, taken.stdout) == (2, "")
        assert taken.stderr.startswith(f"# Starting\nport {port} cannot be served")
        assert taken.stderr.count("\n") == 2
    gone = run("add-image", image, **variables)
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "no local AWS answers" in gone.stderr


def test_the_fixture_as_the_page_uses_it(project):
    environment = {**os.environ, "AWS_PROFILE": "of-the-user", "AWS_ACCESS_KEY_ID": "of-the-user"}
    (project / "test_more.py").write_text(
        "import os\n"
        "def test_it_is_the_same_one(local_aws):\n"
        "    assert 'AWS_PROFILE' not in os.environ\n"
        "    assert os.environ['AWS_ENDPOINT_URL'] == local_aws.url\n"
        "    names = local_aws.client('sagemaker').list_endpoints()['Endpoints']\n"
        "    assert len(names) == int(os.environ['EXPECTED'])\n"
        "def test_the_user_s_variables_stay_without_it():\n"
        "    pass\n"
    )
    tests = ["test_ranker.py", "test_more.py"]
    for scope, expected in (("session", "1"), ("function", "0")):
        options = ["-o", f"local_aws_scope={scope}", "-p", "no:cacheprovider"]
        done = run_pytest(project, *options, *tests, env={**environment, "EXPECTED": expected})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "3 passed" in done.stdout


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("local_aws_scope=always", "local_aws_scope is one of"),
        ("local_aws_model_servers=x=nowhere", "neither a file nor a program"),
    ],
)
def test_settings_of_the_fixture_that_cannot_be_are_explained(project, option, words):
    done = run_pytest(project, "-o", option, "test_ranker.py")
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_the_plugin_costs_nothing_and_breaks_nobody(tmp_path):
    """pytest loads it wherever the package is: without moto, and without waiting for Node.js."""
    entry = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert entry == {"pytest11": {PLUGIN: PLUGIN}}
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_nothing_is_loaded():\n"
        "    heavy = {'aws_cdk', 'boto3', 'httptools', 'jsii', 'moto', 'pydantic', 'werkzeug'}\n"
        "    assert [name for name in heavy if sys.modules.get(name)] == []\n"
        "def test_what_is_missing_is_named(local_aws):\n"
        "    pass\n"
    )
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['moto'] = None\n")
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = run_pytest(tmp_path, "-p", "no:hypothesispytest", ".", env=alone)
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "the fixture local_aws needs moto, which its wheel brings" in done.stdout
    assert "Traceback" not in done.stdout
