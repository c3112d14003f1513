"""Model servers that speak SageMaker's container contract on loopback.

`SimulatedModelServer` takes the time it is told, `sentiment_model_server` computes with
scikit-learn, `CommandModelServer` runs a program of yours, `UrlModelServer` names one that runs.
"""

from __future__ import annotations

from .service_times import ServiceTime
from .specifications import (
    CommandModelServer,
    ModelServer,
    SimulatedModelServer,
    UrlModelServer,
    parse_model_server,
    sentiment_model_server,
)

__all__ = [
    "CommandModelServer",
    "ModelServer",
    "ServiceTime",
    "SimulatedModelServer",
    "UrlModelServer",
    "parse_model_server",
    "sentiment_model_server",
]
