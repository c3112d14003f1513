"""Errors as the services write them that answer in XML."""

from __future__ import annotations

import uuid
from xml.sax.saxutils import escape

_FORMS = {
    "query": "<ErrorResponse><Error><Type>Sender</Type>{error}</Error>"
    "<RequestId>{request}</RequestId></ErrorResponse>",
    "ec2": "<Response><Errors><Error>{error}</Error></Errors><RequestID>{request}</RequestID>"
    "</Response>",
    "s3": "<Error>{error}<RequestId>{request}</RequestId></Error>",
}


def error_xml(form: str, code: str, message: str, more: str = "") -> bytes:
    """Write an error."""
    error = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>{more}"
    document = _FORMS[form].format(error=error, request=uuid.uuid4())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}'.encode()
