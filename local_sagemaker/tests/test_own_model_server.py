"""A user's own model server: the page's snippets, the commands, and the pytest fixture."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roles_under_test import HOSTING, document, trust

from local_sagemaker.model_servers import (
    CommandModelServer,
    SimulatedModelServer,
    parse_model_server,
)
from local_sagemaker.model_servers.specifications import (
    from_document,
    handlers_model_server,
    to_document,
)

pytestmark = pytest.mark.realtime

PROJECT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "local_sagemaker")
PLUGIN = "local_sagemaker.pytest_plugin"
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"


def snippets() -> dict[str, str]:
    """The page's blocks that are files, by their names."""
    page = "".join(
        (PROJECT / "docs" / name).read_text("utf-8") for name in ("hosting.md", "pytest.md")
    )
    blocks = re.findall(r"^```(?:python|ini)\n# (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return dict(blocks)


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
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[dict[str, str]]:
    """`local-sagemaker` as a process; gives the variables that it prints."""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        exported: dict[str, str] = {}
        for line in iter(process.stdout.readline, ""):
            key, _, value = line.strip().removeprefix("export ").partition("=")
            exported[key] = value
            if key == "CDK_DISABLE_CLI_TELEMETRY":  # the last of them
                break
        try:
            yield exported
        finally:
            process.terminate()
            assert process.wait(60) == 0


def client(service: str, variables: Mapping[str, str]) -> Any:
    return boto3.Session(
        variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1"
    ).client(
        service,
        endpoint_url=variables.get(
            f"AWS_ENDPOINT_URL_{service.upper()}".replace("-", "_"), variables["AWS_ENDPOINT_URL"]
        ),
    )


def answer(variables: Mapping[str, str], image: str, body: bytes, **container: Any) -> bytes:
    """Create an endpoint for an image, and ask it."""
    name = image.replace("/", "-")
    sagemaker = client("sagemaker", variables)
    iam = client("iam", variables)
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName="models", AssumeRolePolicyDocument=json.dumps(trust("sagemaker")))
    rights = json.dumps(document(*HOSTING))
    iam.put_role_policy(RoleName="models", PolicyName="rights", PolicyDocument=rights)
    sagemaker.create_model(
        ModelName=name,
        ExecutionRoleArn="arn:aws:iam::123456789012:role/models",
        PrimaryContainer={"Image": f"{REGISTRY}/{image}:1", **container},
    )
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "VariantName": "v",
                "ModelName": name,
                "InstanceType": "ml.c7i.large",
                "InitialInstanceCount": 1,
            }
        ],
    )
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 240}
    )
    found = client("sagemaker-runtime", variables).invoke_endpoint(
        EndpointName=name, Body=body, ContentType="application/json"
    )
    return bytes(found["Body"].read())


def test_the_page_s_servers_by_the_page_s_commands(project):
    image = f"{REGISTRY}/team/ranker:1"
    with serving("--model-server", "team/measure=python serve.py", "--image", image) as variables:
        assert json.loads(answer(variables, "team/measure", b"12345")) == {"length": 5}
        added = run("add-model-server", "team/ranker=inference.py", **variables)
        assert (added.returncode, added.stdout) == (0, ""), added.stderr
        s3 = client("s3", variables)
        s3.create_bucket(Bucket="models")
        s3.put_object(Bucket="models", Key="ranker/factor.txt", Body=b"2")
        source = {
            "S3DataSource": {
                "S3Uri": "s3://models/ranker/",
                "S3DataType": "S3Prefix",
                "CompressionType": "None",
            }
        }
        assert answer(variables, "team/ranker", b"[3, 1]", ModelDataSource=source) == b"[2.0, 6.0]"
        ecr = client("ecr", variables)
        assert ecr.list_images(repositoryName="team/ranker")["imageIds"][0]["imageTag"] == "1"
        more = run("add-image", f"{REGISTRY}/team/other:2", **variables)
        assert more.returncode == 0, more.stderr
        assert ecr.list_images(repositoryName="team/other")["imageIds"][0]["imageTag"] == "2"

        other = run(
            "add-model-server", "x=simulated", **{**variables, "LOCAL_SAGEMAKER_TOKEN": "another"}
        )
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
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                PLUGIN,
                "-o",
                f"local_aws_scope={scope}",
                "-p",
                "no:cacheprovider",
                *tests,
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=project,
            timeout=300,
            env={**environment, "EXPECTED": expected},
        )
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
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-o", option, "test_ranker.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        timeout=120,
    )
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
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:hypothesispytest", "."],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "the fixture local_aws needs moto: pip install" in done.stdout
    assert "Traceback" not in done.stdout


