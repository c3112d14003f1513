"""Request bodies of a load test: from a file, a folder, a function, or as they are."""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import rule
from ...errors.given_files import bytes_of, check_lines
from ...facts.limit_kinds import USE_AN_ALLOWED_VALUE, Range
from ...facts.limits import LARGEST_BODY_BYTES
from .prompts import Prompts

PAYLOAD_NEEDED = rule(
    "LLT109",
    "a load test needs something to send",
    fix="Give --payload a file, a folder, module:function or JSON text, or --settings with a "
    "warm-up payload.",
)

PAYLOAD_SOURCE = rule(
    "LLT101",
    "the load test's payload cannot be read",
    fix="Give a file with one request body, a .jsonl file with one per line, or a folder with "
    "one per file.",
)
PAYLOAD_GENERATOR = rule(
    "LLT102",
    "the load test's payload generator cannot be used",
    fix="Give module:function, also from the current folder. It takes the request's "
    "number, from 0, and returns bytes, text or JSON data.",
)
PAYLOAD_BYTES = Range(
    rule(
        "LLT103",
        "a request body of the load test is too large",
        fix=USE_AN_ALLOWED_VALUE,
        source="/sagemaker/latest/dg/deploy-model-options.html",
    ),
    "the body",
    0,
    LARGEST_BODY_BYTES,
    "bytes",
)
GENERATED_BODY = rule(
    "LLT104",
    "the payload generator did not return a request body",
    fix="Return bytes, text or JSON data.",
)


@dataclass(frozen=True)
class Payloads:
    """What the requests of a load test carry, by the request's number.

    Make it with :meth:`of_bytes`, :meth:`of_file`, :meth:`of_folder` or :meth:`of_generator`, or
    with :meth:`of`, which tells them apart. Files are read once, here: what reaches the
    worker processes is their content, so workers on other machines need no files. A generator
    reaches them by its name.

    Attributes
    ----------
    bodies : tuple of bytes
        Sent in turn; empty when a generator makes them.
    generator : str or None
        ``module:function``.
    prompts : Prompts or None
        That make each body for a language model.
    source : str
        Where they come from, in words, for reports.

    Examples
    --------
    >>> payloads = Payloads.of_bytes(b'{"inputs": "a"}', b'{"inputs": "b"}')
    >>> payloads.next(0), payloads.next(3)
    (b'{"inputs": "a"}', b'{"inputs": "b"}')
    >>> Payloads.of_dict(payloads.to_dict()) == payloads
    True
    """

    bodies: tuple[bytes, ...] = ()
    generator: str | None = None
    source: str = ""
    prompts: Prompts | None = None

    @property
    def largest_bytes(self) -> int | None:
        """Bytes of the largest body; None if they are made while the test runs."""
        return max(map(len, self.bodies), default=None)

    def __post_init__(self) -> None:
        if not self.bodies and self.generator is None and self.prompts is None:
            raise PAYLOAD_SOURCE.error(got="no body", allowed="at least one body")
        for body in self.bodies:
            if not isinstance(body, bytes):
                raise PAYLOAD_SOURCE.error(got=f"a {type(body).__name__}", allowed="bytes")
            PAYLOAD_BYTES.check(len(body), self.source)

    @classmethod
    def of(cls, source: str | os.PathLike[str]) -> Payloads:
        """A file, a folder, ``module:function``, or JSON itself, whichever it is.

        Raises
        ------
        ConfigurationError
            ``LLT101``, ``LLT102``, ``LLT103``.

        Examples
        --------
        >>> Payloads.of('{"inputs": "I like you."}').next(0)
        b'{"inputs": "I like you."}'
        """
        text = os.fspath(source)
        if text.lstrip()[:1] in ("{", "["):
            return cls.of_bytes(text.encode())
        if os.path.isdir(text):  # pathlib's raises for names that are too long
            return cls.of_folder(text)
        module, colon, function = text.rpartition(":")
        named = module.replace(".", "_").isidentifier() and function.isidentifier()
        if colon and named and not os.path.exists(text):
            return cls.of_generator(text)
        return cls.of_file(text)

    @classmethod
    def of_bytes(cls, *bodies: bytes) -> Payloads:
        """These bodies, in turn.

        Raises
        ------
        ConfigurationError
            ``LLT101`` for none, ``LLT103`` for one that is too large.
        """
        return cls(bodies, source=f"{len(bodies)} given bod{'y' if len(bodies) == 1 else 'ies'}")

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Payloads:
        """A whole file as one body; of a ``.jsonl`` or ``.ndjson`` file each line.

        Raises
        ------
        ConfigurationError
            ``LLT101`` when it cannot be read or holds nothing, ``LLT103``.
        """
        path = Path(path)
        if path.suffix.lower() not in (".jsonl", ".ndjson"):
            return cls((_body(path),), source=f"file {path.name}")
        content = bytes_of(path, PAYLOAD_SOURCE, _LARGEST_FILE)
        try:
            check_lines(content)
        except ValueError as problem:
            allowed = "a file whose lines fit into memory"
            raise PAYLOAD_SOURCE.error(got=str(problem), allowed=allowed, where=str(path)) from None
        lines = tuple(line for line in content.splitlines() if line.strip())
        if not lines:
            raise PAYLOAD_SOURCE.error(got=f"no line in {path}", allowed="at least one line")
        return cls(lines, source=f"file {path.name}, {len(lines)} lines")

    @classmethod
    def of_folder(cls, path: str | os.PathLike[str]) -> Payloads:
        """One body per file of the folder, in the order of the names; hidden files are left out.

        Raises
        ------
        ConfigurationError
            ``LLT101`` when it cannot be read or holds no file, ``LLT103``.
        """
        path = Path(path)
        try:
            files = sorted(islice(_files_in(path), _MOST_FILES + 1))
        except OSError as error:
            raise PAYLOAD_SOURCE.error(
                got=f"{path}: {error.strerror}", allowed="a folder with files"
            ) from error
        if not files:
            raise PAYLOAD_SOURCE.error(got=f"no file in {path}", allowed="a folder with files")
        if len(files) > _MOST_FILES:
            raise PAYLOAD_SOURCE.error(
                got=f"more files in {path}", allowed=f"at most {_MOST_FILES:,} files"
            )
        return cls(_bodies(path, files), source=f"folder {path.name}, {len(files)} files")

    @classmethod
    def of_generator(cls, name: str) -> Payloads:
        """A function, named ``module:function``, that makes the body of each request.

        It takes the request's number and returns ``bytes``, text (sent as UTF-8), or anything
        that JSON can carry. Make it quick: it runs in the generator's process before each request.

        Raises
        ------
        ConfigurationError
            ``LLT102`` when there is no such function.
        """
        made = cls((), generator=name, source=f"generator {name}")
        made._function  # noqa: B018  # tells now what is wrong with the name
        return made

    @classmethod
    def of_prompts(cls, prompts: Prompts) -> Payloads:
        """Prompts of given lengths for a language model."""
        return cls((), source=prompts.source, prompts=prompts)

    @cached_property
    def _function(self) -> Callable[[int], Any]:
        return _named_function(self.generator or "")

    def next(self, index: int) -> bytes:
        """The body of request number ``index``, from 0.

        Raises
        ------
        ConfigurationError
            ``LLT103``, ``LLT104`` when the generator returns what cannot be sent.
        """
        bodies = self.bodies
        if bodies:
            return bodies[index % len(bodies)]
        if self.prompts is not None:
            body = self.prompts.body(index)
        elif isinstance(payload := self._function(index), str):
            body = payload.encode()
        elif isinstance(payload, (bytes, bytearray, memoryview)):
            body = bytes(payload)
        else:
            try:
                body = json.dumps(payload).encode()
            except (TypeError, ValueError) as error:
                raise GENERATED_BODY.error(
                    got=f"{type(payload).__name__} for request {index}: {error}",
                    allowed="bytes, str, or JSON data",
                    where=self.source,
                ) from error
        PAYLOAD_BYTES.check(len(body), self.source)
        return body

    def parameters(self, index: int) -> dict[str, str] | None:
        """Of that request by boto3's names, beside its body; ``None`` for none."""
        return None if self.prompts is None else self.prompts.parameters(index)

    def to_dict(self) -> dict[str, Any]:
        """What :meth:`of_dict` reads; plain JSON."""
        return {
            "bodies": [base64.b64encode(body).decode() for body in self.bodies],
            "generator": self.generator,
            "source": self.source,
            "prompts": None if self.prompts is None else self.prompts.to_dict(),
        }

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Payloads:
        """What :meth:`to_dict` wrote."""
        return cls(
            tuple(base64.b64decode(body) for body in data.get("bodies", ())),
            generator=data.get("generator"),
            source=data.get("source", ""),
            prompts=Prompts.of_dict(data["prompts"]) if data.get("prompts") else None,
        )


