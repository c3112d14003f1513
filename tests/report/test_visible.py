"""What others wrote acts nowhere: not in an error, not in a document, in no form of output."""

from __future__ import annotations

import io
import pickle
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from low_latency_endpoint.cli.errors import all_codes
from low_latency_endpoint.cli.output import print_document, print_json
from low_latency_endpoint.errors import ConfigurationError, SettingsError, did_you_mean, rules
from low_latency_endpoint.errors.findings import located
from low_latency_endpoint.report import document as module
from low_latency_endpoint.report.document import Document, Section
from low_latency_endpoint.report.json_text import json_text
from low_latency_endpoint.report.markdown import as_markdown
from low_latency_endpoint.report.pages import page
from low_latency_endpoint.report.terminal import drawn
from low_latency_endpoint.report.visible import visible, visible_lines

ROOT = Path(__file__).parents[2]
KINDS = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
COMMANDS = ["::set-output name=verdict::passed", "::add-mask::e", "##[add-mask]e", "##vso[task.x]"]
#: Letters, marks and symbols of which nothing is seen: the first and last of each of Unicode's ranges
#: (DerivedCoreProperties.txt, Default_Ignorable_Code_Point), and two that are drawn blank.
UNSEEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180d\u180f\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
    "\u2800\U0001d159"
)
#: One of each kind that is known for what it does, and commands of runners at each place of a line.
HOSTILE = (
    "\x1b[31mred\x07\x08\x00\x7f\x9b31m\r\x85 \u202eevil\u2066\u2069\u200e \u2028x\u2029y \ud800 \ue000"
    "\U000e0041\ufeff\u00ad" + UNSEEN + "".join(f"\n{command}\na {command}" for command in COMMANDS)
)


FIX = HOSTILE.replace("\n", " ")  # of ours, which may have several lines


def acting(text: str, but: str = "\n") -> list[str]:
    """What would act in a text that is printed: characters, and commands of its lines."""
    found = [
        f"U+{ord(character):04X}"
        for character in text
        if character not in but
        and (unicodedata.category(character) in KINDS or character in UNSEEN)
    ]
    for line in re.split(r"[\n\r\v\f\x85\u2028\u2029]", text):
        if re.match(r"::[\w-]+( .*)?::", line.strip()) or re.search(r"##\w*\[", line):
            found.append(line)
    return found


def test_the_oracle_sees_what_it_is_for() -> None:
    assert len(acting(HOSTILE)) > 20


@given(st.text(st.characters(categories=[*KINDS, "L", "M", "P", "S"]) | st.sampled_from(UNSEEN)))
def test_a_text_is_one_line_in_which_nothing_acts(text: str) -> None:
    assert acting(visible(text), but="") == []
    assert acting(visible_lines(text), but="\n\t") == []
    assert visible(visible(text)) == visible(text)  # once is enough, and twice no harm


@given(st.sampled_from(COMMANDS), st.text(), st.integers(1, 40))
def test_no_width_of_a_terminal_makes_a_command(command: str, before: str, width: int) -> None:
    text = visible(before + command)
    for begin in range(0, len(text), width):
        assert acting(text[begin:]) == []


def test_a_name_that_was_perhaps_meant_is_one_line() -> None:
    assert did_you_mean("endpont.yaml", ["endpoint.yaml\n"]) == "Did you mean endpoint.yaml\\n?"


def test_what_is_not_seen_is_spelt_out() -> None:
    """The variation of an emoji too: two names that look alike are told apart."""
    assert visible("a\ufe0f\u3164\U000e0100") == "a\\ufe0f\\u3164\\udb40\\udd00"


def test_what_people_write_stays() -> None:
    for text in ("AWS::SageMaker::Endpoint", "größer als 5 µs 东京 é 🙂", "a::b", "## [x]", "::1"):
        assert visible(text) == text


all_codes()  # registers the rules of all modules


RULES = {rule.code: rule for rule in rules()}


@pytest.mark.parametrize("code", RULES)
def test_no_error_passes_anything_on(code: str) -> None:
    rule = RULES[code]
    error = rule.error(got=HOSTILE, allowed=HOSTILE, what=HOSTILE, where=HOSTILE, fix=FIX)
    as_written = rule.error_as_written(got=HOSTILE, allowed=HOSTILE, where=HOSTILE)
    for one in (error, as_written, located(error, HOSTILE)):
        assert acting(str(one)) == acting(*one.args) == []
        assert len(str(one).splitlines()) <= 6
        assert not acting("".join(map(str, vars(one).values())), but="\n")
    told = "\n".join(SettingsError(HOSTILE, [(1, error)]).parts)
    assert acting(told) == acting(str(SettingsError(HOSTILE, [(1, error)]))) == []


