"""A small, fast SageMaker Runtime on loopback over TLS: what client benchmarks and tests call.

Speaks enough HTTP/1.1 for keep-alive clients, checks no signature, and does what the endpoint's
name says: ``plain``; ``slow-20`` (20 ms); ``sometimes-slow-200`` (every tenth request);
``status-503``; ``once-503`` (the first request only); ``close`` (answers and closes the
connection); ``drop`` (closes it without an answer); ``stream-3`` (three parts);
``slow-stream-3`` (the first 20 ms before the others); ``broken-stream-2`` (two parts, then an error event); ``half-stream-1`` (a part, then nothing).

``python loopback_runtime.py FOLDER`` writes ``FOLDER/server.json`` once it listens, and serves
until its standard input closes.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import datetime
import ipaddress
import json
import ssl
import struct
import sys
import threading
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REPLY = b'{"label": "POSITIVE", "score": 0.9987, "padding": "' + b"x" * 48 + b'"}'
ERRORS = {
    400: ("ValidationError", {}),
    424: (
        "ModelError",
        {
            "OriginalStatusCode": 500,
            "OriginalMessage": "out of memory",
            "LogStreamArn": "arn:aws:logs:us-east-1:111122223333:log-group:x",
        },
    ),
    429: ("ModelNotReadyException", {}),
    500: ("InternalFailure", {}),
    503: ("ServiceUnavailable", {}),
}


class Runtime:
    """What the server did: connections made, requests by endpoint name, headers last seen."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: Counter[str] = Counter()
        self.last_headers: dict[str, str] = {}
        self.transports: set[asyncio.Transport] = set()


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.buffer = b""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.runtime.connections += 1
        self.runtime.transports.add(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.runtime.transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            lower = head.lower()
            at = lower.find(b"\r\ncontent-length:")
            length = int(lower[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            self.request(head)

    def request(self, head: bytes) -> None:
        """Answer one request as its endpoint's name says."""
        target = head.split(b" ", 2)[1].decode()
        name = target.split("/")[2] if target.count("/") > 2 else target
        runtime = self.runtime
        runtime.requests[name] += 1
        if name == "plain":
            self.transport.write(_response(200, REPLY))
            return
        runtime.last_headers = dict(
            line.decode("latin-1").split(": ", 1) for line in head.split(b"\r\n")[1:]
        )
        kind, _, number = name.rpartition("-")
        if name == "close":
            self.transport.write(_response(200, REPLY, b"Connection: close\r\n"))
            self.transport.close()
        elif name == "drop":
            self.transport.abort()
        elif kind == "status" or (kind == "once" and runtime.requests[name] == 1):
            self.transport.write(_error(int(number)))
        elif kind == "slow" or (kind == "sometimes-slow" and runtime.requests[name] % 10 == 0):
            loop = asyncio.get_running_loop()
            loop.call_later(int(number) / 1000, self._late)
        elif kind in ("stream", "slow-stream", "broken-stream", "half-stream"):
            self._stream(int(number), kind)
        else:
            self.transport.write(_response(200, REPLY))

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_response(200, REPLY))

    def _stream(self, parts: int, kind: str) -> None:
        events = [
            event(
                {
                    ":message-type": "event",
                    ":event-type": "PayloadPart",
                    ":content-type": "application/octet-stream",
                },
                f"part {number};".encode(),
            )
            for number in range(parts)
        ]
        if kind == "broken-stream":
            events.append(
                event(
                    {
                        ":message-type": "exception",
                        ":exception-type": "ModelStreamError",
                        ":content-type": "application/json",
                    },
                    b'{"Message": "the model stopped", "ErrorCode": "StreamBroken"}',
                )
            )
        head = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/vnd.amazon.eventstream\r\n"
            b"X-Amzn-SageMaker-Content-Type: text/plain\r\n\r\n"
        )
        first, *others = (b"%x\r\n%s\r\n" % (len(one), one) for one in events)
        rest = b"".join(others) + (b"0\r\n\r\n" if kind != "half-stream" else b"")
        if kind == "slow-stream":
            self.transport.write(head + first)
            asyncio.get_running_loop().call_later(0.02, self.transport.write, rest)
        else:
            self.transport.write(head + first + rest)


def event(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of ``application/vnd.amazon.eventstream``."""
    packed = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + b"\x07"
        + struct.pack("!H", len(value))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + packed + payload
    return message + struct.pack("!I", binascii.crc32(message))


def _response(status: int, body: bytes, extra: bytes = b"") -> bytes:
    return (
        b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        b"x-amzn-RequestId: 5c4b7b1e-1111-4222-8333-444455556666\r\n"
        b"x-Amzn-Invoked-Production-Variant: primary\r\n%s\r\n" % (status, len(body), extra)
    ) + body


def _error(status: int) -> bytes:
    code, more = ERRORS[status]
    body = json.dumps({"Message": f"asked for {status}", **more}).encode()
    return _response(status, body, b"x-amzn-ErrorType: %s\r\n" % code.encode())


def write_certificates(
    folder: Path, names: tuple[str, ...] = ("localhost", "127.0.0.1"), common_name: str = ""
) -> None:
    """``ca.pem`` to trust, ``server.pem`` (with its key) to serve."""
    ca_key, ca = _certificate("test CA", None)
    key, certificate = _certificate(common_name or names[0], (ca_key, ca), names)
    (folder / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )


def _certificate(
    name: str, issuer: tuple[Any, x509.Certificate] | None, names: tuple[str, ...] = ()
) -> tuple[Any, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    signer = issuer[0] if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[1].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=issuer is None,
                crl_sign=issuer is None,
                **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False
        )
    return key, builder.sign(signer, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


async def listen(
    runtime: Runtime, folder: Path | None, port: int = 0
) -> tuple[asyncio.Server, str]:
    """Serve on a free port; TLS with the folder's certificate, plain without a folder."""
    context = None
    if folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(runtime), "127.0.0.1", port, ssl=context)
    port = server.sockets[0].getsockname()[1]
    scheme, name = ("https", "localhost") if folder else ("http", "127.0.0.1")
    return server, f"{scheme}://{name}:{port}"


class LoopbackRuntime:
    """The server in a thread of this process, for tests; stops and starts on the same port."""

    def __init__(self, folder: Path | None = None) -> None:
        self.runtime = Runtime()
        self.url = ""
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> LoopbackRuntime:
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def start(self) -> None:
        """Listen, again on the port of the first time."""
        port = int(self.url.rsplit(":", 1)[1]) if self.url else 0
        future = asyncio.run_coroutine_threadsafe(
            listen(self.runtime, self._folder, port=port), self._loop
        )
        self._server, self.url = future.result(10)

    def stop(self) -> None:
        """Refuse new connections and cut the ones there are."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for transport in list(self.runtime.transports):
            transport.abort()
        await asyncio.sleep(0)
        self._server = None


async def _serve(folder: Path) -> None:
    runtime = Runtime()
    server, url = await listen(runtime, folder)
    partial = folder / "server.tmp"
    partial.write_text(json.dumps({"url": url}), encoding="utf-8")
    partial.replace(folder / "server.json")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    server.close()


def run_quickly(work: Coroutine[Any, Any, None]) -> None:
    """Run in uvloop where it is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(work)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)


def main() -> None:
    """Serve until the parent closes the pipe."""
    folder = Path(sys.argv[1])
    write_certificates(folder)
    run_quickly(_serve(folder))


if __name__ == "__main__":
    main()
