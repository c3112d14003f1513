"""Sends requests to the endpoint from inside the VPC: in each zone by its zonal name.

Its event says how much; where to send stands in the environment variable ``WARM_UP``, what to send
in the folder ``payloads`` beside the code. It answers with what it measured, and never logs a
payload: of an answer it logs the beginning of an error's text.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
from botocore.config import Config

from .exchanges import READ_TIMEOUT, SEND, SHOWN, SenderConnections, shown
from .measurements import Zone

GRACE_SECONDS = 30.0  # a new role takes a while until every part of AWS knows it
PAUSE_SECONDS = 0.5  # after a failure, so that a fleet that starts is not flooded

_TRY_AGAIN = {408, 429}

_clients: dict[str, Any] = {}


@dataclass
class Run:
    """How much to send; the same for all zones."""

    seconds: float  # for how long requests are started
    requests: int  # how many to send in each zone at least, those of earlier slices included
    concurrency: int = 1  # requests in flight in each zone
    keep: int = 50  # how many of the last requests must succeed and meet the target
    # milliseconds by statistic; empty when nothing is to be met
    target: dict[str, float] = field(default_factory=dict)


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Send what the event asks for; go on from the zones it brings along."""
    settings = json.loads(os.environ["WARM_UP"])
    run = Run(**event["run"])
    given = event.get("zones") or {}
    zones = {name: Zone(**given.get(name, {})) for name in settings["zones"]}
    calls = {
        name: payload_call(settings, _client_that_keeps_connections(url_of(host)))
        for name, host in settings["zones"].items()
    }
    refused = send(run, zones, calls)
    answer = {
        "zones": {name: zone.to_dict() for name, zone in zones.items()},
        "refused": refused,
        "settled": all(zone.settled(run.requests, run.keep, run.target) for zone in zones.values()),
    }
    print(
        json.dumps(
            {
                "event": "warm-up requests",
                "endpoint": settings["endpoint"],
                "refused": refused,
                "zones": {name: zone.report() for name, zone in zones.items()},
            }
        )
    )
    return answer


def send(run: Run, zones: Mapping[str, Zone], calls: Mapping[str, Callable[[int], None]]) -> str:
    """Send in all zones at the same time; gives the refusal that ended it, or nothing."""
    ends = time.monotonic() + run.seconds
    stop = threading.Event()
    refusals: list[str] = []
    threads = []
    for name, zone in zones.items():
        line = _Line(run, zone, calls[name], ends, stop, refusals)
        threads += [
            threading.Thread(target=line.work, name=f"{name}-{number}", daemon=True)
            for number in range(run.concurrency)
        ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends + READ_TIMEOUT - time.monotonic()))
    return refusals[0] if refusals else ""


class _Line:
    """The requests of one zone, sent by as many threads as the run allows."""

    def __init__(
        self,
        run: Run,
        zone: Zone,
        call: Callable[[int], None],
        ends: float,
        stop: threading.Event,
        refusals: list[str],
    ) -> None:
        self._run, self._zone, self._call = run, zone, call
        self._ends, self._stop, self._refusals = ends, stop, refusals
        self._lock = threading.Lock()
        self._in_flight = 0
        self._started = time.monotonic()

    def _next(self) -> int | None:
        """The number of the request to send now; None when the zone is done."""
        run, zone = self._run, self._zone
        if self._stop.is_set() or time.monotonic() >= self._ends:
            return None
        with self._lock:
            number = zone.sent + self._in_flight
            if zone.settled(run.requests, run.keep, run.target):
                return None
            if number >= run.requests and not run.target and None not in zone.last:
                return None  # the rest is in flight
            self._in_flight += 1
            return number

    def work(self) -> None:
        while (number := self._next()) is not None:
            began = time.perf_counter()
            error = ""
            try:
                self._call(number)
            except botocore.exceptions.ClientError as failure:
                error = self._judged(failure)
            except Exception as failure:
                error = shown(failure)
            taken = None if error else (time.perf_counter() - began) * 1000
            with self._lock:
                self._in_flight -= 1
                self._zone.add(taken, self._run.keep, error)
            if error:
                self._stop.wait(PAUSE_SECONDS)

    def _judged(self, failure: botocore.exceptions.ClientError) -> str:
        """The failure's text; a refusal that will not pass ends the run."""
        text, final = refusal(failure)
        early = time.monotonic() - self._started < GRACE_SECONDS
        if final and (not early or of_the_model(failure)):
            self._refusals.append(text)
            self._stop.set()
        return text


def refusal(failure: botocore.exceptions.ClientError) -> tuple[str, bool]:
    """What went wrong, and whether the same request would fail again.

    A model's own answer comes as a ModelError with its status; 4xx means that the payload is
    wrong, but for 408 and 429, which ask to try again.
    """
    response = failure.response
    error = response.get("Error", {})
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if of_the_model(failure):
        status = int(response.get("OriginalStatusCode") or 0)
        said = response.get("OriginalMessage") or error.get("Message", "")
        answered = f"the model answered {status}" if status else "the model gave no answer"
        text = f"{answered}: {said}"
    else:
        text = f"{error.get('Code')}: {error.get('Message')}"
    return text[:SHOWN], 400 <= status < 500 and status not in _TRY_AGAIN


def of_the_model(failure: botocore.exceptions.ClientError) -> bool:
    """Whether the container failed, and SageMaker only says so."""
    return bool(failure.response.get("Error", {}).get("Code") == "ModelError")


def payload_call(settings: Mapping[str, Any], client: Any) -> Callable[[int], None]:
    """What sends the n-th request of a zone: the payloads in turn."""
    folder = Path(os.environ["LAMBDA_TASK_ROOT"]) / "payloads"
    requests = []
    for payload in json.loads((folder / "payloads.json").read_text(encoding="utf-8")):
        body = (folder / payload.pop("File")).read_bytes()
        requests.append({"EndpointName": settings["endpoint"], "Body": body, **payload})

    def call(number: int) -> None:
        client.invoke_endpoint(**requests[number % len(requests)])["Body"].read()

    return call


def url_of(host: str) -> str:
    """The zone's address, unless botocore is told to go elsewhere: to a local AWS."""
    return (
        os.environ.get("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME")
        or os.environ.get("AWS_ENDPOINT_URL")
        or f"https://{host}"
    )


def client_of(url: str) -> Any:
    """One client for each zone, kept while Lambda keeps the process; whoever uses it sends."""
    if url not in _clients:
        _clients[url] = boto3.client(
            "sagemaker-runtime",
            endpoint_url=url,
            # A repeated request would hide how long the first one took.
            config=Config(retries={"total_max_attempts": 1}),
        )
    return _clients[url]


def _client_that_keeps_connections(url: str) -> Any:
    """A client whose connections are as warm as those of callers."""
    if url not in _clients:
        client_of(url).meta.events.register(SEND, SenderConnections().send)
    return _clients[url]
