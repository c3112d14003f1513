"""What is malformed is refused with 400 and a reason: by the controls, and by our own services."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_requests import Answer, ask, refusal, signed
from typer.testing import CliRunner

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.application import OwnService
from local_sagemaker.bodies import MOST_EXPANDED, expand
from local_sagemaker.cli import app
from local_sagemaker.cloudformation.api import CLOUDFORMATION
from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.permissions.requests import is_known
from local_sagemaker.protocols import ServiceError, service_model
from local_sagemaker.runtime.clock import LONGEST_JUMP
from local_sagemaker.sagemaker_api import SAGEMAKER
from local_sagemaker.scaling_api import APPLICATION_AUTO_SCALING


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS whose clock stands still; it may be left in any state."""
    servers = {"*": SimulatedModelServer()}
    options = RuntimeOptions(clock_speed=0.0)
    with LocalAws.in_process(model_servers=servers, runtime=options) as running:
        yield running
        running.reset()


def told(aws: LocalAws, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """POST to a control."""
    token = aws.exports()["LOCAL_SAGEMAKER_TOKEN"]
    answer = ask(aws.port, "POST", path, {"X-Local-Aws-Token": token}, body)
    return answer.status, json.loads(answer.body)


class TestControls:
    @pytest.mark.parametrize(
        "seconds",
        ["1e300", "inf", "-inf", "nan", "-1", "-1e-9", "1e400", "86401", "soon", "", "1,0", "0x1"],
    )
    def test_the_clock_jumps_no_further_than_told(self, aws, seconds):
        before = aws.runtime_time()
        status, document = told(aws, f"/_local/runtime/advance?seconds={seconds}")
        assert status == 400
        assert document["error"]
        assert aws.runtime_time() == before
        if seconds in ("1e300", "nan", "-1"):
            assert "0 to 86400 s" in document["error"]

    def test_the_clock_goes_exactly_as_far_as_it_is_told(self, aws):
        before = aws.runtime_time()
        for seconds in (0.0, 0.25, 10.0, 25.5):
            aws.advance(seconds)
        # Floating-point seconds since 1970 are exact to less than a microsecond.
        assert (aws.runtime_time() - before).total_seconds() == pytest.approx(35.75, abs=1e-3)

    @pytest.mark.parametrize("factor", ["inf", "nan", "-1", "-inf", "1e300", "10001", "fast", ""])
    def test_the_clock_runs_no_faster_than_told(self, aws, factor):
        status, document = told(aws, f"/_local/runtime/speed?factor={factor}")
        assert (status, bool(document["error"])) == (400, True)

    @pytest.mark.parametrize(
        "query",
        [
            "at=1e30",
            "at=nan",
            "at=soon",
            "at=0001-01-01T00:00:00+14:00",
            "at=9999-12-31T23:59:59-14:00",
            "since=0&step=0",
            "since=0&step=nan",
            "since=0&step=1e300",
            "since=0&step=1",
            "since=0",
            "step=0",
        ],
    )
    def test_alarms_are_evaluated_at_moments_there_are(self, aws, query):
        status, document = told(aws, f"/_local/cloudwatch/evaluate?{query}")
        assert (status, bool(document["error"])) == (400, True)

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"no JSON",
            b"[]",
            b"null",
            b'{"a": null}',
            b'{"a": {}}',
            b'{"a": {"kind": []}}',
            b'{"a": {"kind": "other"}}',
            b"\xff{}",
            b'{"a": {"kind": "command", "command": 5}}',
            b'{"a": {"kind": "url", "url": "http://evil.example"}}',
            b'{"a": {"kind": "simulated", "cold_start": 1e999}}',
            b'{"a": {"kind": "simulated", "service_time": {}}}',
            b'{"a": {"kind": "simulated", "slow_instances": {"x": 1}}}',
            b"[" * 100_000,
            b'{"a": {"kind": "simulated", "cold_requests": ' + b"9" * 5000 + b"}}",
        ],
    )
    def test_model_servers_are_what_they_can_be(self, aws, body):
        status, document = told(aws, "/_local/runtime/model-servers", body)
        assert (status, bool(document["error"])) == (400, True)

    def test_a_server_that_is_one_is_taken(self, aws):
        document = {
            "a": {
                "kind": "simulated",
                "concurrency": 2,
                "slow_instances": {"0": 2},
                "service_time": {"kind": "lognormal", "values": [0.02, 0.08]},
            },
            "*": {"kind": "simulated"},
        }
        body = json.dumps(document).encode()
        nobody = {"changed": [], "kept": []}
        assert told(aws, "/_local/runtime/model-servers", body) == (200, nobody)

    @settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_nothing_that_can_be_sent_to_a_control_is_an_internal_failure(self, aws, data):
        number = st.one_of(
            st.floats(max_value=30),
            st.integers(max_value=30),
            st.floats(min_value=LONGEST_JUMP + 1),
            st.sampled_from([-0.0, math.inf, 1e18]),
        )
        value = st.one_of(number.map(str), st.text(max_size=8))
        names = ["seconds", "factor", "at", "since", "step", "region", "on", "zone", "x"]
        query = data.draw(st.lists(st.tuples(st.sampled_from(names), value), max_size=4))
        raw = urlencode([(name, each.encode("utf-8", "surrogatepass")) for name, each in query])
        controls = ["advance", "speed", "url", "flush", "time", "model-servers", ""]
        others = ["cloudwatch/evaluate", "cloudwatch/actions", "cloudwatch", "else"]
        paths = [*(f"runtime/{control}" for control in controls), *others]
        path = data.draw(st.sampled_from(paths))
        document = st.recursive(
            st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(
                    st.sampled_from(["kind", "a", "command", "service_time", "values"]),
                    st.one_of(inner, st.sampled_from(["simulated", "url"])),
                    max_size=4,
                ),
            ),
            max_leaves=8,
        )
        body = data.draw(
            st.one_of(st.binary(max_size=20), document.map(lambda each: json.dumps(each).encode()))
        )
        status, answer = told(aws, f"/_local/{path}?{raw}", body)
        assert status in (200, 400, 404)
        assert status == 200 or answer["error"]
        aws.set_clock_speed(0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "-1"], "--port"),
        (["--port", "99999"], "--port"),
        (["--port", "x"], "--port"),
        (["--clock-speed", "inf"], "--clock-speed"),
        (["--clock-speed", "nan"], "--clock-speed"),
        (["--clock-speed", "-1"], "--clock-speed"),
        (["--clock-speed", "10001"], "--clock-speed"),
        (["--behave", "clock_start=nan"], "--behave"),
        (["--behave", "interfaces_stay=inf"], "--behave"),
        (["--image", "team/ranker"], "team/ranker"),
        (["add-model-server"], "Missing argument"),
        (["add-model-server", "x=simulatd"], "simulatd"),
        (["add-model-server", "x=simulated"], "LOCAL_SAGEMAKER"),
        (["add-image", "nothing"], "nothing"),
        (["--model-server", "simulated"], "simulated"),
        (["--model-server", "x=[1]"], "--model-server"),
        (["--model-server", "x=5"], "--model-server"),
        (["--model-server", 'x={"kind": "command", "command": 5}'], "command: Input should be"),
        (["--model-server", 'x={"kind": "simulated", "memory": []}'], "memory: Input should be"),
    ],
)
def test_the_command_refuses_what_it_cannot_serve(arguments, named, tmp_path):
    if "{" in arguments[-1] or "[" in arguments[-1]:
        image, _, document = arguments[1].partition("=")
        file = tmp_path / "server.json"
        file.write_text(document)
        arguments = ["--model-server", f"{image}={file}"]
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "500"})
    assert (done.exit_code, done.stdout) == (2, "")
    known = ("# Starting", "Usage", "Try")
    (line,) = [each for each in done.stderr.splitlines() if each and not each.startswith(known)]
    assert named in line


