"""The sample payload: what is in S3 already, or a file or the warm-up's payload packed for it."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from ...account.sessions import ClientFactory
from ...errors import rule
from ...facts.limits import API
from ...settings import EndpointSettings

SAMPLE_PAYLOAD = rule(
    "LLR107",
    "a recommendation job needs a sample payload, a .tar.gz in S3",
    fix="Pass --payload s3://bucket/payload.tar.gz. Or add --upload-to s3://bucket/prefix/ to "
    "a local file, or to nothing for the settings' warm-up payload.",
    source=API + "RecommendationJobPayloadConfig.html",
)

_S3 = re.compile(r"s3://([^/]+)/?(.*)")


@dataclass(frozen=True, slots=True)
class SamplePayload:
    """Where the payload is or will be; ``archive`` is what has to be uploaded there first."""

    uri: str
    content_type: str
    archive: bytes | None = None


def sample_payload(
    given: str | None, upload_to: str | None, content_type: str | None, endpoint: EndpointSettings
) -> SamplePayload:
    """Decide on the payload (S3, a file, or the warm-up's), without touching S3: LLR107."""
    stated = endpoint.warm_up.payloads[0] if endpoint.warm_up else None
    content_type = content_type or (
        stated.headers["ContentType"].partition(";")[0] if stated else "application/json"
    )
    if given is not None and given.startswith("s3://"):
        if not (_S3.fullmatch(given) and given.endswith(".tar.gz")):
            raise SAMPLE_PAYLOAD.error(
                got=given, allowed="s3://bucket/name.tar.gz", where="--payload"
            )
        return SamplePayload(given, content_type)
    if given is None and stated is None:
        raise SAMPLE_PAYLOAD.error(
            got="no payload", allowed="a payload like the callers'", where="--payload"
        )
    file = given or (stated.file if stated else None)
    body = _read(Path(file)) if file is not None else stated.body if stated else b""
    if upload_to is None or not _S3.fullmatch(upload_to):
        raise SAMPLE_PAYLOAD.error(
            got=upload_to or f"{given or 'the payload of the warm-up'}, which is not in S3",
            allowed="--upload-to s3://bucket/prefix/",
            where="--upload-to",
        )
    name = Path(given).name if given else "payload"
    archive = body if name.endswith((".tar.gz", ".tgz")) else packed(body, name)
    # Named by what it holds: the same payload again is the same object, another never replaces it.
    key = hashlib.sha256(archive).hexdigest()[:16]
    return SamplePayload(
        f"{upload_to.rstrip('/')}/sample-payload-{key}.tar.gz", content_type, archive
    )


def packed(body: bytes, name: str) -> bytes:
    """One file as a ``.tar.gz``, the same bytes for the same file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(body)
        tar.addfile(entry, io.BytesIO(body))
    return gzip.compress(archive.getvalue(), mtime=0)


def upload(client: ClientFactory, payload: SamplePayload) -> None:
    """Put the archive into S3; nothing where the payload is there already."""
    if payload.archive is None:
        return
    match = _S3.fullmatch(payload.uri)
    assert match is not None  # sample_payload made it
    client("s3").put_object(
        Bucket=match[1], Key=match[2], Body=payload.archive, ContentType="application/gzip"
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise SAMPLE_PAYLOAD.error(
            got=f"{path}: {getattr(error, 'strerror', None) or error}",
            allowed="a file, or s3://bucket/name.tar.gz",
            where="--payload",
        ) from error
