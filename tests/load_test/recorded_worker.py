"""A worker on Locust's protocol that sends nothing and records given samples instead.

``python recorded_worker.py HOST:PORT FILE``: the file holds a JSON list of seconds; the worker
records its part of them, as many as the master's step has parts.
"""

from __future__ import annotations

import locust  # noqa: F401  # isort: skip  # first: it patches the standard library

import json
import sys
from pathlib import Path
from typing import Any

from locust.env import Environment
from locust.event import Events

from low_latency_endpoint.load_test.engine.recording import Records
from low_latency_endpoint.load_test.engine.stepping import StepWorker


class RecordedWorker(StepWorker):
    """Records samples of a file."""

    def _run(self, environment: Any, content: Any) -> Records:
        samples = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
        records = Records()
        for sample in samples[content["part"] :: content["parts"]]:
            records.intended += 1
            records.sent += 1
            if sample > 1:
                records.failed("slow")
                records.refused.record(sample)
                continue
            records.completed += 1
            records.latency.record(sample)
            records.service.record(sample / 2)
            records.first_byte.record(sample / 4)
            records.send_lag.record(sample / 1000)
        return records


def main() -> None:
    """Be a worker until the master says that it is enough."""
    host, _, port = sys.argv[1].rpartition(":")
    runner = Environment(events=Events()).create_worker_runner(host, int(port))
    RecordedWorker(runner).announce()
    runner.greenlet.join()


if __name__ == "__main__":
    main()
