"""A pull request of somebody whom nobody knows: nothing is read, run or written that is not its."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from low_latency_endpoint.change import revisions
from low_latency_endpoint.report.markdown import MOST_CHARACTERS, escaped

from .conftest import SHIPPED, Check, Checkout, settings

SECRET = "c2VjcmV0LXRva2Vu"
EVIL = (
    "a|b `c` @nobody/team ``` <img src=https://evil.example/x.png onerror=alert(1)> *d* #1 GH-2 "
    "octocat/x#3 https://evil.example www.evil.example ![p](//evil) [l](//evil) </details> "
    "<!-- low-latency-endpoint: pull-request check --> :tada: $x$ \\ ~~s~~\n"
    "::error::from the settings\n\n# A title\n\u202eabc\u2066"
)


def container(**changes: object) -> list[dict[str, object]]:
    return [{**SHIPPED["endpoints"]["sentiment"]["containers"][0], **changes}]


OURS = {
    *("blockquote", "br", "code", "details", "h3", "h4", "li", "p", "strong", "sub", "summary"),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def no_markup(text: str) -> None:
    """Nothing but our own markup, and nothing that GitHub makes a link, a picture or a name of."""
    lines = text.splitlines()
    assert "<!--" not in text
    assert text.count("<details") == text.count("</details>")
    assert not [line for line in lines if line.startswith(("::", "# ", "```"))]
    assert not set("\u202e\u2066") & set(text)
    html = MARKDOWN.render(text)
    assert set(re.findall(r"<([a-zA-Z]\w*)", html)) <= OURS
    assert set(re.findall(r"<\w+ ([^>]*)>", html)) <= {"open"}
    # GitHub looks for names and numbers in the text of what Markdown has become, but for code.
    shown = unescape(re.sub(r"<code>.*?</code>|<[^>]*>", " ", html, flags=re.DOTALL))
    assert not re.search(r"@\w|#\d|\bGH-\d|://|www\.", shown)
    assert set(re.findall(r":[a-z_]+:", shown)) <= {
        *(":no_entry:", ":x:", ":grey_question:", ":large_orange_diamond:", ":new:"),
        *(":white_check_mark:", ":warning:"),
    }


def test_text_of_the_settings_is_text(check: Check, checkout: Checkout) -> None:
    tick = "x` <b>bold</b> @nobody `"
    environment = {"NOTE": EVIL, "TICK": tick, "END": "\\", "EMPTY": " "}
    base, head = checkout.pull_request(
        {
            "endpoint.yaml": settings(
                {"tags": {"note": "@nobody"}}, containers=container(environment=environment)
            )
        }
    )
    text = check(f"{base}...{head}").out
    assert "environment.NOTE" in text
    no_markup(text)


def test_mistakes_of_the_settings_are_text(check: Check, checkout: Checkout) -> None:
    wrong = settings({"@nobody #1 <img>": 1}, volume_size_gib=EVIL, instance_type=EVIL)
    (checkout.folder / "endpoint.yaml").write_text(wrong, encoding="utf-8")
    answer = check("main")
    assert answer.code == 1
    assert "LLE904" in answer.out
    no_markup(answer.out)


def test_names_of_files_are_text(check: Check, checkout: Checkout) -> None:
    name = "a|b `c` @nobody #1 <img>\n::error::x.yaml"
    (checkout.folder / name).write_text(settings(), encoding="utf-8")
    no_markup(check("main", "--settings", "*.yaml").out)


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x1b", "\ue000"])
def test_hidden_characters_are_spelt_out(character: str) -> None:
    assert f"u{ord(character):04x}" in escaped(f"a{character}b")
    assert character not in escaped(f"a{character}b")


def test_what_ends_a_link_is_not_spelt_out(check: Check, checkout: Checkout) -> None:
    """A comment, through the command line: the sign is ours, and nobody sees it."""
    note = container(environment={"NOTE": "@nlp #1"})
    changed = settings(role_arn="arn:aws:iam::123456789012:role/model", containers=note)
    (checkout.folder / "endpoint.yaml").write_text(changed, encoding="utf-8")
    answer = check("main")
    assert answer.code == 0, answer.err
    assert "arn:\u200baws:\u200biam::123456789012:role/model" in answer.out
    assert "&#64;\u200bnlp &#35;\u200b1" in answer.out
    assert "\\u200b" not in answer.out
    no_markup(answer.out)


def test_a_huge_pull_request_makes_a_comment_that_github_takes(
    check: Check, checkout: Checkout
) -> None:
    environment = {f"NAME_{number}": "|" * 300 for number in range(16)}
    endpoints = {
        f"endpoint-{number}": {
            **SHIPPED["endpoints"]["sentiment"],
            "endpoint_name": f"e{number}",
            "containers": container(environment=environment),
        }
        for number in range(12)
    }
    few = {key: {**each, "containers": container()} for key, each in endpoints.items()}

    def files(stated: dict[str, dict[str, object]]) -> dict[str, str | None]:
        return {
            f"{letter}.yaml": settings(
                {
                    "stack_name": letter,
                    "endpoints": {
                        k: {**v, "endpoint_name": f"{letter}{k}"} for k, v in stated.items()
                    },
                }
            )
            for letter in "abc"
        }

    checkout.commit(files(few))
    base, head = checkout.pull_request(files(endpoints))
    answer = check(f"{base}...{head}", "--settings", "*.yaml")
    assert answer.code == 0, answer.err
    assert len(answer.out) <= MOST_CHARACTERS
    assert "lines are missing" in answer.out
    assert answer.out.count("<details") == answer.out.count("</details>")


def secret_of(folder: Path) -> Path:
    """A file that a job has beside the checkout."""
    path = folder / "secret.csv"
    path.write_text(f"item,usd\n{SECRET},1\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["absolute", "above", "a link", "of Git's"])
@pytest.mark.parametrize("setting", ["prices", "payload", "lock"])
def test_files_outside_of_the_repository_are_not_read(
    check: Check, checkout: Checkout, tmp_path: Path, setting: str, how: str
) -> None:
    secret = secret_of(tmp_path)
    checkout.git("config", "http.extraheader", f"AUTHORIZATION: basic {SECRET}")
    name = {
        "absolute": str(secret),
        "above": "../secret.csv",
        "a link": "link.csv",
        "of Git's": ".git/config",
    }[how]
    if how == "a link":
        (checkout.folder / "link.csv").symlink_to(secret)
    hub = {"model": "a/b", "lock": name}
    text = {
        "prices": settings({"prices": {"file": name}}),
        "payload": settings(
            warm_up={"payload": {"file": name, "content_type": "application/json"}}
        ),
        "lock": settings(hugging_face=hub).replace(
            "containers:", "variant_name: a\n    containers:"
        ),
    }[setting]
    base, head = checkout.pull_request({"endpoint.yaml": text})
    local = check(base)  # the same in the working tree
    for answer in (local, check(f"{base}...{head}")):
        assert answer.code == 1
        assert SECRET not in answer.out + answer.err
        # What a commit holds never has a .git.
        assert "LLE983" in answer.out or (how == "of Git's" and answer is not local)


@pytest.mark.parametrize("to", ["{outside}/secret.csv", ".git/config", "/proc/self/environ"])
def test_settings_that_are_a_link_out_of_the_repository_are_not_read(
    check: Check, checkout: Checkout, tmp_path: Path, to: str
) -> None:
    secret_of(tmp_path)
    checkout.git("config", "http.extraheader", f"AUTHORIZATION: basic {SECRET}")
    (checkout.folder / "endpoint.yaml").unlink()
    (checkout.folder / "endpoint.yaml").symlink_to(to.format(outside=tmp_path))
    local = check("main")
    assert local.err.startswith("LLE983: ")
    base, head = checkout.pull_request({})
    answer = check(f"{base}...{head}")
    assert answer.code in (1, 2)
    assert SECRET not in local.out + local.err + answer.out + answer.err


@pytest.mark.parametrize("name", ["/etc/passwd", "../other.yaml", "a/../../other.yaml"])
def test_settings_outside_of_the_repository_are_not_read(
    check: Check, checkout: Checkout, name: str
) -> None:
    assert check("main", "--settings", name).err.startswith("LLE983: ")


def test_what_other_steps_of_the_job_wrote_is_not_read(check: Check, checkout: Checkout) -> None:
    """Such as credentials that an action leaves in the workspace."""
    base, head = checkout.pull_request(
        {"endpoint.yaml": settings({"prices": {"file": "credentials.csv"}})}
    )
    (checkout.folder / "credentials.csv").write_text(f"item,usd\n{SECRET},1\n")
    answer = check(f"{base}...{head}")
    assert answer.code == 1
    assert "No such file" in answer.out
    assert SECRET not in answer.out


@pytest.mark.parametrize(("filtered", "code"), [("other", 0), ("*", 2)])
def test_no_code_of_the_pull_request_is_run(
    check: Check, checkout: Checkout, tmp_path: Path, filtered: str, code: int
) -> None:
    """A filter on what is read is refused, with what a checkout would run for it not run."""
    owned = tmp_path / "owned"
    python = f"open({str(owned)!r}, 'w')\n"
    base, head = checkout.pull_request(
        {
            "endpoint.yaml": settings(endpoint_name="mood"),
            "sitecustomize.py": python,
            "yaml.py": python,
            "low_latency_endpoint/__init__.py": python,
            ".gitattributes": f"* diff=evil export-subst\n{filtered} filter=evil\n",
            ".gitconfig": f'[filter "evil"]\n\tsmudge = touch {owned}\n',
            ".githooks/post-checkout": f"#!/bin/sh\ntouch {owned}\n",
        }
    )
    assert check(f"{base}...{head}").code == code
    assert not owned.exists()


HOSTILE = """[core]
\trepositoryformatversion = 1
\tfsmonitor = touch {owned}-fsmonitor
\thooksPath = {hooks}
\tsshCommand = touch {owned}-ssh;
\tgitProxy = touch {owned}-proxy;
\talternateRefsCommand = touch {owned}-alternate;
\tpager = touch {owned}-pager;
[extensions]
\tpartialClone = origin
[protocol]
\tallow = always
[protocol "file"]
\tallow = always
[protocol "ext"]
\tallow = always
[remote "origin"]
\tpromisor = true
\turl = {url}
\tuploadpack = "touch {owned}-uploadpack; false"
"""
#: What the configuration fetches missing objects from.
PROMISORS = (".", "ext::touch {owned}-ext", "ssh://localhost/x", "git://localhost/x")


def planted(folder: str, config: str) -> dict[str, str | None]:
    """The files that make a folder a bare repository."""
    hostile = f"{config}[core]\n\tbare = false\n\tworktree = .\n"
    names = {"HEAD": f"{'1' * 40}\n", "config": hostile, "refs/heads/main": f"{'2' * 40}\n"}
    names |= {"refs/x": "x", "objects/x": "x"}
    return {f"{folder}/{name}": text for name, text in names.items()}


def hostile(folder: Path, owned: Path, url: str) -> str:
    """A configuration that runs a command wherever Git lets one; hooks lie beside it."""
    hooks = folder / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {owned}-{name}\n")
        (hooks / name).chmod(0o755)
    return HOSTILE.format(owned=owned, hooks=hooks, url=url.format(owned=owned))


@pytest.mark.parametrize("url", PROMISORS)
@pytest.mark.parametrize("start", [".", "endpoints", "endpoints/below", "below/endpoints"])
@pytest.mark.parametrize("knows_bare", [True, False])
def test_no_repository_that_the_pull_request_brings_is_used(
    check: Check,
    checkout: Checkout,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    knows_bare: bool,
    start: str,
    url: str,
) -> None:
    """Also by a Git that knows no safe.bareRepository; beside the checkout's own .git it is none."""
    owned = tmp_path / "owned"
    *others, safe = revisions._SETTINGS
    assert "bareRepository" in safe
    if not knows_bare:
        monkeypatch.setattr(revisions, "_SETTINGS", tuple(others[:-1]))
    config = hostile(tmp_path, owned, url)
    at = start.removesuffix("/below")
    renamed = {"endpoint.yaml": settings(endpoint_name="mood"), f"{start}/x": ""}
    base, head = checkout.pull_request(planted(at, config) | renamed)
    monkeypatch.chdir(checkout.folder / start)
    for against in (f"{base}...{head}", "main...HEAD", "main"):
        answer = check(against, "--fail-on", "replacement")
        if start == ".":
            assert (answer.code, "mood comes up beside sentiment" in answer.out) == (1, True)
        else:
            assert (answer.code, answer.out, answer.err[:8]) == (2, "", "LLE980: ")
    assert not list(tmp_path.glob("owned*"))


