"""``action.yml``: its own scripts, with the environment that GitHub sets."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
import yaml

from low_latency_endpoint.change.verdict import FAIL_ON
from low_latency_endpoint.report.document import Document, Table
from low_latency_endpoint.report.markdown import MOST_CHARACTERS, as_markdown
from tests.git_commands import git

from .conftest import ROOT, SHIPPED, Checkout, settings

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
INSTALL, CHECK, COMMENT, VERDICT = (each for each in STEPS if "run" in each)
MARKER = "<!-- low-latency-endpoint: pull-request check -->"
TOKEN = "ghs_0123456789abcdef"

# `gh` on a runner, which notes what it is asked and gives the comments that are there. It refuses as
# GitHub does: what REFUSED_READ and REFUSED_WRITE say, and more characters than a comment takes.
GH = """#!/bin/bash
case "$*" in *"/pulls/"*) echo "$HEAD_NOW"; exit ;; esac
printf '%s\\0' "$@" >> "$NOTED"
printf '\\n' >> "$NOTED"
refuse() { if [ -n "$1" ]; then echo "$1" >&2; exit 1; fi; }
case "$*" in
  *--paginate*) refuse "$REFUSED_READ"; printf "$COMMENTS"; exit ;;
  *PATCH*) body="${!#}"; body="${body#body=@}"; long="gh: Validation Failed (HTTP 422)" ;;
  *) body="${!#}"; long="GraphQL: Body is too long (maximum is 65536 characters) (addComment)" ;;
