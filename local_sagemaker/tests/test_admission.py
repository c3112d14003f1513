"""Who is let in: the user who started it. No web page, no other user of the machine."""

from __future__ import annotations

import contextlib
import json
import re
import stat
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site
from roles_under_test import allow, document, give_role
from signed_requests import Answer, ask, client_with, raw, signed

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.model_servers.simulated import Simulation
from local_sagemaker.runtime.http_server import listening

EVIL = "https://evil.example"
FOREIGN_KEYS = ("testing", "AKIAIOSFODNN7EXAMPLE", "AKIA" + "A" * 16, "", "%", "é")


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with an endpoint and a bucket that somebody may want."""
    options = RuntimeOptions(clock_speed=0.0)
    servers = {"*": SimulatedModelServer()}
    with LocalAws.in_process(model_servers=servers, runtime=options) as running:
        running.reset()
        running.client("s3").create_bucket(Bucket="mine")
        running.client("s3").put_object(Bucket="mine", Key="k", Body=b"secret")
        Site(running).endpoint(name="e")
        yield running


@pytest.fixture(params=["main", "runtime", "zone"])
def door(request: pytest.FixtureRequest, aws: LocalAws) -> int:
    """Each port at which this local AWS answers."""
    runtime, zone = aws.runtime_url(), aws.runtime_url("use1-az1")
    url = {"main": aws.url, "runtime": runtime, "zone": zone}[request.param]
    return urlsplit(url).port or 0


@pytest.fixture
def key(aws: LocalAws) -> str:
    return aws.exports()["AWS_ACCESS_KEY_ID"]


@pytest.fixture
def token(aws: LocalAws) -> str:
    return aws.exports()["LOCAL_SAGEMAKER_TOKEN"]


def invoke(port: int, headers: Mapping[str, str]) -> Answer:
    given = {"Content-Type": "application/json", **headers}
    return ask(port, "POST", "/endpoints/e/invocations", given, b'{"a": 1}')


class TestPages:
    """What browsers add to a page's request, and a page cannot leave out."""

    @pytest.mark.parametrize(
        "added",
        [
            {"Origin": EVIL},
            {"Origin": "null"},
            {"Origin": "http://localhost:8000"},
            {"Origin": ""},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "anything"},
            {"Origin": "http://localhost:{}", "Sec-Fetch-Site": "same-origin"},
        ],
    )
    def test_a_page_is_refused_with_the_right_key(self, door, key, added):
        assert invoke(door, signed(key, "sagemaker")).body == b'{"a": 1}'
        page = {name: value.format(door) for name, value in added.items()}
        answer = invoke(door, {**signed(key, "sagemaker"), **page})
        assert answer.status == 403
        assert b"web page" in answer.body

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example:{}",
            "evil.example",
            "localhost",
            "127.0.0.1",
            "localhost:1",
            "127.0.0.2:{}",
            "localhost.evil.example:{}",
            "evillocalhost:{}",
            "localhost:{}@evil.example",
            "evil.example#localhost:{}",
            "[::2]:{}",
            "0.0.0.0:{}",
            "",
            ":{}",
            "localhost:{}0",
        ],
    )
    def test_a_name_that_is_not_ours_is_refused(self, door, key, host):
        answer = invoke(door, {**signed(key, "sagemaker"), "Host": host.format(door)})
        assert answer.status == 403

    @pytest.mark.parametrize(
        "host",
        [
            "localhost:{}",
            "127.0.0.1:{}",
            "[::1]:{}",
            "LOCALHOST:{}",
            "runtime.sagemaker.localhost:{}",
        ],
    )
    def test_our_own_names_are_answered(self, door, key, host):
        answer = invoke(door, {**signed(key, "sagemaker"), "Host": host.format(door)})
        assert answer.status == 200

    @pytest.mark.parametrize(
        ("version", "hosts"), [("1.1", ["localhost:{}", "evil.example"]), ("1.0", [])]
    )
    def test_two_hosts_or_no_host_are_refused(self, door, key, version, hosts):
        lines = [
            f"POST /endpoints/e/invocations HTTP/{version}",
            *(f"Host: {host.format(door)}" for host in hosts),
            "Content-Length: 0",
            "Connection: close",
            *(f"{n}: {v}" for n, v in signed(key, "sagemaker").items()),
        ]
        assert raw(door, "\r\n".join([*lines, "", ""]).encode()).status == 403

    def test_a_preflight_is_not_granted(self, door, key):
        asked = {
            "Origin": EVIL,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,x-local-aws-token",
        }
        for headers in (asked, {**asked, **signed(key, "s3")}):
            answer = ask(door, "OPTIONS", "/", headers)
            assert answer.status == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]

    def test_no_answer_tells_a_browser_that_others_may_read_it(self, aws, key):
        answer = ask(aws.port, "GET", "/", signed(key, "s3"))
        assert (answer.status, b"<Name>mine</Name>" in answer.body) == (200, True)
        assert not [name for name in answer.headers if name.startswith("access-control")]

    def test_a_web_socket_is_none(self, door):
        asked = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Origin": EVIL,
        }
        assert ask(door, "GET", "/", asked).status == 403

    def test_model_servers_of_ours_answer_none(self):
        with listening(Simulation(SimulatedModelServer(), 0)) as listener:

            def answer(headers: Mapping[str, str]) -> int:
                return ask(listener.port, "POST", "/invocations", headers, b"x").status

            assert answer({}) == 200
            assert answer({"Origin": EVIL}) == 403
            assert answer({"Host": f"evil.example:{listener.port}"}) == 403


