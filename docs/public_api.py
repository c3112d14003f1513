"""Public classes and functions of a package, read from its source and docstrings by griffe.

:func:`public_api` is the start. ``docs/make_reference_pages.py`` makes pages of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "constructs", ROOT / "client" / "src", ROOT / "local_sagemaker" / "src")
#: How a settings file states a value, and what other modules of the library need of it.
_INTERNAL = {"in_file", "plain_value", "start_anew", "ways"}
#: A description that leads to another one: its class or function, and its method.
_LIKE = re.compile(r"As (?:for |in |of )?:(?:class|func|meth):`([.~\w]+)`")
_VARIADIC = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}


@dataclass
class Argument:
    """An argument, or an attribute, which has no default."""

    name: str
    type: str
    """As the source annotates it; empty where it does not."""
    default: str | None
    text: str
    owner: str = ""
    """The class that has the attribute."""


@dataclass
class Callable:
    """A function, a method, or a property."""

    name: str
    text: list[str]
    """Paragraphs and examples."""
    arguments: list[Argument]
    returns: str
    """The annotated type."""
    returns_text: str
    raises: list[tuple[str, str]]
    owner: str
    """The class that has the method; empty for a function."""
    is_property: bool


@dataclass
class Class:
    """A class: its constructor's arguments, and what it offers."""

    name: str
    bases: list[str]
    """Names of all classes above it that this project has."""
    text: list[str]
    arguments: list[Argument]
    attributes: list[Argument]
    constants: list[str]
    methods: list[Callable] = field(default_factory=list)
    raises: list[tuple[str, str]] = field(default_factory=list)


class Package:
    """The public names of an importable package, as its ``dir()`` lists them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names = [each for each in dir(import_module(name)) if not each.startswith("_")]
        top, _, below = name.partition(".")
        self._module: Any = _source(top)[below] if below else _source(top)
        self._entries: dict[str, Class | Callable] = {}

    def entry(self, name: str) -> Class | Callable:
        """What a public name is."""
        if name not in self._entries:
            self._entries[name] = self._read(name)
            self._complete(self._entries[name])
        return self._entries[name]

    def _read(self, name: str) -> Class | Callable:
        found = self._module[name]
        if found.is_alias:
            found = found.final_target
        if not found.is_class:
            return _callable(found)
        return _class(found)

    def _complete(self, entry: Class | Callable) -> None:
        """Say of an argument that is "as for" another function's what is said there."""
        attributes = entry.attributes if isinstance(entry, Class) else []
        for argument in [*entry.arguments, *attributes]:
            self._take_over(argument, argument.text)
        for method in entry.methods if isinstance(entry, Class) else []:
            for argument in method.arguments:
                self._take_over(argument, argument.text or " ".join(method.text))

    def _take_over(self, argument: Argument, text: str) -> None:
        like = _LIKE.match(text)
        parts = like[1].strip("~.").split(".") if like else []
        name = next((part for part in parts if part in self.names), None)
        if name is None:
            return
        model = self.entry(name)
        methods = model.methods if isinstance(model, Class) else []
        for part in (model, *(each for each in methods if each.name == parts[-1])):
            for each in part.arguments:
                if each.name == argument.name and each.text:
                    argument.text = each.text


@cache
def _source(package: str) -> Any:
    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # of docstrings that state no type
    return griffe.load(package, search_paths=[str(path) for path in SOURCES], resolve_aliases=True)


def _class(of: griffe.Class) -> Class:
    lineage = [of, *(base for base in of.mro() if isinstance(base, griffe.Class))]
    constructor, owner = _constructor(lineage)
    own = _Docstring(of)
    documents = [own]
    if constructor is not None:
        documents.append(_Docstring(constructor))
        if owner is not of and owner is not None:
            documents.append(_Docstring(owner))
    described: dict[str, str] = {}
    for each in documents:
        described |= {name: text for name, (_, text) in each.attributes.items() if text}
    for each in reversed(documents):
        described |= each.arguments
    if constructor is not None:
        arguments = _arguments(constructor, described)
    else:
        arguments = list(_fields(lineage, described))
    text = list(own.text)
    if constructor is not None:
        text += [each for each in _Docstring(constructor).text if each not in text]
    raises = list(dict.fromkeys(row for each in documents for row in each.raises))
    taken = {each.name.lstrip("*") for each in arguments}
    return Class(
        of.name,
        [base.name for base in lineage[1:]],
        text,
        arguments,
        [each for each in _attributes(lineage) if each.name not in taken],
        list(_constants(of)),
        list(_methods(lineage)),
        raises,
    )


def _constructor(lineage: list[griffe.Class]) -> tuple[griffe.Function | None, griffe.Class | None]:
    """The function and its class; none for a dataclass, whose fields are its arguments."""
    for each in lineage:
        if _is_dataclass(each):
            return None, None
        found = each.members.get("__init__")
        if isinstance(found, griffe.Function):
            return found, each
    return None, None


def _value(default: str | None, module: str) -> str | None:
    """A default as its value, where the source names a number or a text of the module."""
    if default is None or not re.fullmatch(r"(?:float\()?[A-Z_]+\)?", default):
        return default
    value = eval(default, dict(vars(import_module(module))))  # of our own source
    return repr(value) if isinstance(value, int | float | str) else "None"


