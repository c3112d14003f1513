"""What is printed for people or machines to install: nothing by a name that PyPI has not from us.

Whoever registers one of the three names there would run code where such a line is run. Files by their path are what there is; CONTRIBUTING.md says what a first release changes.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import low_latency_client
import low_latency_endpoint
from low_latency_endpoint.errors import installation

ROOT = Path(__file__).parents[2]
OURS = r"(?:cdk[-_.]low[-_.]latency[-_.]endpoint|local[-_.]sagemaker|low[-_.]latency[-_.]client)"
#: A name, and not a path, a file's name or a Python module.
BARE = rf"(?<![\w/.:-]){OURS}(?![\w/:*]|-[\d*$]|\.\w| @ )"
INSTALLS = re.compile(rf"\b(?:pip3?|pipx|uvx?)\b[^\n]*{BARE}", re.IGNORECASE)
REQUIRES = re.compile(rf"^{OURS}\b(?! @ )", re.IGNORECASE | re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
#: What an extra brings, those of the extras that it includes among them.
PACKAGES = {
    "operations": ["boto3"],
    "simulation": ["jinja2", "numba"],
    "report": ["boto3", "jinja2"],
    "load-test": ["boto3", "geventhttpclient", "hdrhistogram", "jinja2", "locust"],
    "hugging-face": ["huggingface-hub"],
}
#: Those for which pip needs the client's wheel too.
WITH_CLIENT = {extra for extra, packages in PACKAGES.items() if "boto3" in packages}


def found_in(text: str) -> list[str]:
    """Install lines with a name of ours; a literal or a command that goes on is one line."""
    one_line = re.sub(r"\\\n|[\"']\n\s*f?[\"']", " ", text)
    return [each[0] for each in INSTALLS.finditer(one_line)]


@pytest.mark.parametrize(
    ("text", "is_bare"),
    [
        ("pip install cdk-low-latency-endpoint", True),
        ("  - run: pip3 install 'cdk_low_latency_endpoint[load-test]==0.1.0'", True),
        ("python -m pip install --upgrade \\\n  local-sagemaker pytest", True),
        ('f"pip install "\n    f"local-sagemaker"', True),
        ("uv add Local.SageMaker", True),
        ("uvx --from cdk-low-latency-endpoint low-latency plan", True),
        ("pip install ./cdk_low_latency_endpoint-0.1.0-py3-none-any.whl[operations]", False),
        ("pip install dist/local_sagemaker-*.whl", False),
        ("pip install 'cdk-low-latency-endpoint @ git+https://example.com/r@0a1b'", False),
        ("pip install -e ./local_sagemaker", False),
    ],
)
def test_what_is_taken_for_a_bare_name(text: str, is_bare: bool) -> None:
    assert bool(found_in(text)) is is_bare


def texts_of_files() -> dict[str, str]:
    """Return the text of every file of the repository but this one and the history of changes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    texts = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.resolve() == Path(__file__) or name == "CHANGELOG.md" or not path.is_file():
            continue
        try:
            texts[name] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    assert "README.md" in texts
    return texts


def test_no_file_has_an_install_line_with_a_bare_name() -> None:
    """Docs, workflows, templates of `init`, and the texts of every code, which stand in the source."""
    texts = texts_of_files()
    assert {name: lines for name, text in texts.items() if (lines := found_in(text))} == {}
    required = {name: text for name, text in texts.items() if "requirements" in name}
    assert len(required) >= 4
    assert [name for name, text in required.items() if REQUIRES.search(text)] == []


def lines_without_client(text: str) -> list[str]:
    """Return the lines that install an extra which needs the client, without the client's wheel."""
    one_line = re.sub(r"\\\n", " ", text)
    lines = re.findall(r"pip install [^\n]*cdk_low_latency_endpoint-[^\n]*", one_line)
    needing = [line for line in lines if WITH_CLIENT.intersection(extras_of(line))]
    return [line for line in needing if installation.client_wheel() not in line]


def extras_of(line: str) -> list[str]:
    return re.findall(r"[\w-]+", "".join(re.findall(r"\.whl\[([^\]]*)\]", line)))


