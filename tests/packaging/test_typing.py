"""Code of users before mypy and Pyright: what the wheel's types say of it.

Pyright runs as basedpyright, which brings the same checker without a download at its first start.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

APP = Path(__file__).with_name("typed_app.py")
STAR = """\
from aws_cdk import Duration

from low_latency_endpoint import *

target: LatencyTarget = LatencyTarget(p99=Duration.millis(200))
reveal_type(target)
reveal_type(Endpoint.from_endpoint_name)
"""
#: Line by line, so that a checker which takes everything for Any fails here.
WRONG = """\
from low_latency_endpoint import AlarmOptions, IEndpoint, LowLatencyEndpoint
import low_latency_endpoint


def of(endpoint: IEndpoint, pattern: LowLatencyEndpoint) -> None:
    AlarmOptions(model_latncy={})
    pattern.metric_modl_latency()
    endpoint.grant_invoke("a role")
    low_latency_endpoint.Endpont
    number: int = pattern.metric("Invocations", statistic="Sum")
"""
MISTAKES = {6, 7, 8, 9, 10}

# mypy reads all of aws_cdk: a minute of computing time, and no clock would change that.
pytestmark = [pytest.mark.realtime, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "app.py").write_text(APP.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "star.py").write_text(STAR, encoding="utf-8")
    (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
    # That a library's star is bad style is said in strict mode; here it is to be resolved.
    config = {"typeCheckingMode": "strict", "reportWildcardImportFromLibrary": "none"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def of_file(name: str, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in said if Path(each["file"]).name == name]


# One test for each checker: several could be given to several workers, and each would read all
# of aws_cdk by itself.
def test_mypy(code: Path, their_python: Path) -> None:
    """Strict, with types from the wheel alone."""
    (code / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--no-pretty", "--hide-error-context", "--cache-dir", str(code / "cache")]
    command += ["--python-executable", str(their_python), "app.py", "star.py", "wrong.py"]
    done = subprocess.run(command, cwd=code, capture_output=True, text=True, timeout=590)
    assert not done.stderr
    said = done.stdout.splitlines()
    assert [line for line in said if line.startswith("app.py")] == [], "a user's app"

    star = [line for line in said if line.startswith("star.py")]
    assert len(star) == 2
    assert '"low_latency_endpoint.options.latency_target.LatencyTarget"' in star[0]
    assert "-> low_latency_endpoint.hosting.endpoint_interface.IEndpoint" in star[1]

    mistakes = [re.match(r"wrong\.py:(\d+): error: ", line) for line in said]
    assert {int(found[1]) for found in mistakes if found} == MISTAKES


def test_pyright(code: Path, their_python: Path) -> None:
    """Strict. In a user's app it refuses nothing of ours.

    But CDK's own: of some of its classes it does not see that they have CDK's own interfaces.
    Their methods name parameters otherwise (``Key.add_alias(alias_name)`` and
    ``IKey.add_alias(alias)``), so Pyright refuses ``encryption_key=kms.Key(...)`` here as in
    CDK's own constructs, and ``iam.Role(assumed_by=iam.ServicePrincipal(...))``.
    """
    command = [sys.executable, "-m", "basedpyright", "--outputjson"]
    command += ["--pythonpath", str(their_python)]
    done = subprocess.run(command, cwd=code, capture_output=True, text=True, timeout=590)
    content = json.loads(done.stdout)
    assert content["summary"]["filesAnalyzed"] == 3
    said: list[dict[str, Any]] = content["generalDiagnostics"]
    for each in of_file("app.py", said):
        cdks = re.search(r'"(\w+)" is incompatible with protocol "I\w+"', each["message"])
        assert each["rule"] == "reportArgumentType", each
        assert "Parameter name mismatch" in each["message"], each
        assert cdks, each
        assert cdks[1] in {"Key", "Role", "ServicePrincipal", "SnsAction"}, each

    star = of_file("star.py", said)
    assert [each["severity"] for each in star] == ["information"] * 2
    assert '"LatencyTarget"' in star[0]["message"]
    assert "-> IEndpoint" in star[1]["message"]

    errors = [each for each in of_file("wrong.py", said) if each["severity"] == "error"]
    assert {each["range"]["start"]["line"] + 1 for each in errors} >= MISTAKES
