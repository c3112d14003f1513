"""A real model in the container contract: text classification with scikit-learn.

``python -m local_sagemaker.model_servers.sentiment`` trains a small classifier
(hashed words and word pairs, logistic regression) and serves it on SAGEMAKER_BIND_TO_PORT, by
default 8080. ``POST /invocations`` takes ``{"inputs": "text"}`` or a list of texts and answers as
Hugging Face's text-classification pipeline does: ``[{"label": "POSITIVE", "score": 0.98}]``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from ..runtime.http_server import Connection, Request, listen

_GOOD = ("good", "great", "excellent", "wonderful", "delightful", "superb", "brilliant", "lovely")
_BAD = ("bad", "awful", "terrible", "horrible", "dreadful", "poor", "boring", "disappointing")
_THINGS = ("film", "story", "service", "meal", "book", "room", "team", "product", "plot", "song")
_FRAMES = (
    "the {thing} was {word}",
    "what a {word} {thing}",
    "i found the {thing} rather {word}",
    "a {word} {thing} from start to end",
    "honestly the {thing} is {word}",
    "{word} {thing}",
)


class Classifier:
    """Logistic regression over hashed words, trained on sentences built from a small grammar."""

    def __init__(self) -> None:
        text = import_module("sklearn.feature_extraction.text")
        linear_model = import_module("sklearn.linear_model")
        pipeline = import_module("sklearn.pipeline")
        texts, labels = [], []
        for label, words in (("POSITIVE", _GOOD), ("NEGATIVE", _BAD)):
            for word, thing, frame in itertools.product(words, _THINGS, _FRAMES):
                texts.append(frame.format(word=word, thing=thing))
                labels.append(label)
        self._pipeline = pipeline.make_pipeline(
            text.HashingVectorizer(n_features=2**14, ngram_range=(1, 2)),
            linear_model.LogisticRegression(max_iter=200),
        )
        self._pipeline.fit(texts, labels)

    def classify(self, texts: list[str]) -> list[dict[str, Any]]:
        """Give label and score of each text."""
        names = self._pipeline.classes_
        return [
            {"label": str(names[row.argmax()]), "score": float(row.max())}
            for row in self._pipeline.predict_proba(texts)
        ]


class _Server:
    """One worker thread, so that requests queue as they do in a container with one worker."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._model: Classifier | None = None
        self._told = (time.perf_counter(), time.process_time())

    async def load(self) -> None:
        """Train the model; `/ping` answers 200 from then on."""
        self._model = await asyncio.get_running_loop().run_in_executor(self._worker, Classifier)

    async def __call__(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        if request.target == "/ping":
            connection.send(200 if self._model is not None else 503, (), b"")
        elif request.target == "/utilization":
            connection.send(200, (), json.dumps(self._utilization()).encode())
        elif request.target == "/invocations" and self._model is not None:
            try:
                inputs = json.loads(request.body)["inputs"]
                texts = [inputs] if isinstance(inputs, str) else [str(text) for text in inputs]
            except (ValueError, KeyError, TypeError):
                connection.send(400, (), b'send {"inputs": "text"} or {"inputs": ["text", ...]}')
                return
            answer = await asyncio.get_running_loop().run_in_executor(
                self._worker, self._model.classify, texts
            )
            body = json.dumps(answer).encode()
            connection.send(200, [("content-type", "application/json")], body)
        else:
            connection.send(404, (), b"")

    def _utilization(self) -> dict[str, float]:
        """Tell CPU in percent of one core since the last time, memory in percent of the machine."""
        before, self._told = self._told, (time.perf_counter(), time.process_time())
        elapsed = max(self._told[0] - before[0], 1e-9)
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        return {
            "CPUUtilization": 100.0 * (self._told[1] - before[1]) / elapsed,
            "MemoryUtilization": 100.0 * peak / pages,
        }


async def _run() -> None:
    server = _Server()
    await listen(server, port=int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080")))
    await server.load()
    await asyncio.Event().wait()  # its supervisor ends it


def main() -> int:
    """Serve until interrupted."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
