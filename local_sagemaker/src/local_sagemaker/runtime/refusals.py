"""The errors of SageMaker Runtime, as it sends them."""

from __future__ import annotations

import json
import uuid

from .endpoints import RuntimeEndpoint
from .http_server import Connection

__all__ = ["ModelFailed", "Refusal", "not_found", "refuse"]


class Refusal(Exception):
    """An answer that is an error of SageMaker Runtime."""

    def __init__(self, status: int, code: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.document = {"Message": message, **fields}


class ModelFailed(Exception):
    """The model was reached and did not answer with 2xx."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.status = status
        self.refusal = refusal

    @classmethod
    def of(cls, endpoint: RuntimeEndpoint, status: int, message: str) -> ModelFailed:
        """Make the ModelError of a status and a message."""
        account, region = endpoint.place
        side = "client" if 400 <= status <= 499 else "server"
        group = f"/aws/sagemaker/Endpoints/{endpoint.name}"
        text = (
            f'Received {side} error ({status}) from primary with message "{message}". See '
            f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}"
            f"#logEventViewer:group={group} in account {account} for more information."
        )
        refusal = Refusal(
            424, "ModelError", text, OriginalStatusCode=status, OriginalMessage=message,
            LogStreamArn=f"arn:aws:logs:{region}:{account}:log-group:{group}",
        )
        return cls(status, refusal)


def refuse(connection: Connection, refusal: Refusal) -> None:
    """Send a refusal."""
    connection.send(
        refusal.status,
        [("content-type", "application/json"), ("x-amzn-requestid", str(uuid.uuid4())),
         ("x-amzn-errortype", refusal.code)],
        json.dumps(refusal.document).encode(),
    )


def not_found(name: str, endpoint: RuntimeEndpoint | None, account: str = "123456789012") -> str:
    """Write the message of an endpoint that does not exist, or does not serve yet."""
    owner = endpoint.place[0] if endpoint is not None else account
    return f"Endpoint {name} of account {owner} not found."
