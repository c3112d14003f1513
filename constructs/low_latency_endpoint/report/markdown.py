"""What people read in the terminal as Markdown that GitHub takes."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .charts import Chart
from .document import Code, Document, Finding, Listed, Part, Section, Sentence, findings_in
from .tables import CODE, Table

LONGEST_VALUE = 200
"""Characters of one value in a comment."""
_LINKED = re.compile(
    r"[@#]|\bGH-|www(?=\.)|:(?=//)|:(?=[+-]1:|[\w+-]*[a-z][\w+-]*:)", re.IGNORECASE
)


def as_markdown(parts: Iterable[Any]) -> str:
    """Tables, lists and paragraphs of what ``rich`` would draw.

    Examples
    --------
    >>> print(as_markdown(["Two <b>instances</b>."]))
    Two &lt;b&gt;instances&lt;/b&gt;.
    <BLANKLINE>
    """
    blocks = [block for part in parts for block in _blocks(part) if block]
    lines: list[str] = []
    for number, block in enumerate(blocks):
        listed = block.startswith("- ") and number and blocks[number - 1].startswith("- ")
        lines += [*([""] * bool(lines and not listed)), block]
    return "\n".join([*lines, ""])


def document_as_markdown(document: Document) -> str:
    """A document for a comment, in which foreign text does nothing."""
    findings = findings_in(document.parts)
    under = f": {escaped(document.under)}" if document.under else ""
    lines = [f"**{escaped(document.subject)}**{under}"]
    if document.verdict:
        lines += ["", f"**{escaped(document.verdict)}**"]
    for part in document.parts:
        for block in _of_part(part, findings):
            lines += [
                *([] if lines[-1].startswith("- ") and block.startswith("- ") else [""]),
                block,
            ]
    return "\n".join([*lines, ""])


def _of_part(part: Part, findings: Sequence[Finding]) -> Iterator[str]:
    if isinstance(part, str):
        yield escaped(part)
    elif isinstance(part, Sentence):
        yield escaped(part.text)
    elif isinstance(part, Listed):
        for item in part.items:
            word, text = ("", item) if isinstance(item, str) else (f"{item[0]}: ", item[2])
            yield f"- {escaped(word + text)}"
    elif isinstance(part, Code):
        for text, comment in part.lines:
            if "\n" in text:
                yield code_block(text)
                continue
            yield f"- {code(text)}{f' {escaped(comment)}' if comment else ''}"
    elif isinstance(part, Table):
        if part.title:
            yield f"**{escaped(part.title)}**"
        yield table(part.heads, [[str(cell) for cell in row] for row in part.rows], part.align)
    elif isinstance(part, Chart):
        for line, values in part.sketched:
            yield f"- {escaped(line.sketch)}: {escaped(values)}"
    elif isinstance(part, Finding):
        yield f"**{findings.index(part) + 1}. {escaped(part.title)}**"
        for row in (*part.rows, *part.details):
            said = row.tag[0]
            if row.code:
                text = code(row.text) + (f" {escaped(said)}" if said else "")
            else:
                text = escaped(row.text + said)
            yield f"- {escaped(row.label)}: {text}"
        yield f"- source: <{part.source}>" if part.source else ""
    elif isinstance(part, Section) and not part.detail:
        if part.title:
            yield f"**{escaped(part.title)}**"
        for each in part.parts:
            yield from _of_part(each, findings)


def code(text: str) -> str:
    """A value as code: GitHub reads no markup, no name and no number of an issue in it."""
    text = _visible(text)
    if len(text) > LONGEST_VALUE:
        text = f"{text[: LONGEST_VALUE - 3]}..."
    if not text or "`" in text or text.endswith("\\"):
        return f"<code>{_defused(text)}</code>"
    return "`" + text.replace("|", "\\|") + "`"


def escaped(text: str) -> str:
    """Text in which GitHub finds no markup but code, nobody's name, no issue's and no address.

    GitHub looks for names, numbers and emoji in what Markdown has become, where an entity is its
    character again: an invisible space after it is what ends them.

    Examples
    --------
    >>> ascii(escaped("@nobody #1 *a*"))
    "'&#64;\\\\u200bnobody &#35;\\\\u200b1 &#42;a&#42;'"
    """
    parts = re.split("`([^`]+)`", _visible(text))
    return "".join(
        code(part) if number % 2 else _defused(part) for number, part in enumerate(parts)
    )


def _defused(text: str) -> str:
    text = _LINKED.sub(lambda found: f"{found[0]}\u200b", text)
    text = html.escape(text, quote=False)
    return "".join(f"&#{ord(each)};" if each in "|*_`@#[]\\~$" else each for each in text)


def _inline(text: Any) -> str:
    """A line of ``rich`` in which code and addresses of ours are marked; all else is defused."""
    plain, at, found = _plain(text), 0, []
    for span in sorted(getattr(text, "spans", ()), key=lambda span: span.start):
        piece, style = plain[span.start : span.end], str(span.style)
        if piece and (style == CODE or "link " in style):
            found += [plain[at : span.start], code(piece) if style == CODE else f"<{piece}>"]
            at = span.end
    found.append(plain[at:])
    return "".join(
        each
        if number % 2
        else f"{each[: len(each) - len(each.lstrip())]}{escaped(each)}"
        f"{each[len(each.rstrip()) :] if each.strip() else ''}"
        for number, each in enumerate(found)
    ).strip()


def _visible(text: str) -> str:
    """One line, in which characters that change the order of others, or hide, are spelt out."""
    return "".join(
        f"\\u{ord(each):04x}" if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co") else each
        for each in " ".join(text.split())
    )


def code_block(text: str) -> str:
    """Lines as they are; a fence that none of them can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l") -> str:
    """A table, with everything in it escaped."""
    sides = [align[min(number, len(align) - 1)] for number in range(len(heads))]
    lines = [
        f"| {' | '.join(map(_cell, heads))} |",
        f"|{'|'.join('---:' if side == 'r' else '---' for side in sides)}|",
        *(f"| {' | '.join(map(_cell, row))} |" for row in rows),
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return "<br>".join(map(escaped, str(text).splitlines()))


def _blocks(part: Any) -> Iterator[str]:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    if isinstance(part, str | Text):
        yield from _paragraphs(part)
    elif isinstance(part, Table):
        if part.title:
            yield f"**{escaped(part.title)}**"
        yield table(part.heads, [[str(cell) for cell in row] for row in part.rows], part.align)
    elif isinstance(part, Group):
        for each in part.renderables:
            yield from _blocks(each)
    elif isinstance(part, Padding):
        yield from _blocks(part.renderable)
    elif isinstance(part, RichTable) and not part.show_header:
        for row in zip(*(column.cells for column in part.columns), strict=True):
            yield f"- {': '.join(filter(None, map(_inline, row)))}"
    elif hasattr(part, "markdown_parts"):
        for each in part.markdown_parts():
            yield from _blocks(each)
    else:
        yield code_block(_drawn(part))


def _paragraphs(text: Any) -> Iterator[str]:
    bold = "bold" in str(getattr(text, "style", ""))
    lines = text.splitlines() if isinstance(text, str) else text.split("\n")
    for line in filter(lambda line: _plain(line).strip(), lines):
        if _plain(line).startswith("- "):
            yield f"- {_inline(line[2:])}"
        else:
            yield f"**{_inline(line)}**" if bold else _inline(line)


def _plain(part: Any) -> str:
    return str(getattr(part, "plain", part))


def _drawn(part: Any) -> str:
    from rich.console import Console

    console = Console(width=100, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
