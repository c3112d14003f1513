"""Serves an inference script as SageMaker's toolkits do: its functions, and no server to write.

``python -m local_sagemaker.model_servers.handlers inference.py`` calls

- ``model_fn(model_dir)`` once; ``/ping`` answers 200 from then on;
- for each request ``transform_fn(model, body, content_type, accept)``, or
  ``input_fn(body, content_type)``, ``predict_fn(data, model)`` and ``output_fn(prediction,
  accept)``. Without ``input_fn`` and ``output_fn`` JSON is read and written, and everything else is
  bytes. Each may take a ``context`` last, which is None here. An exception with a ``status_code``
  is answered with that, as those of the toolkits' own are.

One request is worked on at a time, as by one worker of those toolkits. Source of the functions:
SageMaker Python SDK documentation, "Deploying PyTorch models" ("Serve a PyTorch Model").
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from ..runtime.http_server import Connection, Request, listen

_JSON = "application/json"


def _load(path: Path) -> ModuleType:
    """Import the script under its own name, with what lies beside it."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a handler, with a context when it takes one."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return function(*arguments, None)
    except ValueError:  # it does not say what it takes
        pass
    return function(*arguments)


def _read(body: bytes, content_type: str) -> Any:
    return json.loads(body) if content_type.partition(";")[0].strip() == _JSON else body


def _write(prediction: Any, accept: str) -> Any:
    if isinstance(prediction, (bytes, str)):
        return prediction
    plain = getattr(prediction, "tolist", None)  # of arrays and tensors
    return json.dumps(plain() if plain is not None else prediction), _JSON


class _OwnLoad:
    """Load in AWS's names: CPU in percent of one core since the last time, memory of the machine."""

    def __init__(self) -> None:
        self._told = (time.perf_counter(), time.process_time())

    def utilization(self) -> dict[str, float]:
        before, self._told = self._told, (time.perf_counter(), time.process_time())
        elapsed = max(self._told[0] - before[0], 1e-9)
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        return {
            "CPUUtilization": 100.0 * (self._told[1] - before[1]) / elapsed,
            "MemoryUtilization": 100.0 * peak / pages,
        }


class _Server:
    def __init__(self, module: ModuleType) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._module = module
        self._loaded: list[Any] = []
        self._load = _OwnLoad()

    async def load(self) -> None:
        """Load the model; `/ping` answers 200 from then on."""
        folder = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
        loop = asyncio.get_running_loop()
        model = await loop.run_in_executor(self._worker, _call, self._module.model_fn, folder)
        self._loaded.append(model)

    async def __call__(self, request: Request, connection: Connection) -> None:
        if request.target == "/ping":
            connection.send(200 if self._loaded else 503, (), b"")
        elif request.target == "/utilization":
            connection.send(200, (), json.dumps(self._load.utilization()).encode())
        elif request.target == "/invocations" and self._loaded:
            loop = asyncio.get_running_loop()
            status, answer, kind = await loop.run_in_executor(self._worker, self._invoke, request)
            connection.send(status, [("content-type", kind)], answer)
        else:
            connection.send(404, (), b"")

    def _invoke(self, request: Request) -> tuple[int, bytes, str]:
        content_type = request.headers.get("content-type", _JSON)
        accept = request.headers.get("accept", "*/*")
        accept = _JSON if accept in ("*/*", "") else accept
        try:
            answer = self._answer(request.body, content_type, accept)
        except Exception as error:
            traceback.print_exc()
            status = int(getattr(error, "status_code", 500))
            return status, f"{type(error).__name__}: {error}".encode(), "text/plain"
        # The toolkits take a pair of the answer and its content type too.
        body, kind = answer if isinstance(answer, tuple) else (answer, accept)
        return 200, body if isinstance(body, bytes) else str(body).encode(), str(kind)

    def _answer(self, body: bytes, content_type: str, accept: str) -> Any:
        has, model = vars(self._module), self._loaded[0]
        if "transform_fn" in has:
            return _call(has["transform_fn"], model, body, content_type, accept)
        data = _call(has.get("input_fn", _read), body, content_type)
        predict = has.get("predict_fn", lambda data, model: model(data))
        prediction = _call(predict, data, model)
        return _call(has.get("output_fn", _write), prediction, accept)


async def _run(path: Path) -> None:
    server = _Server(_load(path))
    await listen(server, port=int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080")))
    await server.load()
    await asyncio.Event().wait()  # its supervisor ends it


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(Path(sys.argv[1])))
