"""The canary's function: what it measures of each name, and what it publishes."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
import ssl
import threading
import time

import botocore.exceptions
import pytest
from botocore.awsrequest import AWSRequest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from low_latency_endpoint.facts.canary_metrics import NAMESPACE, PUBLISHED
from low_latency_endpoint.warm_up.warm_up_function import canary, exchanges, sender
from tests.warm_up.conftest import Answer, model_error

ZONAL = "vpce-1-a-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com"
CALLERS = "runtime.sagemaker.us-east-1.amazonaws.com"


@pytest.fixture
def measure(monkeypatch, tmp_path, capsys):
    """Run the handler where names answer with these addresses; gives the printed line."""
    for name, value in {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "LAMBDA_TASK_ROOT": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sender, "_clients", {})
    folder = tmp_path / "payloads"
    folder.mkdir()
    (folder / "0").write_bytes(b'{"inputs": "secret-words"}')
    (folder / "payloads.json").write_text(
        json.dumps([{"File": "0", "ContentType": "application/json", "TargetModel": "a.tar.gz"}])
    )

    def run(addresses, runtime, *, port=None, names=None, waits=()):
        """Addresses by name; a runtime's host and port, to which all of 127.* leads.

        The first connections take so many seconds longer.
        """
        at = runtime.partition(":")[2]
        url = f"http://{runtime}" if port is None else None
        if url:
            monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", url)
        else:
            for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"):
                monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(canary, "HTTPS", int(at) if url else port)

        def resolve(name, number, *_):
            if not addresses.get(name):
                raise socket.gaierror("Name or service not known")
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, number))
                for each in addresses[name]
            ]

        real, left = socket.create_connection, [*waits]

        def connect(address, timeout):
            if left:
                time.sleep(left.pop(0))
            return real(address, timeout) if address[0].startswith("127.") else _lost()

        monkeypatch.setattr(canary.socket, "create_connection", connect)
        order = {
            "endpoint": "Sentiment",
            "zone": "use1-az1",
            "names": names or {"zonal": ZONAL, "callers": CALLERS},
            "namespace": NAMESPACE,
            "metrics": PUBLISHED,
        }
        monkeypatch.setenv("CANARY", json.dumps(order))
        with monkeypatch.context() as only_here:
            only_here.setattr(canary.socket, "getaddrinfo", _numeric(resolve))
            canary.handler({}, None)
        return json.loads(capsys.readouterr().out)

    return run


def _numeric(resolve):
    """Numbers are their own address: what create_connection asks for."""
    real = socket.getaddrinfo
    return lambda name, *more, **rest: (
        real(name, *more, **rest) if name[0].isdigit() else resolve(name, *more)
    )


def _lost():
    raise TimeoutError("timed out")


def metrics_of(line):
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == NAMESPACE
    assert directive["Dimensions"] == [["EndpointName", "Zone"]]
    return {each["Name"]: line[each["Name"]] for each in directive["Metrics"]}


def test_both_names_are_measured_step_by_step(new_runtime, measure):
    runtime = new_runtime(lambda number: Answer(after=0.5))
    line = measure({ZONAL: ["127.0.0.1"], CALLERS: ["127.0.0.1"]}, runtime.host)
    assert (line["EndpointName"], line["Zone"]) == ("Sentiment", "use1-az1")
    for path in line["paths"].values():
        assert path["status"] == 200
        assert 500 <= path["first_byte_ms"] <= path["answer_ms"]
        assert path["connect_ms"] < 500  # the model has no part in it
        assert path["dns_ms"] >= 0
    assert metrics_of(line) == {
        "CanaryConnectTime": line["paths"]["zonal"]["connect_ms"],
        "CanaryAnswerTime": line["paths"]["callers"]["answer_ms"],
        "CanaryUnreachable": 0.0,
        "CanaryRefused": 0.0,
        "CanaryOutOfZone": 0.0,
    }
    (one, two) = runtime.requests
    assert one.path == two.path == "/endpoints/Sentiment/invocations"
    assert one.headers["x-amzn-sagemaker-target-model"] == "a.tar.gz"
    assert one.headers["authorization"].startswith("AWS4-HMAC-SHA256")
    assert one.body == b'{"inputs": "secret-words"}'
    assert "secret-words" not in json.dumps(line)


@pytest.mark.parametrize(
    "answers", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"]], ids=["another zone's", "all zones'"]
)
def test_a_name_that_answers_from_another_zone_is_told(new_runtime, measure, answers):
    line = measure({ZONAL: ["127.0.0.1"], CALLERS: answers}, new_runtime().host)
    assert line["out_of_zone"] is True
    assert metrics_of(line)["CanaryOutOfZone"] == 1.0


def test_the_shortest_of_three_connections_is_the_path(new_runtime, measure):
    """A function waits for its processor now and then; a slow path is slow each time."""
    addresses, runtime = {ZONAL: ["127.0.0.1"]}, new_runtime()
    once = measure(addresses, runtime.host, names={"zonal": ZONAL}, waits=[0.5, 0, 0.5])
    always = measure(addresses, runtime.host, names={"zonal": ZONAL}, waits=[0.5] * 3)
    assert once["paths"]["zonal"]["connect_ms"] < 500 <= always["paths"]["zonal"]["connect_ms"]
    assert len(runtime.requests) == 2


def test_a_lost_path_is_no_answer_and_no_time(new_runtime, measure):
    line = measure({ZONAL: ["10.0.0.4"], CALLERS: ["10.0.0.4"]}, new_runtime().host)
    assert metrics_of(line) == {
        "CanaryUnreachable": 1.0,
        "CanaryRefused": 0.0,
        "CanaryOutOfZone": 0.0,
    }
    assert "timed out" in line["paths"]["zonal"]["error"].lower()


def test_a_name_that_does_not_resolve_is_no_answer(new_runtime, measure):
    line = measure({ZONAL: ["127.0.0.1"]}, new_runtime().host)
    assert metrics_of(line)["CanaryUnreachable"] == 1.0
    assert "CanaryOutOfZone" not in metrics_of(line)


def test_a_models_error_came_through_the_path(new_runtime, measure):
    runtime = new_runtime(lambda number: model_error(500, "out of memory"))
    line = measure({ZONAL: ["127.0.0.1"], CALLERS: ["127.0.0.1"]}, runtime.host)
    published = metrics_of(line)
    assert published.pop("CanaryConnectTime") >= 0
    assert published == {"CanaryUnreachable": 0.0, "CanaryRefused": 0.0, "CanaryOutOfZone": 0.0}
    assert line["paths"]["callers"]["error"] == "the model answered 500: out of memory"
    assert line["paths"]["callers"]["status"] == 424


@pytest.mark.parametrize(
    "names", [{"zonal": ZONAL}, {"callers": CALLERS}], ids=["zonal", "callers"]
)
def test_one_name_alone_has_nothing_to_compare(new_runtime, measure, names):
    addresses = {ZONAL: ["127.0.0.1"], CALLERS: ["127.0.0.1"]}
    line = measure(addresses, new_runtime().host, names=names)
    assert sorted(metrics_of(line)) == [
        "CanaryAnswerTime",
        "CanaryConnectTime",
        "CanaryRefused",
        "CanaryUnreachable",
    ]


def _certificate(folder, common_name, names):
    """A certificate's file with its key; of names in subjectAltName, or of a common name alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = builder.add_extension(alternatives, critical=False)
    chain = folder / "certificate.pem"
    chain.write_bytes(
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain


@pytest.fixture
def tls_port(tmp_path, monkeypatch, request):
    """A server with a certificate, by default of the zonal name; callers may hang up before a request."""
    common_name, names = getattr(request, "param", ("test", [ZONAL, "localhost"]))
    chain = _certificate(tmp_path, common_name, names)
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer(plain: socket.socket) -> None:
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(plain, server_side=True) as connection,
            ):
                request = b""
                while b"secret-words" not in request:  # head and body may come apart
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    request += piece
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    answer(listening.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_the_certificate_is_checked_against_the_name_that_is_called(tls_port, measure):
    line = measure({ZONAL: ["127.0.0.1"]}, "127.0.0.1", port=tls_port, names={"zonal": ZONAL})
    path = line["paths"]["zonal"]
    assert path.get("error") is None
    assert path["status"] == 200
    assert path["tls_ms"] > 0


def test_a_certificate_without_the_name_is_no_answer(tls_port, measure):
    names = {"callers": CALLERS}
    line = measure({CALLERS: ["127.0.0.1"]}, "127.0.0.1", port=tls_port, names=names)
    assert "Hostname mismatch" in line["paths"]["callers"]["error"]
    assert metrics_of(line)["CanaryUnreachable"] == 1.0


@pytest.mark.parametrize("tls_port", [(CALLERS, [])], indirect=True, ids=["common name"])
def test_a_common_name_is_no_name(tls_port, measure):
    names = {"callers": CALLERS}
    line = measure({CALLERS: ["127.0.0.1"]}, "127.0.0.1", port=tls_port, names=names)
    assert "certificate verify failed" in line["paths"]["callers"]["error"].lower()


def _sent_by_the_sender(port):
    request = AWSRequest("POST", f"https://localhost:{port}/", {}, b"secret-words").prepare()
    return exchanges.SenderConnections().send(request)


def test_the_sender_checks_certificates_too(tls_port):
    assert _sent_by_the_sender(tls_port).status_code == 200


@pytest.mark.parametrize(
    "tls_port", [("localhost", []), ("test", [ZONAL])], indirect=True, ids=["common name", "other"]
)
def test_the_sender_takes_no_other_name(tls_port):
    with pytest.raises(botocore.exceptions.SSLError, match="verify failed"):
        _sent_by_the_sender(tls_port)
