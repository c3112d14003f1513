"""Physical names that must be known at synthesis, and digests for names that follow a content."""

from __future__ import annotations

import json
import re
from typing import Any

from aws_cdk import Names, Stack
from constructs import Construct, IConstruct

from .asked_once import path_of, stack_name_of, stack_of
from .validation import is_token

_LONGEST = 63


def name_of(construct: Construct) -> str:
    """A name in lower case, of 63 characters at most, that follows the construct's path.

    A stack that is not called as its path says (``stack_name=``) is one of several that an app may
    make of the same constructs: there the name follows the stack's name too.
    """
    stack = _outermost(stack_of(construct))
    name = stack_name_of(stack)
    end = "" if is_token(name) or _follows(name, path_of(stack)) else f"-{digest(stack, name)}"
    path = Names.unique_resource_name(construct, max_length=_LONGEST - len(end), separator="-")
    return f"{path.lower()}{end}"


def _outermost(stack: Stack) -> Stack:
    while (parent := stack.nested_stack_parent) is not None:
        stack = parent
    return stack


def _follows(stack_name: str, path: str) -> bool:
    """Whether CDK made a stack's name of its path: one ID, a stage's and its, or a digest."""
    ids = path.split("/")
    joined = re.escape(re.sub("[^A-Za-z0-9]", "", "".join(ids)))
    return stack_name == "-".join(ids) or bool(re.fullmatch(f"{joined}[0-9A-F]{{8}}", stack_name))


def digest(scope: IConstruct, text: str) -> str:
    """The same for the same text in every synthesis: tokens count as what they refer to."""
    return digest_of(stack_of(scope).resolve(text))


def digest_of(resolved: Any) -> str:
    """The same of anything that a stack has resolved already."""
    canonical = json.dumps(resolved, sort_keys=True)
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    return sha256(canonical.encode()).hexdigest()[:8]