esac
refuse "$REFUSED_WRITE"
if [ "$(LC_ALL=C.UTF-8 wc -m < "$body")" -gt 65536 ]; then refuse "$long"; fi
cp "$body" "$POSTED"
"""
RIGHTS = {
    "of an App": "gh: Resource not accessible by integration (HTTP 403)",
    "of a fork": "GraphQL: Resource not accessible by integration (addComment)",
    "of a person": "gh: Resource not accessible by personal access token (HTTP 403)",
    "of scopes": "GraphQL: Your token has not been granted the required scopes to execute this query.",
}
FAILURES = {
    "a limit": "gh: API rate limit exceeded for installation ID 7. (HTTP 403)",
    "a lock": "gh: Unable to create comment because issue is locked. (HTTP 403)",
    "an outage": "gh: Server Error (HTTP 502)",
    "an old token": "gh: Bad credentials (HTTP 401)",
    "no program": "gh: command not found",
}


class Job:
    """A job on a pull request that renames an endpoint; the package is installed."""

    def __init__(self, checkout: Checkout, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder
        self.base, self.head = checkout.pull_request(
            {"endpoint.yaml": settings(endpoint_name="mood"), "a b.yaml": settings()}
        )
        self.cwd = checkout.folder
        self.known = {
            "github.action_path": str(ROOT),
            "github.event.pull_request.base.sha": self.base,
            "github.event.pull_request.head.sha": self.head,
            "github.event.pull_request.number": "7",
            "github.repository": "octocat/endpoints",
            "github.run_id": "99",
            "github.server_url": "https://github.example",
            "github.token": TOKEN,
        }
        self.environment = {
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "RUNNER_TEMP": str(folder / "runner"),
            "NOTED": str(folder / "noted"),
            "COMMENTS": "",
            "POSTED": str(folder / "posted"),
            "HEAD_NOW": self.head,
            "REFUSED_READ": "",
            "REFUSED_WRITE": "",
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        code = "from low_latency_endpoint.cli import main; main()"
        path = os.pathsep.join(each for each in sys.path if each)
        self.program(
            "runner/low-latency/bin/low-latency",
            f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' -c '{code}' \"$@\"\n",
        )
        self.program("bin/gh", GH)

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, step: dict[str, Any], **inputs: str) -> subprocess.CompletedProcess[str]:
        """A step's script as a runner calls it, with the step's own environment."""
        values = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        merge = {"github.sha": self.checked_out}  # what actions/checkout leaves
        known = merge | self.known | {f"inputs.{name}": value for name, value in values.items()}
        own = {name: self.filled(value, known) for name, value in step.get("env", {}).items()}
        own["GITHUB_OUTPUT"] = str(self.folder / f"output-{step.get('id')}")
        script = self.folder / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.cwd,
            env={**os.environ, **self.environment, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        assert TOKEN not in done.stdout + done.stderr
        return done

    @property
    def checked_out(self) -> str:
        """The commit of the workspace; none where it is no checkout."""
        if not (self.cwd / ".git").exists():
            return ""
        return git(self.cwd, "rev-parse", "HEAD")

    def filled(self, text: str, known: dict[str, str]) -> str:
        """A text with the values of its expressions, among them the outputs of the steps."""
        known = known | {
            f"steps.{step}.outputs.{name}": each
            for step in ("check", "comment")
            for name, each in self.outputs_of(step).items()
        }

        def first(expression: str) -> str:
            return next((known[each] for each in expression.split(" || ") if known.get(each)), "")

        text = re.sub(r"\$\{\{ (.*?) \}\}", lambda found: first(found[1]), text)
        return text.replace("${{ github.token }}", TOKEN)

    def outputs_of(self, step: str) -> dict[str, str]:
        path = self.folder / f"output-{step}"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)

    @property
    def outputs(self) -> dict[str, str]:
        return self.outputs_of("check")

    @property
    def verdict(self) -> str:
        """What the action itself puts out."""
        return self.filled(ACTION["outputs"]["verdict"]["value"], {})

    @property
    def posted(self) -> str:
        """The body that GitHub took."""
        path = self.folder / "posted"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def markdown(self) -> str:
        return Path(self.outputs["markdown"]).read_text(encoding="utf-8")

    @property
    def asked(self) -> list[list[str]]:
        """The arguments of each call of ``gh``, or of another program that notes them."""
        text = (self.folder / "noted").read_text(encoding="utf-8")
        return [line.split("\0") for line in text.split("\0\n")[:-1]]


@pytest.fixture
def job(checkout: Checkout, tmp_path: Path) -> Job:
    return Job(checkout, tmp_path)


def test_a_replacement_fails_it_unless_the_team_chose_otherwise(job: Job) -> None:
    done = job.run(CHECK)
    assert (done.returncode, job.outputs["verdict"]) == (0, "failed")
    assert "What would fail it: `mistakes`, `refused`, `replacement`, `deletion`." in job.markdown


def test_it_says_what_it_found(job: Job) -> None:
    done = job.run(CHECK, fail_on="refused")
    assert done.returncode == 0, done.stderr
    assert job.outputs["verdict"] == "passed"
    assert set(job.outputs) == set(ACTION["outputs"])
    assert job.markdown.startswith(f"{MARKER}\n**low-latency plan**")
    assert "**:x: replaced: sentiment: mood comes up beside" in job.markdown
    assert "\nThe check passes. " in job.markdown  # and no mark says that all is well
    assert (job.folder / "summary.md").read_text(encoding="utf-8") == job.markdown
    assert job.run(VERDICT).returncode == 0


def test_what_the_team_chose_fails_it(job: Job) -> None:
    done = job.run(CHECK, fail_on="refused replacement\ncost-increase=10")
    assert (done.returncode, job.outputs["verdict"]) == (0, "failed")  # the comment comes first
    assert (
        "What would fail it: `mistakes`, `refused`, `replacement`, `cost-increase=10`."
        in job.markdown
    )
    assert job.run(VERDICT).returncode == 1


def test_several_files(job: Job) -> None:
    job.run(CHECK, settings="endpoint.yaml\na b.yaml\n")
    assert "**a b.yaml**" in job.markdown


def test_a_workspace_without_a_checkout_of_git_is_an_error(job: Job) -> None:
    """Without Git, actions/checkout writes files alone: a pull request's may look like Git's."""
    bare = job.folder / "bare"
    git(job.folder, "clone", "--quiet", "--bare", str(job.checkout.folder), str(bare))
    job.cwd = bare
    done = job.run(CHECK)
    assert (done.returncode, job.outputs["verdict"]) == (2, "error")
    assert "no Git checkout" in done.stdout


def test_each_git_of_the_action_takes_no_other_repository(job: Job) -> None:
    bare = job.folder / "bare"
    git(job.folder, "clone", "--quiet", "--bare", str(job.checkout.folder), str(bare))
    job.cwd = bare
    step = {**CHECK, "run": "git cat-file commit HEAD"}
    assert "safe.bareRepository" in job.run(step).stderr


def test_what_cannot_be_compared_is_an_error(job: Job) -> None:
    done = job.run(CHECK, base="no-such-branch")
    assert done.returncode != 0
    assert job.outputs["verdict"] == "error"


def test_without_a_base_nothing_is_compared(job: Job) -> None:
    """As after a schedule: origin's own head would be compared with itself."""
    job.known = {name: each for name, each in job.known.items() if ".event." not in name}
    done = job.run(CHECK)
    assert (done.returncode, job.outputs["verdict"]) == (2, "error")
    assert "state the input base" in done.stdout


