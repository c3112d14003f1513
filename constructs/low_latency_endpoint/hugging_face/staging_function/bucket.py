"""The bucket that models are staged into: whole files under a commit's prefix, and who uses them.

Files lie under ``hub/<model>/<commit>/<list of files>/``. SageMaker serves everything that is there, so what is
known about them lies elsewhere: an object under ``users/``, likewise, for each stack.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Semaphore
from typing import Any, NamedTuple

from botocore.exceptions import ClientError, HTTPClientError

from .addresses import StagingFailed

PART = 16 * 1024 * 1024
_PARTS = 10_000
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html"""
_THREADS = 4
_TRIES = 3
_NEW_RIGHTS = 60.0  # seconds until a policy holds everywhere
_SHOWN = 5
_READ_AT_ONCE = 64 * 1024 * 1024
_ABSENT = ("403", "404", "AccessDenied", "NoSuchKey", "NotFound")
"""S3 says 403 of a key that is not there to who may list some prefixes only:
https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html"""
_LOST = ("ConditionalRequestConflict", "NoSuchKey", "NoSuchUpload", "PreconditionFailed")
"""Somebody else was first, or ended our upload:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html"""


class File(NamedTuple):
    """A file that is pinned."""

    path: str
    size: int
    sha256: str


class Commit(NamedTuple):
    """A model's commit, and where its files and its users lie.

    ``files`` tells lists of files of one commit apart: whoever pins more or fewer of them gets a
    place of their own, and instances of the former list find it as it was.
    """

    model: str
    commit: str
    files: str

    @property
    def prefix(self) -> str:
        return f"hub/{self.model}/{self.commit}/{self.files}/"

    @property
    def users(self) -> str:
        return f"users/{self.model}/{self.commit}/{self.files}/"


