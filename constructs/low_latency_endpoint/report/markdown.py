"""A document as Markdown that GitHub takes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from .charts import Chart
from .document import (
    Cell,
    Code,
    Document,
    Entry,
    FindingPart,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
    findings_in,
)
from .visible import visible, visible_lines

LONGEST_VALUE = 200
"""Characters of one value in a comment."""
MOST_CHARACTERS = 65_536
"""Of a comment on GitHub; more is refused."""
_LONGEST_HEAD = 2000  # of each text of the first lines; as Markdown six times as many
_BEFORE = 100  # of them for a line by which a job finds its comment again, as in action.yml
_END = 200  # and for what is said of the rest
_MARKS = {
    "good": ":white_check_mark: ",
    "careful": ":large_orange_diamond: ",
    "bad": ":x: ",
    "other": ":grey_question: ",
}
_LINKED = re.compile(
    r"[@#]|\bGH-|www(?=\.)|:(?=//)|:(?=[+-]1:|[\w+-]*[a-z][\w+-]*:)", re.IGNORECASE
)


def as_markdown(document: Document) -> str:
    """A document for a comment, in which foreign text does nothing; the verdict is never cut away."""
    findings = findings_in(document.parts)
    said = (document.subject, document.under, document.verdict)
    subject, under, verdict = (_shortened(each, _LONGEST_HEAD) for each in said)
    beside = f": {escaped(under)}" if under else ""
    lines = [f"**{escaped(subject)}**{beside}"] if subject else []
    if verdict:
        lines += ["", f"**{_marked(verdict, document.tone)}**"]
    for part in document.parts:
        for block in filter(None, _of_part(part, findings)):
            goes_on = bool(lines) and block[:2] in ("- ", "| ") and "\n" not in block
            lines += [
                *([""] if lines and not (goes_on and lines[-1][:2] == block[:2]) else []),
                block,
            ]
    return "\n".join([*_limited(lines), ""])


def _limited(lines: list[str]) -> list[str]:
    """The lines, or as many as a comment takes and a last one that says how many are missing."""
    most = MOST_CHARACTERS - _BEFORE
    sizes = [*accumulate(len(line) + 1 for line in lines)]
    if not sizes or sizes[-1] <= most:
        return lines
    kept = lines[: sum(size <= most - _END for size in sizes)]
    opened = kept.count("</details>") < sum(each.startswith("<details") for each in kept)
    cut = (
        f"**Cut to what a comment takes: {len(lines) - len(kept)} of {len(lines)} lines are "
        "missing.** Without --markdown the command prints everything."
    )
    return [*kept, *["", "</details>"] * opened, "", cut]


def _of_part(part: Part, findings: Sequence[FindingPart]) -> Iterator[str]:
    if isinstance(part, str):
        yield escaped(part)
    elif isinstance(part, Sentence):
        yield _marked(part.text, part.tone)
    elif isinstance(part, Listed):
        yield from map(_row, part.rows)
    elif isinstance(part, Entry):
        text = "<br>".join(map(escaped, (part.text, *part.lines)))
        yield f"- {_marked(part.word, part.tone)} {text}"
    elif isinstance(part, Code):
        for text, comment in part.lines:
            if "\n" in text:
                yield code_block(text)
                continue
            yield f"- {code(text)}{f' {escaped(comment)}' if comment else ''}"
    elif isinstance(part, Table):
        if part.title:
            yield f"**{escaped(part.title)}**"
        yield from _table(part)
    elif isinstance(part, Chart):
        for line, values in part.sketched:
            yield f"- {escaped(line.sketch)}: {escaped(values)}"
    elif isinstance(part, FindingPart):
        number = next(n for n, each in enumerate(findings, 1) if each is part)
        yield f"**{number}. {escaped(part.title)}**"
        yield from map(_row, (*part.rows, *part.details))
        yield f"- source: <{visible(part.source)}>" if part.source else ""
    elif isinstance(part, Section) and not part.detail:
        if part.title:
            title = escaped(part.title)
            yield f"<details><summary>{title}</summary>" if part.folded else f"**{title}**"
        for each in part.parts:
            yield from _of_part(each, findings)
        yield "</details>" * part.folded


def _row(row: Row) -> str:
    label = f"{_marked(row.label, row.tone)}: " if row.label else ""
    said = row.tag[0]
    if row.code:
        return f"- {label}{code(row.text)}" + (f" {escaped(said)}" if said else "")
    text = f"<{visible(row.text)}>" if row.link else escaped(row.text.strip() + said)
    return f"- {label}{text}"


def _marked(text: str, tone: str) -> str:
    """Escaped text with a mark for its tone."""
    return _MARKS.get(tone, "") + escaped(text)


def code(text: str) -> str:
    """A value as code: GitHub reads no markup, no name and no number of an issue in it."""
    text = _shortened(text, LONGEST_VALUE)
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


def _shortened(text: str, most: int) -> str:
    text = _visible(text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _visible(text: str) -> str:
    """One line, in which characters that change the order of others, or hide, are spelt out."""
    return visible(" ".join(text.split()))


def code_block(text: str) -> str:
    """Lines as they are; a fence that none of them can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible_lines(text).rstrip()}\n{fence}"


def _table(part: Table) -> Iterator[str]:
    """A table, with everything in it escaped."""
    sides = map(part.side, range(len(part.heads)))
    yield (
        f"| {' | '.join(map(_cell, part.heads))} |\n"
        f"|{'|'.join('---:' if side == 'r' else '---' for side in sides)}|"
    )
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in part.rows)


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, Cell) and cell.link:
        return f"[{escaped(cell.text)}]({visible(cell.link)})"
    text = "<br>".join(_defused(_visible(each)) for each in str(cell).splitlines())
    if isinstance(cell, Cell) and text:
        return f"**{text}**" if cell.tone == "strong" else _MARKS.get(cell.tone, "") + text
    return text