def called(aws: LocalAws, service: OwnService, operation: str, body: bytes) -> Answer:
    """Call an operation of ours with any body."""
    model = service_model(service.name)
    key = aws.exports()["AWS_ACCESS_KEY_ID"]
    headers = signed(key, model.metadata.get("signingName", service.name))
    if model.metadata["protocol"] == "json":
        headers |= {
            "X-Amz-Target": f"{model.metadata['targetPrefix']}.{operation}",
            "Content-Type": "application/x-amz-json-1.1",
        }
    else:
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
    return ask(aws.port, "POST", "/", headers, body)


class TestOwnServices:
    @pytest.mark.parametrize(
        "body",
        [
            b"no JSON",
            b"[]",
            b"null",
            b"\xff",
            b"[" * 100_000,
            b'{"EndpointName": 5}',
            b'{"EndpointName": {"a": 1}}',
            b'{"EndpointName": NaN}',
        ],
    )
    def test_what_is_no_request_cannot_be_read(self, aws, body):
        answer = called(aws, SAGEMAKER, "DescribeEndpoint", body)
        assert answer.status == 400
        assert json.loads(answer.body)["__type"] == "SerializationException"

    @pytest.mark.parametrize(
        "body",
        [
            b"\xff",
            b"Action=CreateStack&StackName=%ff&TimeoutInMinutes=soon",
            b"",
            b"Action=",
            b"Action=CreateStack&TimeoutInMinutes=1e9&StackName=a",
            b"=&&&=",
            b"Action=Nothing",
        ],
    )
    def test_what_is_no_query_is_refused(self, aws, body):
        assert called(aws, CLOUDFORMATION, "CreateStack", body).status == 400

    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_no_request_is_an_internal_failure(self, aws, data):
        service = data.draw(st.sampled_from([SAGEMAKER, APPLICATION_AUTO_SCALING]))
        # Tags of what is not hosting are moto's to answer.
        ours = sorted(name for name in service.operations if not name.endswith("Tags"))
        operation = data.draw(st.sampled_from(ours))
        shape = service_model(service.name).operation_model(operation).input_shape
        request = data.draw(requests(shape, depth=4))
        answer = called(aws, service, operation, json.dumps(request).encode())
        assert answer.status in (200, 400), (operation, request, answer.body)