class TestOtherUsers:
    """Another process here, which knows the port and nothing else."""

    @pytest.mark.parametrize("foreign", [*FOREIGN_KEYS, None])
    def test_an_invocation_needs_the_key(self, door, foreign):
        answer = invoke(door, {} if foreign is None else signed(foreign, "sagemaker"))
        assert answer.status == 403
        if foreign:
            words = "security token included in the request is invalid"
            assert words in json.loads(answer.body)["message"]
        else:
            assert answer.headers["x-amzn-errortype"] == "MissingAuthenticationTokenException"

    @pytest.mark.parametrize(
        "path",
        [
            "/_local/runtime/model-servers",
            "/_local/runtime/time",
            "/_local/cloudwatch/actions",
            "/_local/nothing",
            "/%5flocal/runtime/time",
            "//_local/runtime/time",
            "/moto-api/reset",
            "//moto-api/reset",
            "/%6doto-api/reset",
            "/moto-api/data.json",
            "/moto-api/",
            "/moto-api/config",
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_controls_need_the_token(self, aws, key, path, method):
        wrong = [
            {},
            {"X-Local-Aws-Token": ""},
            {"X-Local-Aws-Token": "x" * 32},
            {"X-Local-Aws-Token": "é"},
            {"X-Local-Aws-Token": key},
            signed(key, "s3"),
        ]
        command = {"*": {"kind": "command", "command": ["true"]}}
        for headers in wrong:
            answer = ask(aws.port, method, path, headers, json.dumps(command).encode())
            assert answer.status == 403, (headers, answer.body)
        assert aws.client("s3").list_buckets()["Buckets"][0]["Name"] == "mine"
        assert Site(aws).invoke("e", b"as before")["Body"] == b"as before"

    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/mine",
            "/mine/k",
            "/mine/k?versionId=1",
            "/latest/meta-data/iam/security-credentials/default-role",
            "/favicon.ico",
            "/us-east-1_x/.well-known/jwks.json",
        ],
    )
    def test_nothing_is_read_without_a_key(self, aws, path):
        for headers in ({}, *(signed(one, "s3") for one in FOREIGN_KEYS)):
            answer = ask(aws.port, "GET", path, headers)
            assert answer.status == 403
            assert b"secret" not in answer.body

    @pytest.mark.parametrize(
        "query",
        [
            "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20260101%2Fus-east-1%2Fs3%2Faws4_request",
            "AWSAccessKeyId=testing&Signature=x&Expires=9999999999",
        ],
    )
    def test_a_url_signed_with_another_key_is_refused(self, aws, query):
        assert ask(aws.port, "GET", f"/mine/k?{query}").status == 403

    @pytest.mark.parametrize(
        "action",
        ["AssumeRoleWithWebIdentity", "AssumeRoleWithSAML", "AssumeRole", "GetSessionToken"],
    )
    def test_no_role_is_assumed_without_a_key(self, aws, action):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = (
            f"Action={action}&Version=2011-06-15&RoleSessionName=x&WebIdentityToken=x"
            "&RoleArn=arn:aws:iam::123456789012:role/r"
        ).encode()
        assert ask(aws.port, "POST", "/", form, body).status == 403

    def test_another_local_aws_has_another_key(self, aws, key, token):
        with LocalAws.in_process() as other:
            exports = other.exports()
            assert exports["AWS_ACCESS_KEY_ID"] != key
            assert exports["LOCAL_SAGEMAKER_TOKEN"] != token
            assert ask(other.port, "GET", "/", signed(key, "s3")).status == 403
            given = {"X-Local-Aws-Token": token}
            assert ask(other.port, "POST", "/_local/runtime/time", given).status == 403

    def test_a_body_that_nobody_wants_is_not_kept(self, aws):
        large = ask(aws.port, "POST", "/", signed("testing", "s3"), b"x" * 3_000_000)
        assert large.status == 403


