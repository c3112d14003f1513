"""What passes between this machine and the fleet's master: a few objects in the run's folder.

S3 is the one service that isolated subnets reach for nothing. Every object exists before the
tasks start and is only ever written anew, so nobody needs the right to list, and a reader sees
either the old or the new one (S3 is strongly consistent).

========== ================ =====================================================================
object     written by       content
========== ================ =====================================================================
run.json   this machine     target, payloads, number of workers; once
control    this machine     number of the step wanted, the step; again and again, as a sign of life
status     the master       what it does, progress of the step, its result
========== ================ =====================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...facts.load_test_fleet_rules import RUNS_PREFIX

RUN, CONTROL, STATUS = "run.json", "control.json", "status.json"
MODULE = "payload_module.py"
"""The source of the user's payload generator."""


class RunFolder:
    """The folder of one run in the fleet's bucket."""

    def __init__(self, s3: Any, bucket: str, run_id: str) -> None:
        self._s3, self.bucket, self.run_id = s3, bucket, run_id

    @property
    def url(self) -> str:
        """Where it is, for people."""
        return f"s3://{self.bucket}/{RUNS_PREFIX}{self.run_id}/"

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write an object anew."""
        self.put(name, json.dumps(content).encode())

    def put(self, name: str, body: bytes) -> None:
        """Write an object of another form."""
        self._s3.put_object(Bucket=self.bucket, Key=self._key(name), Body=body)

    def read(self, name: str) -> dict[str, Any]:
        """What an object holds."""
        content: dict[str, Any] = json.loads(self.get(name)[0])
        return content

    def get(self, name: str) -> tuple[bytes, float]:
        """An object's bytes and age."""
        answer = self._s3.get_object(Bucket=self.bucket, Key=self._key(name))
        with answer["Body"] as stream:
            body: bytes = stream.read()
        sent = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = (
            datetime.strptime(sent, "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=UTC)
            if sent
            else datetime.now(UTC)
        )
        return body, (now - answer["LastModified"]).total_seconds()

    def _key(self, name: str) -> str:
        return f"{RUNS_PREFIX}{self.run_id}/{name}"