def test_a_merge_that_github_made_is_compared_with_its_first_parent(job: Job) -> None:
    """The event's base is as old as the event; main went on, and GitHub merged into that."""
    job.known["github.event.pull_request.base.sha"] = job.checkout.git("rev-parse", f"{job.base}")
    job.checkout.git("checkout", "--quiet", "main")
    newer = job.checkout.commit({"endpoint.yaml": settings(volume_size_gib=64)})
    job.checkout.git("checkout", "--quiet", "--detach")
    job.checkout.git("merge", "--quiet", "--no-ff", "-X", "ours", "-m", "Merge", "larger")
    job.run(CHECK)
    assert newer[:10] in job.markdown
    job.run(CHECK, base=job.base)
    assert job.base[:10] in job.markdown


def test_a_checkout_of_another_commit_is_judged_by_nobody(job: Job) -> None:
    """As under pull_request_target, where the base is checked out; or a branch that went on."""
    job.checkout.git("checkout", "--quiet", "--detach", job.base)
    done = job.run(CHECK)
    assert (done.returncode, job.outputs["verdict"]) == (2, "error")
    assert f"neither at the pull request's commit {job.head}" in done.stdout
    job.checkout.git("checkout", "--quiet", "--detach", job.head)
    assert job.run(CHECK).returncode == 0


def test_a_commit_names_no_parents_in_its_message(job: Job) -> None:
    """Whoever writes the message would choose the base."""
    job.checkout.git("checkout", "--quiet", "--detach", job.head)
    job.checkout.git("commit", "--quiet", "--allow-empty", "-m", f"Hello\n\nparent {job.head}")
    assert job.run(CHECK).returncode == 2
    job.known["github.event.pull_request.head.sha"] = job.checkout.git("rev-parse", "HEAD")
    done = job.run(CHECK)
    assert done.returncode == 0, done.stderr
    assert job.base[:10] in job.markdown


def test_a_merge_of_the_branch_itself_chooses_no_base(job: Job) -> None:
    """Only GitHub's merge has the base as its first parent."""
    job.checkout.git("checkout", "--quiet", "--detach", job.head)
    job.checkout.git("merge", "--quiet", "--no-ff", "-s", "ours", "-m", "Merge", job.base)
    job.known["github.sha"] = job.base
    job.known["github.event.pull_request.head.sha"] = job.checkout.git("rev-parse", "HEAD")
    assert job.run(CHECK).returncode == 0
    assert job.base[:10] in job.markdown