def test_an_install_line_with_the_client_needs_both_wheels() -> None:
    wheel = "pip install './cdk_low_latency_endpoint-0.1.0-py3-none-any.whl[{}]'"
    client = f"./{installation.client_wheel()}"
    assert {"operations", "report", "load-test"} == WITH_CLIENT
    assert lines_without_client(wheel.format("simulation,load-test"))
    assert not lines_without_client(wheel.format("simulation"))
    assert not lines_without_client(f"{wheel.format('operations')} {client}")
    assert not lines_without_client(f"{wheel.format('operations')} \\\n  {client}")


def test_every_printed_install_line_names_the_wheels_that_pip_needs() -> None:
    texts = texts_of_files()
    assert {
        name: lines for name, text in texts.items() if (lines := lines_without_client(text))
    } == {}


def test_the_distributions_require_nothing_of_ours_that_pypi_could_have() -> None:
    """But extras of their own, which pip takes from the file that it installs.

    PyPI takes no version with a local part, as in 0.1.0+unpublished, from anybody.
    Source: packaging.python.org/en/latest/specifications/version-specifiers, "Local version
    identifiers".
    """
    for each in ("cdk-low-latency-endpoint", "local-sagemaker", "low-latency-client"):
        others = [name for name in metadata.requires(each) or () if not name.startswith(each)]
        ours = [Requirement(name) for name in others if REQUIRES.match(name)]
        for requirement in ours:
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            assert Version(specifier.version).local


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_line_that_is_printed_fits_how_this_was_installed(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, checkout = tmp_path / "a b" / "our-0.1.0-py3-none-any.whl", tmp_path / "checkout"
    checkout.mkdir()
    wheel.parent.mkdir()
    wheel.touch()

    class Installed:
        requires = metadata.requires("cdk-low-latency-endpoint")

        def __init__(self, origin: dict[str, object] | None) -> None:
            self._origin = origin

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self._origin and json.dumps(self._origin)

    def said(origin: dict[str, object] | None) -> str:
        monkeypatch.setattr(metadata, "distribution", lambda _: Installed(origin))
        return installation.install_command(extra)

    needs_client = "boto3" in PACKAGES[extra]
    client = wheel.with_name(
        f"low_latency_client-{low_latency_client.__version__}-py3-none-any.whl"
    )
    of_wheel = f"pip install '{wheel}[{extra}]'"
    assert said({"url": wheel.as_uri(), "archive_info": {}}) == (
        f"{of_wheel} '{client}'" if needs_client else of_wheel
    )
    editable = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    of_checkout = f"pip install -e '{checkout}[{extra}]'"
    assert said(editable) == (
        f"{of_checkout} -e {checkout / 'client'}" if needs_client else of_checkout
    )
    wheel.unlink()
    for gone in (None, {"url": wheel.as_uri()}, {"url": "https://example.com/a.whl"}):
        line = said(gone)
        assert found_in(line) == []
        assert [name for name in PACKAGES[extra] if f" '{name}" not in line] == []
        assert line.endswith(client.name) is needs_client


def test_a_folder_on_the_path_names_the_client_of_this_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"low_latency_client-{low_latency_client.__version__}-py3-none-any.whl"
    assert installation.client_wheel() == name

    def no_metadata(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", no_metadata)
    assert installation.client_wheel() == name


def test_the_docs_name_the_wheel_of_this_version_and_the_cdk_cli_that_is_pinned() -> None:
    pages = [ROOT / "README.md", ROOT / "client" / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    wheels = set(re.findall(r"cdk_low_latency_endpoint-([\d.]+)-", text))
    assert wheels == {low_latency_endpoint.__version__}
    clients = set(re.findall(r"low_latency_client-([\w.+]+)-py3", text))
    assert clients == {low_latency_client.__version__}
    pinned = json.loads((ROOT / "package.json").read_text("utf-8"))["devDependencies"]["aws-cdk"]
    assert set(re.findall(r"aws-cdk@([\d.]+)", text)) == {pinned}


def test_the_table_of_extras_has_all_of_them() -> None:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `([a-z-]+)` \|$", page, re.MULTILINE)
    assert sorted(rows) == EXTRAS