# ------------------------------------------------------------------------- what a text stands for


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_runs_with_its_own_program_where_it_was_given(here):
    (here / "serve").write_text("#!/bin/sh\n")
    (here / "serve").chmod(0o755)
    place = str(here)
    quoted = parse_model_server(
        "team/x='a program' --p $SAGEMAKER_BIND_TO_PORT".replace(
            "'a program'", f"'{sys.executable}'"
        )
    )
    assert quoted == (
        "team/x",
        CommandModelServer((sys.executable, "--p", "$SAGEMAKER_BIND_TO_PORT"), directory=place),
    )
    assert parse_model_server("x=./serve")[1] == CommandModelServer(
        (str(here / "serve"),), directory=place
    )
    assert parse_model_server("x=sh -c 'exec a | b'")[1].command[1:] == ("-c", "exec a | b")


def test_a_known_word_and_a_document_stay_what_they_are(here):
    (here / "simulated").write_text("a file of that name")
    assert parse_model_server("x=simulated")[1] == SimulatedModelServer()
    (here / "my server.json").write_text('{"kind": "simulated", "concurrency": 4}')
    assert parse_model_server("x=my server.json")[1] == SimulatedModelServer(concurrency=4)
    (here / "inference.py").write_text("def model_fn(model_dir): ...")
    assert parse_model_server("x=inference.py")[1] == handlers_model_server("inference.py")


@pytest.mark.parametrize(
    ("text", "files", "words"),
    [
        ("x=serve.py", {"serve.py": "import http.server"}, "'python serve.py'"),
        (
            "x=serve.py",
            {"serve.py": "def predict_fn(d, m): ..."},
            "has predict_fn, and no model_fn",
        ),
        ("x=serve.py", {"serve.py": "def"}, "cannot be read as Python"),
        ("x=simulatd", {}, "neither a file nor a program"),
        ("x=server.json", {}, "neither a file nor a program"),
        ("x=server.json", {"server.json": "{"}, "no JSON document"),
        ("x=server.json", {"server.json": "[1]"}, "server.json: a model server is an object"),
        (
            "x=server.json",
            {"server.json": '{"kind": "command", "command": 5}'},
            "command: Input should be a valid",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "magic"}'},
            "kind: one of simulated, language-model, command, url",
        ),
        ("x=server.json", {"server.json": '{"kind": "simulated", "workers": 4}'}, "has no workers"),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "concurrency": "4"}'},
            "concurrency: Input should be a valid integer, not 4",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "memory": NaN}'},
            "JSON compliant",
        ),
        (
            "x=server.json",
            {"server.json": '{"kind": "simulated", "service_time": {"kind": "gamma"}}'},
            "service_time.values",
        ),
        ("x=notes", {"notes": "neither"}, "no JSON document"),
        ("x=nosuchprogram --port 1", {}, "nosuchprogram is neither"),
        ("x='python", {}, "No closing quotation"),
        ("x=http://127.0.0.1:80@evil.example", {}, "on loopback"),
        ("x=http://localhost:99999", {}, "on loopback"),
        ("x=https://localhost:8080", {}, "on loopback"),
        ("x=a\0b", {}, "IMAGE=SERVER"),
    ],
)
def test_what_is_no_server_is_refused_in_one_line(here, text, files, words):
    for name, content in files.items():
        (here / name).write_text(content)
    with pytest.raises(ValueError, match=r".") as raised:
        parse_model_server(text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = sorted(
    {
        key
        for server in (SimulatedModelServer(), CommandModelServer(("a",)))
        for key in to_document(server)
    }
    | {"url", "in_process"}
)


@settings(max_examples=300)
@given(
    st.one_of(
        JSON,
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["simulated", "command", "url"])},
            optional={key: JSON for key in KEYS if key != "kind"},
        ),
    )
)
def test_any_document_is_a_server_or_refused(document):
    """Never anything but ValueError; and what is taken is written and read the same."""
    server, refused = None, ""
    try:
        server = from_document(document)
    except ValueError as error:
        refused = str(error)
    assert (server is None) == bool(refused)
    if server is not None:
        assert from_document(json.loads(json.dumps(to_document(server)))) == server


@settings(max_examples=300)
@given(st.text(max_size=30))
def test_any_text_is_a_server_or_refused(text):
    with contextlib.suppress(ValueError):
        parse_model_server(text)
    with contextlib.suppress(ValueError):
        parse_model_server(f"x={text}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "-1"],
        ["--port", "99999"],
        ["--port", "x"],
        ["--clock-speed", "inf"],
        ["--clock-speed", "nan"],
        ["--clock-speed", "-1"],
        ["--model-server", "simulated"],
        ["--image", "team/ranker"],
        ["add-model-server"],
        ["add-model-server", "x=simulatd"],
        ["add-model-server", "x=simulated"],
        ["add-image", "nothing"],
    ],
)
def test_mistakes_are_named_in_a_line(arguments):
    """One for each kind; what a text can stand for is tried above, without a process."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    known = ("# Starting", "Usage", "Try")
    named = [line for line in done.stderr.splitlines() if not line.startswith(known)]
    assert len([line for line in named if line]) == 1, done.stderr
