"""One comment that updates itself, on events as GitHub records them; no network but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from low_latency_endpoint.review.github import MARKER

from .conftest import Check, Checkout, Workflow, settings
from .github_stand_in import BOT, StandIn

HUMAN = {"login": "octocat", "id": 583231, "type": "User"}


@pytest.fixture
def on_pull_request(checkout: Checkout, workflow: Workflow) -> dict[str, str]:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    return workflow("pull_request", base, head)


@pytest.mark.usefixtures("on_pull_request")
def test_the_first_run_makes_it_and_the_second_renews_it(
    check: Check, checkout: Checkout, github: StandIn
) -> None:
    answer = check("--post")
    assert answer.code == 0, answer.err
    (made,) = github.comments
    assert answer.out.splitlines() == [
        f"The comment: created {made['html_url']}",
        "The check passes.",
    ]
    assert made["body"].startswith(f"{MARKER}\n### :x: replaced: ")
    checkout.commit({"endpoint.yaml": settings(volume_size_gib=64)})
    assert "The comment: updated" in check("--post").out
    (renewed,) = github.comments
    assert renewed["id"] == made["id"]
    assert "volume_size_gib" in renewed["body"]
    assert "The comment: unchanged" in check("--post").out
    assert github.writes == ["POST", "PATCH"]


@pytest.mark.usefixtures("on_pull_request")
def test_it_is_found_on_a_later_page(check: Check, github: StandIn) -> None:
    for number in range(250):
        github.add(f"Comment {number}", HUMAN)
    own = github.add(f"{MARKER}\nformer", BOT)
    check("--post")
    assert github.writes == ["PATCH"]
    assert own["body"] != f"{MARKER}\nformer"


@pytest.mark.usefixtures("on_pull_request")
def test_a_comment_of_somebody_else_with_the_marker_is_left_alone(
    check: Check, github: StandIn
) -> None:
    others = [
        github.add(f"{MARKER}\nmine", HUMAN),
        github.add(f"See what it wrote:\n{MARKER}", BOT),
        github.add(f"{MARKER}\nof another app", {"login": "other[bot]", "id": 5, "type": "Bot"}),
    ]
    bodies = [each["body"] for each in others]
    assert check("--post").code == 0
    assert [each["body"] for each in others] == bodies
    assert "unchanged" in check("--post").out
    assert len(github.comments) == 4


@pytest.mark.usefixtures("on_pull_request")
def test_a_persons_token_renews_that_persons_comment_alone(check: Check, github: StandIn) -> None:
    github.user = {"login": "octocat", "id": 583231, "type": "User"}
    of_the_bot = github.add(f"{MARKER}\nthe bot's", BOT)
    own = github.add(f"{MARKER}\nformer", github.user)
    assert "updated" in check("--post").out
    assert of_the_bot["body"] == f"{MARKER}\nthe bot's"
    assert own["body"] != f"{MARKER}\nformer"


def test_a_forks_token_only_reads_so_the_summary_has_it(
    check: Check, checkout: Checkout, github: StandIn, workflow: Workflow
) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    environment = workflow("pull_request_of_a_fork", base, head)
    github.read_only = True
    answer = check("--post", "--fail-on", "replacement")
    assert answer.code == 1  # the verdict, not GitHub's answer
    assert "Not posted, as a fork's pull request has a token that only reads" in answer.err
    summary = Path(environment["GITHUB_STEP_SUMMARY"]).read_text("utf-8")
    assert summary.startswith(MARKER)
    assert "Not posted as a comment: a fork's pull request" in summary


@pytest.mark.parametrize("name", ["push", "merge_group"])
def test_without_a_pull_request_there_is_a_summary_alone(
    check: Check, checkout: Checkout, github: StandIn, workflow: Workflow, name: str
) -> None:
    base, head = checkout.pull_request({"endpoint.yaml": settings(endpoint_name="mood")})
    environment = workflow(name, base, head)
    answer = check("--post")
    assert (answer.code, github.asked) == (0, [])
    assert f"{name} is of no pull request" in answer.err
    assert "replaced" in Path(environment["GITHUB_STEP_SUMMARY"]).read_text("utf-8")


def test_without_post_nobody_is_asked(
    check: Check, github: StandIn, on_pull_request: dict[str, str]
) -> None:
    assert check().out.startswith(MARKER)
    assert github.asked == []
    assert Path(on_pull_request["GITHUB_STEP_SUMMARY"]).read_text("utf-8").startswith(MARKER)


@pytest.mark.usefixtures("on_pull_request")
def test_a_hiccup_is_waited_for(check: Check, github: StandIn, waits: list[float]) -> None:
    github.answers = [("GET", 502, {}, "Bad Gateway"), ("GET", 503, {}, "Unavailable")]
    assert "created" in check("--post").out
    assert waits == [1, 2]


@pytest.mark.usefixtures("on_pull_request")
def test_a_comment_that_was_made_before_the_answer_broke_is_not_made_twice(
    check: Check, github: StandIn
) -> None:
    github.answers = [("POST", 502, {"done": "yes"}, "Bad Gateway")]
    check("--post")
    assert len(github.comments) == 1
    github.comments.clear()
    github.answers = [("POST", 502, {}, "Bad Gateway")]  # and one that was not
    check("--post")
    assert len(github.comments) == 1


@pytest.mark.usefixtures("on_pull_request")
@pytest.mark.parametrize(
    ("status", "headers", "message", "seconds"),
    [
        (403, {"Retry-After": "7"}, "You have exceeded a secondary rate limit", 7),
        (429, {"Retry-After": "7"}, "Too Many Requests", 7),
        (403, {}, "You have exceeded a secondary rate limit", 60),
        (
            403,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"},
            "API rate limit exceeded",
            1,
        ),
    ],
)
def test_a_rate_limit_is_waited_for(
    check: Check,
    github: StandIn,
    waits: list[float],
    status: int,
    headers: dict[str, str],
    message: str,
    seconds: float,
) -> None:
    github.answers = [("POST", status, headers, message)]
    assert "created" in check("--post").out
    assert waits == [seconds]
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (422, {}, "Validation Failed"),
        (404, {}, "Not Found"),
        (403, {"Retry-After": "3600"}, "You have exceeded a secondary rate limit"),
        (302, {"Location": "https://evil.example/"}, "Found"),
    ],
)
def test_what_github_refuses_is_said_and_the_summary_has_it(
    check: Check,
    github: StandIn,
    on_pull_request: dict[str, str],
    status: int,
    headers: dict[str, str],
    message: str,
) -> None:
    github.answers = [("POST", status, headers, message)]
    answer = check("--post")
    assert answer.code == 2
    assert answer.err.startswith("LLE982: ")
    assert f"{status} {message}" in answer.err
    assert Path(on_pull_request["GITHUB_STEP_SUMMARY"]).read_text("utf-8").startswith(MARKER)
    assert [method for method, _ in github.asked].count("POST") == 1


@pytest.mark.usefixtures("on_pull_request")
def test_a_server_that_stays_down_is_said(check: Check, github: StandIn) -> None:
    github.answers = [("GET", 500, {}, "Server Error")] * 20
    assert check("--post").err.startswith("LLE982: ")
    assert len(github.asked) == 4


@pytest.mark.usefixtures("on_pull_request")
@pytest.mark.parametrize(
    ("name", "value"),
    [("GITHUB_TOKEN", ""), ("GITHUB_TOKEN", "a\r\nHost: b"), ("GITHUB_API_URL", "file:///etc")],
)
def test_what_is_no_token_or_no_server(
    check: Check, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert check("--post").err.startswith("LLE982: ")


def test_posting_goes_with_a_workflow(check: Check, checkout: Checkout) -> None:
    assert check("--base", "main", "--post").err.startswith("LLE981: ")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pull_request": {"number": "7; ls"}}'])
def test_an_event_that_is_none(check: Check, on_pull_request: dict[str, str], text: str) -> None:
    Path(on_pull_request["GITHUB_EVENT_PATH"]).write_text(text)
    assert check("--post").err.startswith("LLE981: ")


@pytest.mark.usefixtures("on_pull_request")
def test_a_repository_that_is_none(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "../../user")
    assert check("--post").err.startswith("LLE981: ")


def test_a_commit_of_the_event_that_is_no_commit(
    check: Check, checkout: Checkout, workflow: Workflow
) -> None:
    workflow("pull_request", "--upload-pack=touch owned", "0" * 40)
    answer = check()
    assert answer.err.startswith("LLE980: ")
    assert not (checkout.folder / "owned").exists()