def _body(path: Path) -> bytes:
    """A file that is one body: no more of it is read than a body may have."""
    return bytes_of(path, PAYLOAD_SOURCE, LARGEST_BODY_BYTES, PAYLOAD_BYTES.rule)


def _files_in(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))


def _bodies(folder: Path, files: Iterable[Path]) -> tuple[bytes, ...]:
    """The content of a folder's files, which may be as long together as a file of many bodies."""
    bodies: list[bytes] = []
    length = 0
    for file in files:
        bodies.append(_body(file))
        length += len(bodies[-1])
        if length > _LARGEST_FILE:
            raise PAYLOAD_SOURCE.error(
                got=f"larger files in {folder}", allowed=f"at most {_LARGEST_FILE:,} bytes in all"
            )
    return tuple(bodies)


# Of many bodies, in a .jsonl or a folder: every worker process holds all of them.
_LARGEST_FILE = 256 * 1024 * 1024
_MOST_FILES = 100_000


def _named_function(name: str) -> Callable[[int], Any]:
    """Import ``module:function``, from the current folder too, as Locust does for its files."""
    module_name, colon, function_name = name.partition(":")
    if not (colon and module_name and function_name):
        raise PAYLOAD_GENERATOR.error(got=repr(name), allowed="module:function")
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), function_name)
    except Exception as error:  # whatever the user's module raises
        raise PAYLOAD_GENERATOR.error(
            got=f"{name}: {type(error).__name__}: {error}",
            allowed="a function that can be imported",
        ) from error
    if not callable(found):
        raise PAYLOAD_GENERATOR.error(
            got=f"{name} is a {type(found).__name__}", allowed="a function"
        )
    function: Callable[[int], Any] = found
    return function
