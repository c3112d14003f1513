"""Lengths of prompts and answers that were recorded: of traces, of usage, of data capture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import rule
from .token_streams import TokenReader

TOKENS_FORM = rule(
    "LLT165",
    "the tokens of prompts and answers cannot be read",
    fix="Give input=512,output=128,shared_prefix=0.5, a length that varies as input=300:1800 "
    "(median and p95), or a file with a column of each; turns=4,conversations=50 beside them.",
)
#: Columns of recorded lengths: our own, and of the traces of Azure, Vidur, BurstGPT and Mooncake.
_COLUMNS = (
    ("input", "output"),
    ("ContextTokens", "GeneratedTokens"),
    ("num_prefill_tokens", "num_decode_tokens"),
    ("Request tokens", "Response tokens"),
    ("input_length", "output_length"),
)


def recorded_lengths(path: Path) -> tuple[tuple[tuple[int, int], ...], int]:
    """Tokens of prompts and answers that were recorded, and how many had no prompt or no answer."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise TOKENS_FORM.error(got=f"{path}: {error}", allowed="a file that can be read") from None
    rows: Iterable[Any] = csv.DictReader(io.StringIO(text))
    if text.lstrip().startswith("{"):
        rows = _json_lines(text, path)
    try:
        told = [pair for row in rows if (pair := _pair(row)) is not None]
    except csv.Error as error:
        raise TOKENS_FORM.error(got=f"{path}: {error}", allowed="CSV or lines of JSON") from None
    found = tuple(pair for pair in told if min(pair) > 0)
    if not found:
        columns = " or ".join(" and ".join(names) for names in _COLUMNS)
        raise TOKENS_FORM.error(
            got=f"no line in {path} that tells both lengths",
            allowed=f"columns {columns}, usage, or data capture of answers with usage",
        )
    return found, len(told) - len(found)


def _json_lines(text: str, path: Path) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise TOKENS_FORM.error(
                    got=f"line {number} of {path}: {error}", allowed="a JSON object in each line"
                ) from None
            if isinstance(row, dict) and "input_lens" in row:  # vllm bench serve --save-detailed
                pairs = zip(row["input_lens"], row.get("output_lens", ()), strict=False)
                yield from ({"input": prompt, "output": answer} for prompt, answer in pairs)
            elif isinstance(row, dict):
                yield row


def _pair(row: Mapping[str, Any]) -> tuple[int, int] | None:
    if "captureData" in row:
        told = row["captureData"].get("endpointOutput") or {}
        reader = TokenReader()
        reader.feed(str(told.get("data") or "").encode(), 0.0)
        reader.end()
        times = reader.times()
        found: tuple[Any, Any] = (times.prompt_tokens or None, times.output_tokens)
    elif "usage" in row:
        usage = row["usage"] if isinstance(row["usage"], dict) else {}
        found = usage.get("prompt_tokens"), usage.get("completion_tokens")
    else:
        names = next((names for names in _COLUMNS if set(names) <= set(row)), None)
        found = (None, None) if names is None else (row[names[0]], row[names[1]])
    try:
        prompt, answer = (int(float(value)) for value in found)
    except (TypeError, ValueError, OverflowError):
        return None
    return prompt, answer
