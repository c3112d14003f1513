"""AWS's event-stream encoding, as far as a response stream needs it.

Source: "Amazon Transcribe streaming: event stream encoding"; botocore's `eventstream` reads it.
"""

from __future__ import annotations

import binascii
import struct

_STRING = 7


def _message(kind: str, name: str, content_type: str, payload: bytes) -> bytes:
    headers = {":message-type": kind, f":{kind}-type": name, ":content-type": content_type}
    encoded = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", _STRING, len(value))
        + value.encode()
        for key, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", binascii.crc32(message))


def payload_part(data: bytes) -> bytes:
    """Write one part of the model's answer."""
    return _message("event", "PayloadPart", "application/octet-stream", data)


def exception_event(name: str, document: bytes) -> bytes:
    """Write the exception that ends a stream, such as ModelStreamError."""
    return _message("exception", name, "application/json", document)