SERVICES = {  # by signing name
    "monitoring": "cloudwatch",
    "kms": "kms",
    "logs": "logs",
    "ec2": "ec2",
    "ecs": "ecs",
    "ecr": "ecr",
    "events": "events",
    "iam": "iam",
    "lambda": "lambda",
    "ram": "ram",
    "sns": "sns",
    "sqs": "sqs",
    "ssm": "ssm",
    "sts": "sts",
    "secretsmanager": "secretsmanager",
    "sagemaker": "sagemaker",
    "cloudformation": "cloudformation",
    "application-autoscaling": "application-autoscaling",
    "servicequotas": "service-quotas",
}
BROKEN = {
    "no gzip": (b"notgzip", "gzip"),
    "half a gzip": (gzip.compress(b"a" * 100)[:-9], "gzip"),
    "a gzip with another checksum": (gzip.compress(b"a" * 100)[:-8] + bytes(8), "GZIP"),
    "no UTF-8 in a gzip": (gzip.compress(b"\xff\xfe"), "gzip"),
    "no UTF-8": (b"\xff\xfe", None),
    "nothing in a gzip": (gzip.compress(b""), "gzip"),
    "nothing": (b"", None),
    "half a document": (b'{"a":', None),
}


class TestBodies:
    @pytest.mark.parametrize("words", BROKEN)
    @pytest.mark.parametrize("signed_for", SERVICES)
    def test_what_no_service_can_read_is_no_internal_failure(self, aws, signed_for, words):
        body, encoding = BROKEN[words]
        model = service_model(SERVICES[signed_for])
        known = [name for name in model.operation_names if is_known(model.service_name, name)]
        for operation in known:
            http = model.operation_model(operation).http
            headers = signed(aws.exports()["AWS_ACCESS_KEY_ID"], signed_for)
            headers |= {"Content-Encoding": encoding} if encoding else {}
            if prefix := model.metadata.get("targetPrefix"):
                headers |= {"X-Amz-Target": f"{prefix}.{operation}"}
                headers |= {"Content-Type": "application/x-amz-json-1.1"}
            answer = ask(aws.port, http["method"], http["requestUri"], headers, body)
            assert answer.status < 500, (operation, answer.body)
            if "gzip" in words and words.startswith(("no gzip", "half", "a gzip")):
                assert (answer.status, b"no whole gzip" in answer.body) == (400, True)

    @pytest.mark.parametrize("times", [1, 2, 8])
    def test_a_body_is_expanded_to_a_limit(self, aws, times):
        bomb = gzip.compress(bytes(MOST_EXPANDED + 1)) * times
        environ = {"HTTP_CONTENT_ENCODING": "gzip", "wsgi.input": BytesIO(bomb)}
        tracemalloc.start()
        try:
            with pytest.raises(ServiceError) as refused:
                expand(environ, "monitoring")
            assert tracemalloc.get_traced_memory()[1] < 3 * MOST_EXPANDED
        finally:
            tracemalloc.stop()
        assert refused.value.status == 413
        headers = signed(aws.exports()["AWS_ACCESS_KEY_ID"], "monitoring")
        answer = ask(aws.port, "POST", "/", headers | {"Content-Encoding": "gzip"}, bomb)
        assert answer.status == 413

    def test_what_is_compressed_is_read(self, aws):
        body = gzip.compress(b"Action=ListMetrics&Version=2010-08-01")
        headers = signed(aws.exports()["AWS_ACCESS_KEY_ID"], "monitoring")
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": "gzip"}
        answer = ask(aws.port, "POST", "/", headers, body)
        assert (answer.status, b"<ListMetricsResult>" in answer.body) == (200, True)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"": 1}),
)