class TestItsUser:
    def test_the_key_has_awss_form(self, aws, key):
        assert re.fullmatch(r"AKIA[A-Z2-7]{16}", key)
        assert aws.client("sts").get_caller_identity()["Account"] == aws.account

    def test_the_token_opens_the_controls(self, aws, token):
        given = {"X-Local-Aws-Token": token}
        for method in ("GET", "POST"):
            answer = ask(aws.port, method, "/_local/runtime/time", given)
            assert answer.status == 200
            told = json.loads(answer.body)
            assert told == {"time": pytest.approx(aws.runtime_time().timestamp(), abs=1e-3)}

    def test_a_signed_url_needs_nothing_else(self, aws):
        for version in ("s3", "s3v4"):
            exports = aws.exports()
            keys = (exports["AWS_ACCESS_KEY_ID"], exports["AWS_SECRET_ACCESS_KEY"])
            s3 = client_with("s3", aws.url, *keys, signature_version=version)
            where = {"Bucket": "mine", "Key": "k"}
            url = s3.generate_presigned_url("get_object", Params=where)
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert answer.read() == b"secret"
            there = s3.generate_presigned_url("put_object", Params={**where, "Key": version})
            kind = {"Content-Type": "application/octet-stream"}
            request = urllib.request.Request(there, b"put", kind, method="PUT")
            urllib.request.urlopen(request, timeout=60).close()
            assert s3.get_object(Bucket="mine", Key=version)["Body"].read() == b"put"

    def test_a_bucket_in_the_host_name(self, aws, key):
        host = {"Host": f"mine.localhost:{aws.port}"}
        assert ask(aws.port, "GET", "/k", {**signed(key, "s3"), **host}).status == 200
        assert ask(aws.port, "GET", "/k", host).status == 403

    def test_a_key_that_sts_gave_is_known(self, aws, door):
        role = give_role(aws, "cdk", allow("sagemaker:InvokeEndpoint"))
        given = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="cdk")["Credentials"]
        key, token = given["AccessKeyId"], given["SessionToken"]
        assert invoke(door, signed(key, "sagemaker", token)).status == 200
        for wrong in ("", token[:-1], f"{token}x"):
            assert invoke(door, signed(key, "sagemaker", wrong)).status == 403

    def test_a_key_that_iam_gave_is_known_until_it_is_taken_back(self, aws, door):
        iam = aws.client("iam")
        iam.create_user(UserName="u")
        try:
            made = iam.create_access_key(UserName="u")["AccessKey"]["AccessKeyId"]
            assert invoke(door, signed(made, "sagemaker")).status == 403
            policy = json.dumps(document(allow("sagemaker:InvokeEndpoint")))
            iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=policy)
            assert invoke(door, signed(made, "sagemaker")).status == 200
            iam.update_access_key(UserName="u", AccessKeyId=made, Status="Inactive")
            assert invoke(door, signed(made, "sagemaker")).status == 403
            iam.update_access_key(UserName="u", AccessKeyId=made, Status="Active")
            assert invoke(door, signed(made, "sagemaker")).status == 200
            iam.delete_access_key(UserName="u", AccessKeyId=made)
            assert invoke(door, signed(made, "sagemaker")).status == 403
        finally:
            iam.delete_user_policy(UserName="u", PolicyName="p")
            iam.delete_user(UserName="u")

    @pytest.mark.parametrize(
        ("service", "call", "code", "status"),
        [
            ("s3", "list_buckets", "InvalidAccessKeyId", 403),
            ("ec2", "describe_vpcs", "AuthFailure", 401),
            ("cloudformation", "list_stacks", "InvalidClientTokenId", 403),
            ("sts", "get_caller_identity", "InvalidClientTokenId", 403),
            ("route53", "list_hosted_zones", "InvalidClientTokenId", 403),
            ("sagemaker", "list_models", "UnrecognizedClientException", 403),
            ("cloudwatch", "list_metrics", "UnrecognizedClientException", 403),
            ("lambda", "list_functions", "UnrecognizedClientException", 403),
        ],
    )
    def test_a_wrong_key_is_refused_in_the_services_words(self, aws, service, call, code, status):
        client = client_with(service, aws.url, "AKIAIOSFODNN7EXAMPLE")
        with pytest.raises(ClientError) as raised:
            getattr(client, call)()
        response = raised.value.response
        assert response["Error"]["Code"] == code
        assert response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_what_opens_it_is_written_nowhere_but_into_the_environment(tmp_path):
    log = tmp_path / "server.log"
    with LocalAws.start(log_path=log) as aws:
        aws.client("s3").create_bucket(Bucket="mine")
        url = aws.client("s3").generate_presigned_url("list_objects", Params={"Bucket": "mine"})
        urllib.request.urlopen(url, timeout=60).close()
        aws.advance(1)
        exports = aws.exports()
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "LOCAL_SAGEMAKER_TOKEN")
        secrets = [exports[name] for name in names]
        assert all(len(one) >= 20 for one in secrets)
        lines = [
            path.read_bytes().decode("utf-8", "replace")
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if _readable(path)
        ]
        assert any("local_sagemaker" in line for line in lines)
        assert not [one for one in secrets for line in lines if one in line]
        assert "GET /mine?" in log.read_text()
        assert not [one for one in secrets if one in log.read_text()]
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        folders = [
            Path(found) for line in lines for found in re.findall(r"/\S*local-aws-[^\s\0/]*", line)
        ]
        assert folders
        assert not [one for one in folders if one.is_dir() and one.stat().st_mode & 0o077]


def _readable(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return bool(path.read_bytes())
    return False
