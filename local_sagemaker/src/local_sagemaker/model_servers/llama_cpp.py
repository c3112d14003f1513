"""llama.cpp, without a GPU, as an inference script: text of the first GGUF file of the model.

``POST /invocations`` takes a chat or a completion in OpenAI's form, as AWS's llama.cpp container
does (aws/deep-learning-containers, scripts/docker/llama_cpp). The answer comes whole. A real server
computes it; a model with random weights answers nonsense. `handlers` serves it.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any


class BadRequest(Exception):
    """The request is not what the model takes."""

    status_code = 400


def model_fn(model_dir: str) -> Any:
    """Load the first GGUF file by name."""
    found = sorted(Path(model_dir).rglob("*.gguf"))
    if not found:
        raise FileNotFoundError(f"no *.gguf under {model_dir}")
    llama = import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = str(found[0])
    parameters.cpuparams.n_threads = 1
    parameters.n_parallel = 1
    parameters.verbosity = 0
    return llama.Server(parameters)


def transform_fn(model: Any, body: bytes, content_type: str, accept: str) -> tuple[str, str]:
    """Answer a chat (``messages``) or a completion (``prompt``)."""
    try:
        request = json.loads(body)
        if "messages" in request:
            answer = model.handle_chat_completions(request)
        else:
            answer = model.handle_completions(request)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"send messages or a prompt as JSON: {error}") from None
    return json.dumps(answer), "application/json"