@pytest.mark.parametrize("url", PROMISORS)
@pytest.mark.parametrize("missing", ["endpoint.yaml", "tree", "commit"])
def test_no_configuration_that_the_checkout_includes_fetches_what_is_missing(
    check: Check, checkout: Checkout, tmp_path: Path, url: str, missing: str
) -> None:
    """Teams keep a .gitconfig in the repository, which their checkouts include."""
    owned = tmp_path / "owned"
    config = hostile(tmp_path, owned, url)
    base, head = checkout.pull_request({"endpoint.yaml": settings(), ".gitconfig": config})
    checkout.git("config", "core.repositoryFormatVersion", "1")
    checkout.git("config", "include.path", "../.gitconfig")
    of = {"endpoint.yaml": f"{head}:endpoint.yaml", "tree": f"{head}^{{tree}}", "commit": head}
    sha = checkout.git("rev-parse", of[missing])
    (checkout.folder / ".git/objects" / sha[:2] / sha[2:]).unlink()
    for made in tmp_path.glob("owned*"):  # by the Git of the test
        made.unlink()
    answer = check(f"{base}...{head}")
    assert (answer.code, answer.out, answer.err[:8]) == (2, "", "LLE980: ")
    assert not list(tmp_path.glob("owned*"))


def test_worktrees_and_submodules_have_a_git_folder_elsewhere(
    check: Check, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    checkout.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "beside"))
    local = ("-c", "protocol.file.allow=always")
    checkout.git(*local, "submodule", "--quiet", "add", str(checkout.folder), "below")
    (tmp_path / "link").symlink_to(checkout.folder)
    for folder in (tmp_path / "beside", checkout.folder / "below", tmp_path / "link"):
        monkeypatch.chdir(folder)
        assert "mood comes up beside sentiment" in check(f"{base}...{head}").out


