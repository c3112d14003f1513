"""Model servers that speak SageMaker's container contract on loopback.

`SimulatedModelServer` takes the time it is told, `LanguageModelServer` streams tokens in the time
it is told, `CommandModelServer` runs a program of yours, `handlers_model_server` the functions of an
inference script, `UrlModelServer` names a server that runs.
"""

from __future__ import annotations

from .command_line import parse_model_server
from .specifications import (
    CommandModelServer,
    LanguageModelServer,
    ModelServer,
    ServiceTime,
    SimulatedModelServer,
    UrlModelServer,
    handlers_model_server,
)

__all__ = [
    "CommandModelServer",
    "LanguageModelServer",
    "ModelServer",
    "ServiceTime",
    "SimulatedModelServer",
    "UrlModelServer",
    "handlers_model_server",
    "parse_model_server",
]
