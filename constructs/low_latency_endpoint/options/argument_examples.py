"""What to pass for an argument, as code: of errors that say how to mend a call."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any

from .annotations import module_of
from .compound_kinds import ClassKind, ListKind, class_name, kind_of_argument
from .kind import ChoiceKind, DurationKind, Kind, PathKind
from .option import options_of

_PACKAGE = __name__.partition(".")[0]
_OF_SEVERAL_CLASSES: dict[str, tuple[str, ...]] = {  # none of which has the interface's name
    "IAlarmAction": ("aws_cloudwatch_actions.SnsAction(topic)", "AlarmTopic(...).action"),
    "IConnectable": ("aws_ec2.SecurityGroup(...)", "aws_lambda.Function(...)"),
    "IGrantable": ("aws_iam.Role(...)", "aws_lambda.Function(...)"),
}
_WITHOUT_CONSTRUCTOR = {
    "Platform": ("aws_ecr_assets.Platform.LINUX_AMD64",),
    "Schedule": ("aws_applicationautoscaling.Schedule.cron(...)",),
    "Size": ("aws_cdk.Size.gibibytes(16)",),
}
_STATED = _OF_SEVERAL_CLASSES | _WITHOUT_CONSTRUCTOR


def examples_of(kind: Kind, given: Any) -> Sequence[str]:
    """Values of the kind, as the docstring of its class or the given text suggests."""
    if isinstance(kind, ListKind):
        items = [example for example in examples_of(kind.item, given) if example.endswith(")")]
        return [f"[{item}]" for item in items] or [kind.words]
    if isinstance(kind, DurationKind):
        return ["Duration.seconds(60)"]
    if isinstance(kind, PathKind):
        return ["Path(...)"]
    if not isinstance(kind, ClassKind) or kind.of is bytes:
        return [kind.words]
    return [] if kind.of is NoneType else _examples_of_class(kind, given)


def first_example(kind: Kind, given: Any) -> str:
    """An example of the first alternative that has one, which None has not."""
    return next(example for part in kind.alternatives for example in examples_of(part, given))


def _examples_of_class(kind: ClassKind, given: Any) -> Sequence[str]:
    """Objects of the class: ready-made ones, or calls that make one."""
    of: Any = kind.of
    name = of.__name__
    stated = _STATED.get(name) or tuple(ready_made(kind).values())
    if stated:
        return stated
    if plain := getattr(of, "plain_value", ""):
        return [f"{name}({plain}={_example_of(of, plain, given)})"]
    call = rf"\b{name}(?:\.(?!none\b)\w+)?\((?:[^()\n]|\([^()\n]*\))*\)"
    if is_dataclass(of) and (shown := re.search(call, of.__doc__ or "")):
        return [shown[0]]
    if is_ours(of) and (calls := _calls(of, given)):
        return calls
    return _factories(of, given)


def _factories(of: Any, given: Any) -> Sequence[str]:
    """Calls of a class's methods ``from_...`` that take such a text, else of its constructor."""
    home = sys.modules[_PACKAGE if is_ours(of) else of.__module__]
    of = getattr(home, of.__name__.removeprefix("I"), of)
    name = class_name(of)
    if isinstance(given, str) and not is_ours(of):
        by = "arn" if given.startswith("arn:") else "name|id|lookup"
        methods = [method for method in dir(of) if re.fullmatch(rf"from_(\w+_)?({by})", method)]
        if methods:
            return [f"{name}.{method}(...)" for method in methods]
    return [f"{name}(...)"]


def _example_of(group: Any, option: str, given: Any) -> str:
    """A value of a group's option: its own example, or one of its kind."""
    for declared in options_of(group):
        if declared.name == option and declared.example:
            return json.dumps(declared.example)  # text in double quotes
    return first_example(kind_of_field(group, option), given)


def _calls(of: Any, given: Any) -> Sequence[str]:
    """How a class of ours is made: by what its constructor needs, else by its factories."""
    name = of.__name__
    if is_dataclass(of):
        needed = [f"{field}=..." for field in needed_fields(of)]
        return [f"{name}({', '.join(needed)})"] if needed else []
    if not inspect.isabstract(of):
        return []
    of_text: list[str] = []
    factories: list[str] = []
    for method, member in vars(of).items():
        if isinstance(member, (classmethod, staticmethod)) and not method.startswith("_"):
            factories.append(f"{name}.{method}(...)")
            annotations = member.__func__.__annotations__.values()
            if [text for text in annotations if text != name] == ["str"]:
                of_text.append(f'{name}.{method}("...")')
    return of_text if isinstance(given, str) and of_text else factories


def ready_made(kind: Kind) -> dict[str, str]:
    """Values that have names, in capitals, and how each is written."""
    if isinstance(kind, ChoiceKind):
        return {str(choice).upper(): repr(choice) for choice in kind.choices}
    if not isinstance(kind, ClassKind):
        return {}
    members = vars(kind.of)
    names = [name for name, member in members.items() if type(member) is kind.of]
    return {name: f"{class_name(kind.of)}.{name}" for name in names}


def needed_fields(of: Any) -> list[str]:
    """The fields of a dataclass that have no default."""
    return [
        field.name
        for field in fields(of)
        if field.init and field.default is MISSING and field.default_factory is MISSING
    ]


def kind_of_field(of: Any, name: str) -> Kind:
    """The kind of a field of a dataclass."""
    [annotation] = [field.type for field in fields(of) if field.name == name]
    return kind_of_argument(annotation, module_of(of, name))


def is_options(kind: Kind) -> bool:
    """Whether a kind is a class of options: a dataclass."""
    return isinstance(kind, ClassKind) and is_dataclass(kind.of)


def is_ours(of: type) -> bool:
    """Whether a class is the library's own."""
    return of.__module__.startswith(_PACKAGE)
