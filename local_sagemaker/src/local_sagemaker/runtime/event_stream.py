"""AWS's event-stream encoding, as far as a response stream needs it.

Source: "Amazon Transcribe streaming: event stream encoding"; botocore's `eventstream` reads it.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Mapping

_STRING = 7


def _message(headers: Mapping[str, str], payload: bytes) -> bytes:
    encoded = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", _STRING, len(value))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", binascii.crc32(message))


def payload_part(data: bytes) -> bytes:
    """Write one part of the model's answer."""
    return _message(
        {
            ":message-type": "event",
            ":event-type": "PayloadPart",
            ":content-type": "application/octet-stream",
        },
        data,
    )


def exception_event(kind: str, document: bytes) -> bytes:
    """Write the exception that ends a stream, such as ModelStreamError."""
    return _message(
        {
            ":message-type": "exception",
            ":exception-type": kind,
            ":content-type": "application/json",
        },
        document,
    )