def _is_dataclass(of: griffe.Class) -> bool:
    return any("dataclass" in str(each.value) for each in of.decorators)


def _arguments(of: griffe.Function, described: dict[str, str]) -> list[Argument]:
    arguments = []
    for each in of.parameters:
        if each.name in ("self", "cls"):
            continue
        stars = _VARIADIC.get(each.kind, "") if each.kind else ""
        arguments.append(
            Argument(
                stars + each.name,
                str(each.annotation or ""),
                None
                if stars or each.default is None
                else _value(str(each.default), of.module.path),
                described.get(each.name, ""),
            )
        )
    return arguments


def _fields(lineage: list[griffe.Class], described: dict[str, str]) -> Iterator[Argument]:
    """The fields of a dataclass, those of its bases first."""
    fields: dict[str, Argument] = {}
    for owner in reversed([each for each in lineage if _is_dataclass(each)]):
        documented = _Docstring(owner)
        texts = {name: text for name, (_, text) in documented.attributes.items()}
        texts |= documented.arguments
        for name, member in owner.members.items():
            if not isinstance(member, griffe.Attribute) or not member.annotation:
                continue
            if "instance-attribute" not in member.labels or "property" in member.labels:
                continue  # one of the class
            annotation = str(member.annotation)
            value = None if member.value is None else str(member.value)
            if value and "init=False" in value:
                continue
            value = _value(value, member.module.path)
            text = described.get(name) or texts.get(name) or _plain(member) or _comment(member)
            fields[name] = Argument(name, annotation, value, text)
    yield from fields.values()


def _attributes(lineage: list[griffe.Class]) -> Iterator[Argument]:
    """What the class's docstring lists, and what has a docstring of its own."""
    attributes: dict[str, Argument] = {}
    for owner in lineage:
        for name, (kind, text) in _Docstring(owner).attributes.items():
            member: Any = owner.members.get(name)
            annotation = str(getattr(member, "annotation", None) or kind)
            attributes.setdefault(name, Argument(name, annotation, None, text, owner.name))
        for name, member in owner.members.items():
            hidden = name.startswith("_") or name in attributes or not member.docstring
            if hidden or not isinstance(member, griffe.Attribute) or "property" in member.labels:
                continue
            kind = str(member.annotation or "")
            attributes[name] = Argument(name, kind, None, _plain(member), owner.name)
    yield from attributes.values()


def _constants(of: griffe.Class) -> Iterator[str]:
    for name, member in of.members.items():
        is_own = isinstance(member, griffe.Attribute) and "instance-attribute" not in member.labels
        if is_own and str(getattr(member, "annotation", "")) == of.name:
            yield name


def _methods(lineage: list[griffe.Class]) -> Iterator[Callable]:
    seen = set(_INTERNAL)
    for owner in lineage:
        for name, member in owner.members.items():
            is_method = member.is_function or "property" in member.labels
            hidden = name.startswith(("_", "validate_")) or name in seen
            if is_method and not hidden and member.docstring:
                seen.add(name)
                yield _callable(member, owner.name)


def _callable(of: Any, owner: str = "") -> Callable:
    documented = _Docstring(of)
    is_property = not of.is_function
    return Callable(
        of.name,
        documented.text,
        [] if is_property else _arguments(of, documented.arguments),
        str((of.annotation if is_property else of.returns) or ""),
        documented.returns,
        documented.raises,
        owner,
        is_property,
    )


def _comment(of: Any) -> str:
    """The comment behind a field, or above it."""
    lines = of.lines_collection[of.filepath]
    behind = re.search(r"  # (.+)", lines[of.lineno - 1])
    if behind:
        return behind[1]
    comment: list[str] = []
    for line in reversed(lines[: of.lineno - 1]):
        above = re.match(r" +#:? ?(.*)", line)
        if not above:
            break
        comment.insert(0, above[1])
    return " ".join(comment).strip()


def _plain(of: Any) -> str:
    return of.docstring.value if of.docstring else ""


class _Docstring:
    """A docstring in parts; text and examples as they stand."""

    def __init__(self, of: Any) -> None:
        self.text: list[str] = []
        self.arguments: dict[str, str] = {}
        self.attributes: dict[str, tuple[str, str]] = {}
        self.raises: list[tuple[str, str]] = []
        self.returns = ""
        if of.docstring:
            is_numpy = re.search(r"^\s*-{3,}$", of.docstring.value, re.M)
            for section in of.docstring.parse("numpy" if is_numpy else "google"):
                self._add(section)

    def _add(self, section: Any) -> None:
        kind = section.kind.value
        if kind == "text":
            self.text.append(section.value)
        elif kind == "examples":
            self.text += [text for _, text in section.value]
        elif kind in ("parameters", "other parameters"):
            for each in section.value:
                for name in each.name.split(","):
                    self.arguments[name.strip().lstrip("*")] = each.description
        elif kind == "attributes":
            for each in section.value:
                for name in each.name.split(","):
                    self.attributes[name.strip()] = (str(each.annotation or ""), each.description)
        elif kind == "raises":
            self.raises += [(str(each.annotation), each.description) for each in section.value]
        elif kind in ("returns", "yields"):
            self.returns = " ".join(each.description for each in section.value)
        elif kind == "admonition":
            self.text.append(section.value.contents)  # notes and sources
        else:
            raise ValueError(f"{section.kind} in a docstring: say how the reference shows it")
