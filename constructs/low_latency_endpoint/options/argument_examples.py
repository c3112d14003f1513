"""What an argument may be, in words and as code: of errors that say what to pass."""

from __future__ import annotations

import builtins
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from .option import alternatives, evaluated, options_of

_PACKAGE = __name__.partition(".")[0]
WORDS = {
    str: "text",
    bytes: "bytes",
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    NoneType: "None",
}


def items_of(kind: Any) -> tuple[Any, ...]:
    """What a list holds; nothing for what is no list."""
    origin = get_origin(kind)
    is_list = isinstance(origin, type) and issubclass(origin, Sequence)
    return get_args(kind) if is_list else ()


def ready_made(kind: Any) -> dict[str, str]:
    """Values that have names, in capitals, and how each is written."""
    if get_origin(kind) is Literal:
        return {str(arg).upper(): repr(arg) for arg in get_args(kind)}
    members = vars(kind) if isinstance(kind, type) else {}
    return {
        name: f"{name_of(kind)}.{name}" for name, member in members.items() if type(member) is kind
    }


_INTERFACES: dict[str, tuple[str, ...]] = {  # those of several classes, none of which has the name
    "IAlarmAction": ("aws_cloudwatch_actions.SnsAction(topic)", "AlarmTopic(...).action"),
    "IConnectable": ("aws_ec2.SecurityGroup(...)", "aws_lambda.Function(...)"),
    "IGrantable": ("aws_iam.Role(...)", "aws_lambda.Function(...)"),
}
_INTERFACES |= {  # what has no constructor
    "Duration": ("Duration.seconds(60)",),
    "Platform": ("aws_ecr_assets.Platform.LINUX_AMD64",),
    "Schedule": ("aws_applicationautoscaling.Schedule.cron(...)",),
    "Size": ("aws_cdk.Size.gibibytes(16)",),
}


def examples_of(kind: Any, given: Any) -> Sequence[str]:
    """Values of the kind, as the docstring of its class or the given text suggests."""
    if items := items_of(kind):
        written = [example for example in examples_of(items[0], given) if example.endswith(")")]
        return [f"[{each}]" for each in written] or [in_words(kind)]
    if not isinstance(kind, type) or kind in WORDS:
        return [in_words(kind)] if kind is not NoneType else []
    name = kind.__name__
    if name in _INTERFACES or (made := ready_made(kind)):
        return _INTERFACES.get(name) or list(made.values())
    if plain := getattr(kind, "plain_value", ""):
        return [f"{name}({plain}={_example_of(kind, plain, given)})"]
    call = rf"\b{name}(?:\.(?!none\b)\w+)?\((?:[^()\n]|\([^()\n]*\))*\)"
    if is_dataclass(kind) and (shown := re.search(call, kind.__doc__ or "")):
        return [shown[0]]
    if is_ours(kind) and (calls := _calls(kind, given)):
        return calls
    home = sys.modules[_PACKAGE if is_ours(kind) else kind.__module__]
    kind = getattr(home, name.removeprefix("I"), kind)
    by = "arn" if str(given).startswith("arn:") else "name|id|lookup"
    makers = [each for each in dir(kind) if re.fullmatch(rf"from_(\w+_)?({by})", each)]
    made_by = makers if isinstance(given, str) and not is_ours(kind) else []
    return [f"{name_of(kind)}.{each}(...)" for each in made_by] or [f"{name_of(kind)}(...)"]


def _example_of(group: Any, option: str, given: Any) -> str:
    """A value of a group's option: its own example, or one of its kind."""
    annotation = next(field.type for field in fields(group) if field.name == option)
    for declared in options_of(group):
        if declared.name == option and declared.option is not None and declared.option.example:
            return json.dumps(declared.option.example)  # as Python has it, in double quotes
    kind = kind_of_annotation(annotation, module_of(group, option))
    return examples_of(alternatives(kind)[0], given)[0]


def _calls(kind: type, given: Any) -> Sequence[str]:
    """How a class of ours is made: by what its constructor needs, else by its factories."""
    if is_dataclass(kind):
        needed = [
            f"{field.name}=..."
            for field in fields(kind)
            if field.init and field.default is MISSING and field.default_factory is MISSING
        ]
        return [f"{kind.__name__}({', '.join(needed)})"] if needed else []
    if not inspect.isabstract(kind):
        return []
    factories = {
        name: member.__func__.__annotations__
        for name, member in vars(kind).items()
        if isinstance(member, (classmethod, staticmethod)) and not name.startswith("_")
    }
    of_text = [
        name
        for name, annotations in factories.items()
        if [each for each in annotations.values() if each != kind.__name__] == ["str"]
    ]
    if isinstance(given, str) and of_text:
        return [f'{kind.__name__}.{name}("...")' for name in of_text]
    return [f"{kind.__name__}.{name}(...)" for name in factories]


def is_ours(kind: type) -> bool:
    return kind.__module__.startswith(_PACKAGE)


def name_of(kind: type) -> str:
    """With its module where that is one of CDK's."""
    module = kind.__module__.rpartition(".")[2]
    return f"{module}.{kind.__name__}" if module.startswith("aws_") else kind.__name__


def in_words(kind: Any) -> str:
    if kind in WORDS:
        return WORDS[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(in_words, parts)))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin is Callable:
        return "a function"
    if origin is not None and issubclass(origin, Mapping):
        return f"a mapping of {in_words(parts[0])} to {in_words(parts[1])}"
    if origin is not None:
        return f"a {'tuple' if origin is tuple else 'list'} of {in_words(parts[0])}, even for one"
    name = name_of(kind)
    return f"{name}(...)" if is_dataclass(kind) or is_duration_kind(kind) else name


def is_duration_kind(kind: Any) -> bool:
    return getattr(kind, "__jsii_type__", "") == "aws-cdk-lib.Duration"


def kind_of_annotation(annotation: Any, module: str) -> Any:
    if not isinstance(annotation, str):
        return annotation
    kind = evaluated(annotation, _AnnotationNames(vars(sys.modules[module])))
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


class _AnnotationNames(dict[str, Any]):
    """A module's names, and those that it imports for type checkers alone, loaded when needed."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        package = import_module(_PACKAGE)
        if name in package.__all__:
            return getattr(package, name)
        if name.endswith("Settings"):
            return getattr(import_module(f"{package.__name__}.settings"), name)
        if name == "Construct":
            return import_module("constructs").Construct
        return import_module(f"aws_cdk.aws_{name.removesuffix('_')}")


def module_of(cls: type, name: str) -> str:
    """Where the annotation was written: a dataclass has its inherited fields' from elsewhere."""
    if is_dataclass(cls):
        for each in cls.__mro__:
            if name in inspect.get_annotations(each):
                return each.__module__
    return cls.__module__
