"""Model servers as a command line names them: IMAGE=SERVER."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
from pathlib import Path

from .specifications import (
    CommandModelServer,
    LanguageModelServer,
    ModelServer,
    SimulatedModelServer,
    UrlModelServer,
    from_document,
    handlers_model_server,
)

_HANDLERS = {"model_fn", "input_fn", "predict_fn", "output_fn", "transform_fn"}
_MOST_BYTES = 4 * 1024 * 1024
_CHOICES = (
    "a server is simulated, language-model, a URL on loopback, a command such as 'python serve.py', "
    "a script with model_fn, or a JSON file"
)


def parse_model_server(text: str) -> tuple[str, ModelServer]:
    """Read ``IMAGE=SERVER``.

    Examples
    --------
    >>> parse_model_server("team/ranker=http://127.0.0.1:8080")
    ('team/ranker', UrlModelServer(url='http://127.0.0.1:8080', in_process=False))
    >>> parse_model_server("team/ranker=python serve.py --fast")[1].command[1:]
    ('serve.py', '--fast')
    """
    image, _, what = text.partition("=")
    what = what.strip()
    if not image or not what or "\0" in text:
        raise ValueError(f"IMAGE=SERVER is needed, such as '*=simulated': {text!r}")
    if what == "simulated":
        return image, SimulatedModelServer()
    if what == "language-model":
        return image, LanguageModelServer()
    if what.lower().startswith(("http://", "https://")):
        return image, UrlModelServer(what)
    path = Path(what)
    try:
        is_file = path.exists() and not path.is_dir()
    except OSError:  # longer than any name
        is_file = False
    if is_file:
        return image, _of_file(path)
    return image, _of_command(what)


def _of_file(path: Path) -> ModelServer:
    if path.suffix == ".py":
        return _of_script(path)
    if path.suffix != ".json" and os.access(path, os.X_OK):
        return CommandModelServer((str(path.resolve()),), directory=str(Path.cwd()))
    try:
        document = json.loads(_content(path).decode())
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{path} is no JSON document ({why}); {_CHOICES}") from None
    try:
        return from_document(document)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _content(path: Path) -> bytes:
    """Read a file that may be a device, which has no end."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    return content


def _of_script(path: Path) -> ModelServer:
    """A script with handlers is served; one without could be a server, or a forgotten handler."""
    try:
        tree = ast.parse(_content(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as Python: {error}") from None
    defined = {getattr(one, "name", "") for one in tree.body}
    imported = {
        alias.asname or alias.name
        for one in tree.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    if "model_fn" in defined | imported:
        return handlers_model_server(path)
    has = ", ".join(sorted(_HANDLERS & defined)) or "no handler"
    raise ValueError(
        f"{path} has {has}, and no model_fn, with which it would be served; to run it "
        f"as a server of its own: 'python {path}'"
    )


def _of_command(text: str) -> ModelServer:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from None
    if not words:
        raise ValueError(f"{text!r} is no command; {_CHOICES}")
    program = shutil.which(words[0])
    if program is None:
        raise ValueError(f"{words[0]} is neither a file nor a program on the PATH; {_CHOICES}")
    # Absolute, since the local AWS may run elsewhere and with another PATH.
    return CommandModelServer((os.path.abspath(program), *words[1:]), directory=str(Path.cwd()))