class Bucket:
    """One bucket, by a boto3 client.

    ``reads_back`` says whether bytes are read of which S3 has no hash; ``go_on`` is called before
    each piece of them, and may raise.
    """

    def __init__(
        self,
        s3: Any,
        name: str,
        *,
        part: int = PART,
        sleep: Callable[[float], None] = time.sleep,
        reads_back: bool = True,
        go_on: Callable[[], object] = lambda: None,
    ) -> None:
        self._s3, self._name, self._part, self._sleep = s3, name, part, sleep
        self._reads_back, self._go_on = reads_back, go_on

    # ---------------------------------------------------------------------------------- files

    def await_rights(self, commit: Commit) -> None:
        """Return when the role may list: its policy may be seconds old."""
        tries = int(_NEW_RIGHTS / 2)
        for attempt in range(tries + 1):
            try:
                next(self._keys(commit.prefix), None)
                return
            except ClientError as error:
                if _code(error) != "AccessDenied" or attempt == tries:
                    raise
            self._sleep(2)

    def has(self, commit: Commit, file: File) -> bool:
        """Whether the file is there, as pinned."""
        try:
            found = self._s3.head_object(
                Bucket=self._name, Key=commit.prefix + file.path, ChecksumMode="ENABLED"
            )
        except ClientError as error:
            if _code(error) in _ABSENT:
                return False
            raise
        said = (found["ContentLength"], found["Metadata"].get("sha256"))
        if said != (file.size, file.sha256) or not self._is_pinned(commit, file, found):
            raise StagingFailed(
                "LLE357", f"s3://{self._name}/{commit.prefix}{file.path} is not the pinned file"
            )
        return True

    def _is_pinned(self, commit: Commit, file: File, found: Mapping[str, Any]) -> bool:
        """Whether the bytes are the pinned ones; the metadata is what its writer says.

        S3 checks and keeps the hash of an object that came at once. Of one that came in parts it
        has no SHA-256 but that of the parts' (``...-3``), which the lock file does not know, and no
        CRC holds against who forges: its bytes are read.
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
        """
        known = found.get("ChecksumSHA256", "")
        if known and "-" not in known:
            return base64.b64decode(known).hex() == file.sha256
        return not self._reads_back or self._hash_of(commit, file, found["ETag"]) == file.sha256

    def _hash_of(self, commit: Commit, file: File, etag: str) -> str:
        digest = hashlib.sha256()
        for start in range(0, file.size, _READ_AT_ONCE):
            self._go_on()
            digest.update(self._piece(commit.prefix + file.path, etag, start))
        return digest.hexdigest()

    def _piece(self, key: str, etag: str, start: int) -> bytes:
        """Some bytes of an object, asked for again where the connection breaks."""
        wanted = f"bytes={start}-{start + _READ_AT_ONCE - 1}"
        for _ in range(_TRIES - 1):
            with suppress(HTTPClientError):
                return self._read(key, etag, wanted)
        return self._read(key, etag, wanted)

    def _read(self, key: str, etag: str, wanted: str) -> bytes:
        answer = self._s3.get_object(Bucket=self._name, Key=key, IfMatch=etag, Range=wanted)
        return bytes(answer["Body"].read())

    def put(self, commit: Commit, file: File, read: Callable[[], Iterable[bytes]]) -> bool:
        """Write a file unless it is there; whether it was written here."""
        for _ in range(_TRIES):
            if self.has(commit, file):
                return False
            try:
                self._write(commit, file, _verified(file, read()))
            except ClientError as error:
                # 412, 409 or 404: another deploy was first, and removed what it had outrun.
                if _code(error) not in _LOST:
                    raise
                continue
            self._end_uploads(commit.prefix + file.path, exactly=True)
            return True
        raise StagingFailed("LLE358", f"{file.path}: others write and remove it all the time")

    def _write(self, commit: Commit, file: File, pieces: Iterable[bytes]) -> None:
        target = {"Bucket": self._name, "Key": commit.prefix + file.path}
        metadata = {"sha256": file.sha256, "commit": commit.commit}
        if file.size <= self._part:
            body = b"".join(pieces)
            self._s3.put_object(
                **target,
                Body=body,
                Metadata=metadata,
                IfNoneMatch="*",
                ChecksumSHA256=base64.b64encode(bytes.fromhex(file.sha256)).decode(),
            )
            return
        upload = self._s3.create_multipart_upload(**target, Metadata=metadata)["UploadId"]
        target["UploadId"] = upload
        try:
            parts = {"Parts": self._parts(target, pieces, max(self._part, -(-file.size // _PARTS)))}
            self._s3.complete_multipart_upload(**target, MultipartUpload=parts, IfNoneMatch="*")
        except BaseException:
            with suppress(ClientError):
                self._s3.abort_multipart_upload(**target)
            raise

    def _parts(
        self, target: dict[str, Any], pieces: Iterable[bytes], size: int
    ) -> list[dict[str, Any]]:
        room = Semaphore(_THREADS + 1)
        failed = Event()
        sent: list[Future[dict[str, Any]]] = []

        def send(number: int, body: bytes) -> dict[str, Any]:
            try:
                done = self._s3.upload_part(**target, PartNumber=number, Body=body)
                return {"PartNumber": number, "ETag": done["ETag"]}
            except BaseException:
                failed.set()
                raise
            finally:
                room.release()

        with ThreadPoolExecutor(_THREADS) as pool:
            for number, body in enumerate(_in_parts(pieces, size), 1):
                room.acquire()
                if failed.is_set():
                    break  # no use to read on: the results below say why
                sent.append(pool.submit(send, number, body))
        return [each.result() for each in sent]

    # ----------------------------------------------------------------------------- whole commits

    def found(self, commit: Commit, paths: Iterable[str]) -> list[str]:
        """Which of the commit's files are there."""
        start = len(commit.prefix)
        there = [key[start:] for key in self._keys(commit.prefix)]
        if foreign := sorted(set(there).difference(paths)):
            shown = ", ".join(foreign[:_SHOWN]) + (", ..." if len(foreign) > _SHOWN else "")
            raise StagingFailed(
                "LLE357",
                f"under s3://{self._name}/{commit.prefix} the lock file does not have: {shown}",
            )
        return there

    def confirm(self, commit: Commit, paths: Iterable[str]) -> None:
        """All files are there and nothing else, not even half of one."""
        wanted = set(paths)
        if missing := sorted(wanted.difference(self.found(commit, wanted))):
            raise StagingFailed(
                "LLE398",
                f"{', '.join(missing[:_SHOWN])}: gone from s3://{self._name}/{commit.prefix} "
                "after they were staged",
            )
        self._end_uploads(commit.prefix)

    def use(self, commit: Commit, user: str, who: str) -> None:
        """Note that somebody uses the commit's files, which then nobody else removes."""
        self._s3.put_object(Bucket=self._name, Key=commit.users + user, Body=who.encode())

    def no_use(self, commit: Commit, user: str) -> None:
        """Take the note back."""
        self._s3.delete_object(Bucket=self._name, Key=commit.users + user)

    def release(self, commit: Commit, user: str) -> str:
        """Take the note back, and remove the commit's files where there is no other; in words."""
        try:
            self.no_use(commit, user)
            removed = 0
            for key in list(self._keys(commit.prefix)):
                # Asked before each: a stack that comes now finds it, or copies it again.
                if any(True for _ in self._keys(commit.users)):
                    return f"{removed} files removed, then another stack came to use them"
                removed += self._removed(key)
            self._end_uploads(commit.prefix)
        except ClientError as error:
            if _code(error) == "NoSuchBucket":
                return "the bucket is gone"
            raise
        return f"{removed} files removed"

    def _removed(self, key: str) -> bool:
        """Remove what was staged: it has its hash in its metadata."""
        try:
            found = self._s3.head_object(Bucket=self._name, Key=key)
        except ClientError as error:
            if _code(error) in _ABSENT:
                return False
            raise
        if "sha256" not in found["Metadata"]:
            return False
        self._s3.delete_object(Bucket=self._name, Key=key)
        return True

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._name, Prefix=prefix):
            for each in page.get("Contents", ()):
                yield each["Key"]

    def _end_uploads(self, prefix: str, *, exactly: bool = False) -> None:
        """End uploads of files that are there or not wanted: of functions that were killed, and of
        deploys that were outrun, which find the file when theirs is gone.
        """
        pages = self._s3.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=self._name, Prefix=prefix):
            for each in page.get("Uploads", ()):
                if not exactly or each["Key"] == prefix:
                    with suppress(ClientError):  # it has ended
                        self._s3.abort_multipart_upload(
                            Bucket=self._name, Key=each["Key"], UploadId=each["UploadId"]
                        )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _verified(file: File, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same pieces; at their end their hash is the pinned one."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        yield piece
    if (size, digest.hexdigest()) != (file.size, file.sha256):
        raise StagingFailed(
            "LLE313", f"{file.path}: {size} bytes with SHA-256 {digest.hexdigest()} came instead"
        )


def _in_parts(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    part = bytearray()
    for piece in pieces:
        part += piece
        while len(part) >= size:
            yield bytes(part[:size])
            del part[:size]
    if part:
        yield bytes(part)
