"""Dates and lifetimes of signatures that are none: each is refused in its service's words.

Sources: S3 API reference, "Authenticating Requests: Using Query Parameters" and "Error responses";
IAM user guide, "Troubleshoot Signature Version 4 signing"; the words are those that Swift's
functional tests (X-Amz-Expires, Expires) and dynalite (dates) have from AWS.
"""

from __future__ import annotations

import json
import time
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signed_requests import Answer, ask, signed

from local_sagemaker.admission import Credentials, admit_known
from local_sagemaker.signatures import Untimely, check_time

CREDENTIALS = Credentials.new()
PORT = 8000
LONG = "9" * 5000
SCOPE = "20260101/us-east-1/s3/aws4_request"
TODAY = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
NO_NUMBER = ("AuthorizationQueryParametersError", "X-Amz-Expires should be a number")
NO_DATE = ("AuthorizationQueryParametersError", "X-Amz-Date must be in the ISO8601 Long Format")
LACKING = ("AuthorizationQueryParametersError", "authentication version 4 requires")
NO_SECONDS = ("AccessDenied", "Invalid date (should be seconds since epoch): ")


def url(key: str, date: str | None = TODAY, lasts: str | None = "60") -> str:
    given = {"X-Amz-Date": date, "X-Amz-Expires": lasts, "X-Amz-Credential": f"{key}/{SCOPE}"}
    return "/mine/k?" + urlencode({name: text for name, text in given.items() if text is not None})


def url_of_version_2(key: str, expires: str) -> str:
    return f"/mine/k?AWSAccessKeyId={key}&Signature=x&Expires={quote(expires)}"


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"date": "99999999T999999Z"}, NO_DATE),
        ({"date": "20260230T000000Z"}, NO_DATE),
        ({"date": "20260101T000060Z"}, NO_DATE),
        ({"date": "20260101T000061Z"}, NO_DATE),
        ({"date": "\u06620260101T000000Z"}, NO_DATE),
        ({"date": "Thu, 01 Jan 2026 00:00:00 GMT"}, NO_DATE),
        ({"date": "2026-01-01T00:00:00Z"}, NO_DATE),
        ({"date": ""}, LACKING),
        ({"date": None}, LACKING),
        ({"lasts": None}, LACKING),
        ({"lasts": "²"}, NO_NUMBER),
        ({"lasts": LONG}, NO_NUMBER),
        ({"lasts": "1e3"}, NO_NUMBER),
        ({"lasts": "1_0"}, NO_NUMBER),
        ({"lasts": " 60"}, NO_NUMBER),
        ({"lasts": "6.0"}, NO_NUMBER),
        ({"lasts": "-1"}, ("AuthorizationQueryParametersError", "must be non-negative")),
        ({"lasts": "604801"}, ("AuthorizationQueryParametersError", "less than a week")),
        ({"date": "20200101T000000Z"}, ("AccessDenied", "Request has expired")),
    ],
)
def test_a_url_whose_date_or_lifetime_is_none_is_refused(aws, given, refused):
    answer = ask(aws.port, "GET", url(aws.credentials.access_key, **given))
    assert answer.status in (400, 403)
    assert said(answer)[0] == refused[0]
    assert refused[1] in said(answer)[1]


@pytest.mark.parametrize("expires", ["²", LONG, "9999999999", "1.5", "soon", "-"])
def test_a_url_of_version_2_counts_in_seconds(aws, expires):
    answer = ask(aws.port, "GET", url_of_version_2(aws.credentials.access_key, expires))
    assert answer.status == 403
    assert said(answer) == (NO_SECONDS[0], NO_SECONDS[1] + expires)


@pytest.mark.parametrize(
    "stamp",
    [
        "99999999T999999Z",
        "20261301T000000Z",
        "20260101T000060",
        "201",
        "Thu, 01 Jan 99999999999 00:00:00 GMT",
        "Thu, 01 Foo 2026 00:00:00 GMT",
        "Thu, 32 Jan 2026 00:00:00 GMT",
        "²",
        LONG,
    ],
)
@pytest.mark.parametrize("header", ["X-Amz-Date", "Date"])
@pytest.mark.parametrize(
    ("service", "code"),
    [("sqs", "IncompleteSignatureException"), ("iam", "IncompleteSignature"), ("s3", "Access")],
)
def test_a_header_that_is_no_date_is_refused(aws, service, code, header, stamp):
    headers = signed(aws.credentials.access_key, service)
    del headers["X-Amz-Date"]
    form = "application/x-www-form-urlencoded" if service == "iam" else ""
    target = {"X-Amz-Target": "AmazonSQS.ListQueues"} if service == "sqs" else {}
    answer = ask(aws.port, "POST", "/", {**headers, header: stamp, "Content-Type": form, **target})
    assert answer.status == 403
    assert code in said(answer)[0]
    if service != "s3":
        assert said(answer)[1].startswith("Date must be in ISO-8601 'basic format'. Got '")


def said(answer: Answer) -> tuple[str, str]:
    """Code and message of a refusal."""
    if answer.headers["content-type"].startswith("application"):
        document = json.loads(answer.body)
        return answer.headers["x-amzn-errortype"], document["message"]
    error = ElementTree.fromstring(answer.body)
    texts = {element.tag: element.text or "" for element in error.iter()}
    return texts["Code"], texts["Message"]


TEXT = st.one_of(
    st.text(),
    st.from_regex(r"\d{8}T\d{6}Z", fullmatch=True),
    st.integers().map(str),
    st.from_regex(r"\w{3}, \d+ (Jan|Feb) \d+ \d+:\d+:\d+ (GMT|[+-]\d{4,6})", fullmatch=True),
    st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S -0000")),
)


@given(TEXT, TEXT, st.sampled_from(["s3", "ec2", "sqs"]))
def test_no_text_of_a_date_or_lifetime_is_an_internal_error(date, lasts, service):
    """Whatever it is, it is judged; and what is refused can be read."""
    key = CREDENTIALS.access_key
    header = {"authorization": f"AWS4-HMAC-SHA256 Credential={key}/1/us-east-1/{service}/x"}
    admit = admit_known(CREDENTIALS)
    requests = [
        ("/", {**header, "x-amz-date": date}),
        ("/", {**header, "date": date}),
        (
            "/?" + urlencode({"X-Amz-Date": date, "X-Amz-Credential": key, "X-Amz-Expires": lasts}),
            {},
        ),
        (f"/?AWSAccessKeyId={key}&" + urlencode({"Expires": lasts}), {}),
    ]
    for target, headers in requests:
        refused = admit(target, {"host": f"localhost:{PORT}", **headers}, PORT)
        if refused is not None:
            assert said(Answer(refused.status, dict(refused.headers), refused.body))[0]


def test_a_url_lasts_a_week_at_most_and_not_a_second_longer():
    signed_at = 1767225600.0
    target = url("AKIA", "20260101T000000Z", "604800")
    assert check_time(target, {}, "s3", signed_at + 604_800) is None
    late = check_time(target, {}, "s3", signed_at + 604_801)
    assert late == Untimely("url-expired", "Request has expired")
