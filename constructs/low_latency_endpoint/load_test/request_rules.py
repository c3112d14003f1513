"""What a load test may be told to send, and where to."""

from __future__ import annotations

from ..errors import rule
from ..planning.endpoint_request import LARGEST_BODY_BYTES
from ..planning.limits import Pattern, Range

__all__ = [
    "GENERATED_BODY",
    "HEADER_TEXT",
    "PAYLOAD_BYTES",
    "PAYLOAD_GENERATOR",
    "PAYLOAD_SOURCE",
    "RESPONSE_CHECK",
    "TARGET_ENDPOINT",
]

_INVOKE_PAGE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"

PAYLOAD_SOURCE = rule(
    "LLE943", "the payload of the load test cannot be read",
    mend="Give a file with one request body, a .jsonl file with one per line, or a folder with "
         "one file per body.",
)
PAYLOAD_GENERATOR = rule(
    "LLE944", "the payload generator of the load test cannot be used",
    mend="Give module:function; the module is looked for in the current folder too. The function "
         "takes the request's number, from 0, and returns bytes, text, or what JSON can carry.",
)
PAYLOAD_BYTES = Range(
    rule("LLE945", "a request body of the load test is too large",
         mend="Send what callers send: SageMaker takes 25 MB at most.",
         source="/sagemaker/latest/dg/deploy-model-options.html"),
    "the body", 0, LARGEST_BODY_BYTES, "bytes",
)
GENERATED_BODY = rule(
    "LLE946", "the payload generator returned what is no request body",
    mend="Return bytes, text, or what JSON can carry.",
)
TARGET_ENDPOINT = Pattern(
    rule("LLE947", "the load test does not know which endpoint to call",
         mend="Give the endpoint's name, as `aws sagemaker list-endpoints` prints it.",
         source=_INVOKE_PAGE),
    "the endpoint's name", r"[a-zA-Z0-9](-*[a-zA-Z0-9])*", "letters, digits and hyphens", 63,
)
HEADER_TEXT = Pattern(
    rule("LLE948", "a request header of the load test may hold one line of printable ASCII only",
         mend="Give the value as SageMaker's API takes it.", source=_INVOKE_PAGE),
    "the value", r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", "printable ASCII, not empty", 1024,
)
RESPONSE_CHECK = rule(
    "LLE949", "the response check of the load test is no regular expression",
    mend="Give a Python regular expression that occurs in every good answer, such as '\"label\"'.",
)