def requests(shape: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values as a shape wants them, now and then another."""
    kind = shape.type_name
    if depth == 0:
        return anything
    if kind == "structure":
        fitting = st.fixed_dictionaries(
            {name: requests(shape.members[name], depth - 1) for name in shape.required_members},
            optional={
                name: requests(member, depth - 1)
                for name, member in shape.members.items()
                if name not in shape.required_members
            },
        )
    elif kind == "list":
        fitting = st.lists(requests(shape.member, depth - 1), min_size=1, max_size=2)
    elif kind == "map":
        fitting = st.dictionaries(st.text(max_size=4), requests(shape.value, depth - 1), max_size=2)
    elif kind == "string":
        fitting = st.sampled_from(
            list(getattr(shape, "enum", ()))
            or ["a", "x" * 70, "endpoint/e/variant/v", "arn:aws:iam::123456789012:role/r", "", "é"]
        )
    elif kind == "boolean":
        fitting = st.booleans()
    elif kind == "timestamp":
        fitting = st.integers(0, 2_000_000_000)
    else:
        fitting = st.integers(-1, 100)
    return st.integers(0, 15).flatmap(lambda draw: anything if draw == 0 else fitting)


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("cloudcontrol", "list_resources", {"TypeName": "AWS::SageMaker::Endpoint"}),
        ("accessanalyzer", "list_analyzers", {}),
        ("cloudsearch", "describe_domains", {}),
        ("eks", "describe_addon_versions", {}),
        ("athena", "list_application_dpu_sizes", {}),
        ("route53", "get_checker_ip_ranges", {}),
        ("lex-models", "get_bots", {}),
        ("cloudformation", "detect_stack_drift", {"StackName": "a"}),
        ("cloudformation", "create_stack_refactor", {"StackDefinitions": []}),
    ],
)
def test_what_is_not_emulated_is_refused_by_name(aws, capfd, service, operation, arguments):
    code, words = refusal(getattr(aws.client(service), operation), **arguments)
    assert code == "InvalidAction"
    assert "is not emulated by the local AWS" in words
    assert capfd.readouterr().out == ""  # a shell evaluates what `local-sagemaker` prints