@pytest.mark.parametrize("text", ["gitdir: elsewhere\n", "", "\0", "gitdir: endpoints\n"])
def test_a_git_file_that_names_no_repository_is_refused(
    check: Check, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("GIT_DIR", str(checkout.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    (tmp_path / ".git").write_text(text)
    assert check("main").err.startswith("LLE980: ")


def test_the_checkout_stays_as_it_was(check: Check, checkout: Checkout) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    index = (checkout.folder / ".git/index").read_bytes()
    check(f"{base}...{head}")
    assert (checkout.folder / ".git/index").read_bytes() == index
    assert checkout.git("status", "--porcelain") == ""
    assert checkout.git("worktree", "list").count("\n") == 0


def test_attributes_of_one_side_do_not_apply_to_the_other(check: Check, checkout: Checkout) -> None:
    """Git would read the former file in the encoding that the pull request states."""
    checkout.commit({"endpoint.yaml": f"# f\u00fcr alle\n{settings()}"})
    sentiment = {**SHIPPED["endpoints"]["sentiment"], "endpoint_name": "o"}
    base, head = checkout.pull_request(
        {
            "endpoint.yaml": settings({"endpoints": {"other": sentiment}}),
            ".gitattributes": "endpoint.yaml text working-tree-encoding=ISO-8859-1\n",
        }
    )
    answer = check(base, "--fail-on", "deletion")
    assert (answer.code, "whoever invokes it fails" in answer.out) == (1, True)
    assert check(f"{base}...{head}").err.startswith("LLE998: ")  # a checkout has other bytes
    assert check(f"{head}...{base}").code == 0  # the former side's own has none


def tree_with(checkout: Checkout, entries: str) -> str:
    """A commit of a tree as nobody's Git would make it."""
    tree = subprocess.run(
        ["git", "mktree"],
        cwd=checkout.folder,
        input=entries,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return checkout.git("commit-tree", "-m", "Odd", tree)


def test_no_file_is_written_through_a_link(
    check: Check, checkout: Checkout, tmp_path: Path
) -> None:
    """A tree can hold a link and a folder of one name, and names that lead upwards."""
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = checkout.git("rev-parse", "HEAD:endpoint.yaml")
    (tmp_path / "target").write_text(str(outside))
    link = checkout.git("hash-object", "-w", str(tmp_path / "target"))
    inner = checkout.git(
        "rev-parse", tree_with(checkout, f"100644 blob {blob}\towned\n") + "^{tree}"
    )
    both = tree_with(checkout, f"120000 blob {link}\ta\n040000 tree {inner}\ta\n")
    for odd in (both, tree_with(checkout, f"040000 tree {inner}\t..\n")):
        answer = check(odd)
        assert (answer.code, answer.err[:8]) == (2, "LLE980: ")
    assert not list(outside.iterdir())


def test_a_file_called_as_the_revision_decides_nothing(check: Check, checkout: Checkout) -> None:
    base, _ = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    checkout.commit({base: settings(endpoint_name="mood")})
    assert "mood comes up beside sentiment" in check(f"{base}...HEAD").out
    assert "mood comes up beside sentiment" in check(base).out