EVENTS = {
    "a push": {"github.event.before": "{base}"},
    "a merge queue": {"github.event.merge_group.base_sha": "{base}"},
    "a pull request": {
        "github.event.pull_request.base.sha": "{base}",
        "github.event.pull_request.head.sha": "{head}",
    },
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("chosen", ["", "main"])
def test_only_a_pull_request_is_compared_with_where_it_left_its_base(
    job: Job, event: str, chosen: str
) -> None:
    """Of all else what is deployed differs from is a change, such as a push that takes one back."""
    job.known = {name: each for name, each in job.known.items() if ".event." not in name}
    shas = {"base": job.checkout.git("rev-parse", "main"), "head": job.head}
    job.known |= {name: sha.format(**shas) for name, sha in EVENTS[event].items()}
    job.program(
        "runner/low-latency/bin/low-latency",
        '#!/bin/sh\nprintf "%s\\0" "$@" >> "$NOTED"\nprintf "\\n" >> "$NOTED"\n',
    )
    done = job.run(CHECK, base=chosen)
    assert done.returncode == 0, done.stderr
    dots = "..." if event == "a pull request" and not chosen else ".."
    (against,) = [each for each in job.asked[0] if each.startswith("--against=")]
    assert against == f"--against={chosen or shas['base']}{dots}HEAD"


def test_a_shallow_checkout_fetches_the_base_alone(job: Job, tmp_path: Path) -> None:
    """As actions/checkout makes it: one commit, whose parents are named and not there."""
    job.checkout.git("branch", "merged", "HEAD")
    job.checkout.git("config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub allows it
    shallow = Checkout(tmp_path / "shallow")
    job.checkout.git(
        *("clone", "-q", "--depth=1", "--branch=merged", f"file://{job.checkout.folder}"),
        str(shallow.folder),
    )
    job.cwd = shallow.folder
    done = job.run(CHECK)
    assert done.returncode == 0, done.stderr
    assert "mood comes up beside" in job.markdown
    assert job.base[:10] in job.markdown
    assert shallow.git("rev-list", "--all", "--count") == "1"  # no history came along


def test_the_comment_is_made_once_and_renewed(job: Job) -> None:
    job.run(CHECK)
    file = job.outputs["markdown"]
    assert job.run(COMMENT).returncode == 0
    looked, made = job.asked
    assert looked[:3] == ["api", "--paginate", "repos/octocat/endpoints/issues/7/comments"]
    assert f'.user.type == "Bot" and (.body | startswith("{MARKER}"))' in looked[-1]
    assert made == ["pr", "comment", "7", "--body-file", file]
    (job.folder / "noted").unlink()
    job.environment["COMMENTS"] = "12\n34\n"
    assert job.run(COMMENT).returncode == 0
    path = "repos/octocat/endpoints/issues/comments/12"
    assert job.asked[1] == ["api", "--silent", "-X", "PATCH", path, "-F", f"body=@{file}"]


def test_the_longest_comment_has_room_for_the_marker() -> None:
    """At each length around the limit, from which on a document is cut."""
    cut = set()
    for more in range(0, 500, 3):
        rows = [*[["x" * 100]] * 620, ["x" * more]]
        text = as_markdown(Document("", [Table(["a"], rows)]))
        assert len(f"{MARKER}\n{text}") <= MOST_CHARACTERS
        cut.add("lines are missing" in text)
    assert cut == {False, True}


def test_a_huge_pull_request_has_a_comment_that_github_takes(job: Job) -> None:
    """With the marker, and with what ends names and links, as all of it is posted."""
    sentiment = SHIPPED["endpoints"]["sentiment"]

    def commit(value: str) -> str:
        environment = {f"V{number}": value for number in range(90)}
        containers = [{**sentiment["containers"][0], "environment": environment}]
        endpoints = {
            key: {**sentiment, "endpoint_name": key, "containers": containers} for key in "ab"
        }
        return job.checkout.commit({"endpoint.yaml": settings({"endpoints": endpoints})})

    before = commit("x")
    job.known["github.event.pull_request.head.sha"] = commit("@ " * 60)
    job.environment["HEAD_NOW"] = job.known["github.event.pull_request.head.sha"]
    job.run(CHECK, base=before)
    assert "lines are missing" in job.markdown
    assert job.run(COMMENT).returncode == 0
    assert job.posted == job.markdown


@pytest.mark.parametrize("comments", ["", "12\n"])
@pytest.mark.parametrize(
    ("code", "said"), [(0, "The check of {} passes."), (1, ":x: The check of {} fails.")]
)
def test_what_github_does_not_take_is_told_in_short(
    job: Job, code: int, said: str, comments: str
) -> None:
    """A comment of an earlier commit is replaced in any case, and no right is blamed."""
    long = f"head -c 70000 /dev/zero | tr '\\0' x\nexit {code}\n"
    job.program("runner/low-latency/bin/low-latency", f"#!/bin/sh\n{long}")
    job.run(CHECK)
    job.environment["COMMENTS"] = comments
    done = job.run(COMMENT)
    assert done.returncode == 0, done.stdout
    assert job.posted.startswith(f"{MARKER}\n**low-latency plan**: {said.format(job.head[:10])} ")
    assert "(https://github.example/octocat/endpoints/actions/runs/99)" in job.posted
    _, first, second = job.asked
    assert ["PATCH" in first, "PATCH" in second] == [bool(comments)] * 2
    (warning,) = done.stdout.splitlines()
    assert warning.startswith("::warning::The comment was replaced by a short one; ")
    assert "HTTP 422" in warning or "Body is too long" in warning
    assert "token" not in warning
    assert job.verdict == ("failed" if code else "passed")


@pytest.mark.parametrize("where", ["REFUSED_READ", "REFUSED_WRITE"])
@pytest.mark.parametrize("comments", ["", "12\n"])
@pytest.mark.parametrize("what", [*RIGHTS, *FAILURES])
def test_a_former_comment_that_stays_fails_the_step(
    job: Job, what: str, comments: str, where: str
) -> None:
    """So does not to know of one. A token without the right is told from all else that may fail."""
    job.run(CHECK, fail_on="refused")
    answer = (RIGHTS | FAILURES)[what]
    job.environment |= {"COMMENTS": comments, where: answer}
    done = job.run(COMMENT)
    (told,) = done.stdout.splitlines()
    assert answer in told
    assert ("The token may not do it" in told) == (what in RIGHTS)
    reads = where == "REFUSED_WRITE"
    fails = bool(comments) if reads else what in FAILURES
    assert (done.returncode, told.startswith("::error::")) == (fails, fails)
    assert (job.verdict, told.startswith("::warning::")) == (
        "error" if fails else "passed",
        not fails,
    )
    assert ("of an earlier commit" in told) == (fails or not reads)
    assert len(job.asked) == 1 + reads + (reads and what in FAILURES)  # a short one too
    assert job.posted == ""


def test_an_older_run_leaves_the_comment_of_a_newer_one(job: Job) -> None:
    job.run(CHECK)
    job.environment["HEAD_NOW"] = "f" * 40
    done = job.run(COMMENT)
    assert (done.returncode, job.posted) == (0, "")
    assert "::notice::No comment: the pull request is at ffff" in done.stdout


@pytest.mark.parametrize("ended", ["in its check", "in its installation"])
def test_after_an_error_no_former_comment_says_that_it_passes(job: Job, ended: str) -> None:
    if ended == "in its check":
        assert job.run(CHECK, base="no-such-branch").returncode != 0
    job.environment["COMMENTS"] = "12\n"
    assert job.run(COMMENT).returncode == 0
    file = job.folder / "runner/low-latency-pull-request.md"
    path = "repos/octocat/endpoints/issues/comments/12"
    assert job.asked[1] == ["api", "--silent", "-X", "PATCH", path, "-F", f"body=@{file}"]
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"{MARKER}\n**low-latency plan**: :x: ")
    assert f"judges nothing of {job.head[:10]}." in text
    assert "(https://github.example/octocat/endpoints/actions/runs/99)" in text
    assert "passes" not in text
    assert (job.folder / "summary.md").read_text(encoding="utf-8") == text


def test_the_comment_is_posted_after_an_error_too() -> None:
    """A step without such a function runs only where all before it went well."""
    assert COMMENT["if"].startswith("${{ !cancelled() && ")


def test_a_token_that_only_reads_leaves_the_summary(job: Job) -> None:
    job.run(CHECK)
    job.environment |= dict.fromkeys(("REFUSED_READ", "REFUSED_WRITE"), RIGHTS["of a fork"])
    done = job.run(COMMENT)
    assert (done.returncode, "::warning::" in done.stdout) == (0, True)


COMMANDS = (
    "$(touch owned)",
    "`touch owned`",
    '"; touch owned; "',
    "--upload-pack=touch owned; touch owned",
    "x\n-o owned",
)


@pytest.mark.parametrize("name", ["settings", "base", "fail_on"])
def test_no_input_is_a_command_or_an_option(job: Job, name: str) -> None:
    """The program only notes its arguments, in which each value is whole."""
    job.program(
        "runner/low-latency/bin/low-latency",
        '#!/bin/sh\nprintf "%s\\0" "$@" >> "$NOTED"\nprintf "\\n" >> "$NOTED"\n',
    )
    for value in COMMANDS:
        noted = Path(job.environment["NOTED"])
        noted.unlink(missing_ok=True)
        job.run(CHECK, **{name: value})
        if noted.exists():  # Git has no such base
            (given,) = job.asked
            wanted = {
                "settings": [f"--settings={each}" for each in value.splitlines()],
                "fail_on": [f"--fail-on={each}" for each in value.split()],
            }
            assert set(wanted[name]) <= set(given)
        assert noted.exists() == (name != "base")
        assert not (job.cwd / "owned").exists()
        assert not (job.folder / "owned").exists()


def test_it_installs_its_own_commit(job: Job) -> None:
    """Into an environment of its own, by an isolated Python: `pip.py` of a checkout is not run."""
    job.program(
        "bin/python",
        '#!/bin/sh\necho "$@" >> said\nmkdir -p low-latency/bin\n'
        "printf '#!/bin/sh\\necho pip \"$@\" >> said\\n' > low-latency/bin/pip\n"
        "chmod +x low-latency/bin/pip\n",
    )
    job.cwd = job.folder
    done = job.run(INSTALL)
    assert done.returncode == 0, done.stderr
    first, *installs = (job.folder / "said").read_text().splitlines()
    assert first == "-I -m venv low-latency"
    quiet = "pip install --quiet --disable-pip-version-check"
    assert installs == [
        f"{quiet} --require-hashes --only-binary=:all: -r {ROOT}/requirements.txt",
        f"{quiet} --no-index --no-deps --no-build-isolation {ROOT}",
    ]
    assert INSTALL["working-directory"] == "${{ runner.temp }}"


def test_the_hashes_are_of_all_that_a_plan_and_the_build_need() -> None:
    """Each requirement has one; the build backend is among them, as no index is asked for it."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert [line for line in lines if "--hash=sha256:" not in line] == []
    pinned = {line.partition("==")[0] for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    names = {re.split(r"[^\w.-]", each)[0].replace(".", "-") for each in needed}
    assert names <= pinned


@pytest.mark.nightly
def test_a_plan_works_with_what_is_installed(job: Job) -> None:
    """With pip and the index of this machine."""
    runner = job.folder / "runner"
    shutil.rmtree(runner)
    runner.mkdir()
    job.program("bin/python", f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n")
    job.cwd = runner
    installed = job.run(INSTALL)
    assert installed.returncode == 0, installed.stderr
    job.cwd = job.checkout.folder
    assert job.run(CHECK).returncode == 0
    assert "mood comes up beside" in job.markdown


class Private(BaseHTTPRequestHandler):
    """A server that asks for credentials and notes them."""

    noted: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        given = self.headers.get("Authorization")
        self.noted.append(given or "")
        self.send_response(404 if given else 401)
        self.send_header("WWW-Authenticate", "Basic")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def private() -> Iterator[str]:
    Private.noted.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Private) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("is_github", [True, False])
def test_the_token_fetches_the_base_from_github_alone(
    job: Job, private: str, is_github: bool
) -> None:
    """A checkout without credentials, of a repository that not everybody may read."""
    job.checkout.git("remote", "add", "origin", f"{private}/octocat/endpoints")
    if is_github:
        job.known["github.server_url"] = private
    job.environment |= {"no_proxy": "*", "GIT_CONFIG_GLOBAL": os.devnull}
    done = job.run(CHECK, base="0" * 39 + "1")
    assert done.returncode != 0
    token = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    assert (f"Basic {token}" in Private.noted) == is_github
    assert Private.noted[0] == ""


def test_the_token_is_for_the_fetch_alone(job: Job) -> None:
    job.program("runner/low-latency/bin/low-latency", '#!/bin/sh\nenv > "$NOTED"\n')
    assert job.run(CHECK).returncode == 0
    assert TOKEN not in Path(job.environment["NOTED"]).read_text(encoding="utf-8")


_STEP = re.compile(r"^( *)- uses: actions/checkout@.*\n((?:\1  .*\n)*)", re.MULTILINE)


def test_no_checkout_keeps_credentials() -> None:
    """In no workflow, nor in one that a page shows: other steps, and files that they leave, have it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    steps = {}
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name.startswith("tests/") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        assert text.count("uses: actions/checkout") == len(_STEP.findall(text)), name
        if found := _STEP.findall(text):
            steps[name] = [below for _, below in found]
    assert "docs/how-to/pull-request-check.md" in steps
    for name, below in steps.items():
        assert all("persist-credentials: false" in each for each in below), name


def test_no_script_has_an_expression_in_it() -> None:
    """GitHub would put its text in before the shell reads it."""
    assert [each["run"] for each in STEPS if "${{" in each.get("run", "")] == []


def test_actions_are_pinned_by_their_commit() -> None:
    """Also in workflows and in those that pages show: a tag may be moved to other code."""
    listed = subprocess.run(
        ["git", "grep", "-hoE", r"^ *-? *uses: [^ ]+/[^ ]+.*", "--", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    used = [line.strip(" -").removeprefix("uses: ") for line in listed.stdout.splitlines()]
    assert any("configure-aws-credentials" in line for line in used)
    for line in used:
        name, _, comment = line.partition(" ")
        if name != "OWNER/low-latency-endpoint@COMMIT":
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name), line
            assert re.fullmatch(r" ?# v\d+\.\d+\.\d+", comment), line


def test_the_description_names_every_choice() -> None:
    description = ACTION["inputs"]["fail-on"]["description"]
    assert [each for each in FAIL_ON if each not in description] == []