def filled(kind: Any) -> Any:
    """A value of a kind of the document's module, each of whose texts is hostile."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is str or kind is Any:
        return HOSTILE
    if origin in (Union, UnionType):
        return filled(inner[0])
    if origin is Literal:
        return inner[-1]
    if origin is tuple:
        return tuple(filled(each) for each in inner if each is not ...)
    if origin is not None and issubclass(origin, Mapping):
        return {}
    if origin is not None and issubclass(origin, Sequence):
        return [filled(inner[0])]
    if not is_dataclass(kind):
        return {bool: True, int: 0, float: 1.0}[kind]
    hints = get_type_hints(kind, vars(module))
    given = {
        field.name: filled(hints[field.name])
        for field in fields(kind)
        if field.init and (field.default is MISSING or "str" in str(field.type))
    }
    return kind(**given)


PARTS = [kind for kind in get_args(module.Part) if kind not in (Section, module.Chart)]


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("width", [40, 120, 1000])
def test_no_document_passes_anything_on(kind: Any, width: int) -> None:
    part = filled(kind)
    sections = [Section(HOSTILE, [part]), Section(HOSTILE, [part], folded=True)]
    document = Document(HOSTILE, [part, *sections], HOSTILE, HOSTILE, "bad")
    console = Console(file=(out := io.StringIO()), width=width, color_system=None)
    for shown in drawn(document):
        no_wrap, overflow = getattr(shown, "no_wrap", None), getattr(shown, "overflow", None)
        console.print(shown, no_wrap=no_wrap, overflow=overflow, crop=False)
    assert acting(out.getvalue()) == []
    assert acting(as_markdown(document), but="\n\u200b") == []
    own = page(Document("", []))
    assert set(acting(page(document), but="\n\t")) <= set(acting(own, but="\n\t"))


def test_no_json_passes_anything_on() -> None:
    import json

    text = json_text({"name": HOSTILE, HOSTILE: [HOSTILE]})
    assert acting(text) == []
    read = json.loads(text)
    assert read["name"] == HOSTILE
    assert read[HOSTILE] == [HOSTILE]


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_a_document_is_printed_as_it_was_drawn(
    kind: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text of others is visible by then: spelt out again, the signs of our own Markdown would be."""
    document = Document("arn:aws:iam::1:role/a", [filled(kind)], HOSTILE, HOSTILE, "bad")
    print_document(document, markdown=True)
    printed = capsys.readouterr().out
    assert printed == as_markdown(document)
    assert "arn:\u200baws:\u200biam" in printed


def test_json_is_printed_as_it_was_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: [HOSTILE]})
    assert capsys.readouterr().out == json_text({HOSTILE: [HOSTILE]})


def test_the_commands_draw_a_document_in_one_function() -> None:
    """None of them has Markdown of its own, which `say` would spell out."""
    folder = ROOT / "constructs/low_latency_endpoint/cli"
    drawing = [
        path.name for path in folder.glob("*.py") if "as_markdown" in path.read_text("utf-8")
    ]
    assert drawing == ["output.py"]


def test_the_commands_print_by_one_function() -> None:
    """`say`, or a document: so that none of them has to think of it."""
    allowed = {"output.py": 1, "process.py": 1, "live_display.py": 1}
    folder = ROOT / "constructs/low_latency_endpoint/cli"
    printing = {
        path.name: count
        for path in folder.glob("*.py")
        if (
            count := len(
                re.findall(
                    r"\b(?:typer|click)\.s?echo\(|(?<![.\w])print\(", path.read_text("utf-8")
                )
            )
        )
    }
    assert printing == allowed


def test_an_error_reaches_another_process_whole() -> None:
    one = ConfigurationError(code="LLE101", what="a", got="b", allowed="c", fix="d", where="e")
    for error in (one, SettingsError("endpoint.yaml", [(3, one)])):
        same = pickle.loads(pickle.dumps(error))
        assert type(same) is type(error)
        assert str(same) == str(error)
