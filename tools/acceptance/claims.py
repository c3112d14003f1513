"""The claims about AWS that a run tries, as claims.yaml states them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from . import judgements
from .judgements import Saw


@dataclass(frozen=True)
class Claim:
    """One row of claims.yaml, which says what each field holds."""

    id: str
    statement: str
    step: str
    source: str
    otherwise: str = ""
    agrees: str = ""
    seen: str = ""

    def holds(self, saw: Saw) -> bool | None:
        """Judge the claim by what its step saw; None where that cannot tell.

        A step that failed midway may have seen less than the claim needs: that cannot tell either.
        """
        try:
            answer: bool | None = getattr(judgements, self.id.replace("-", "_"))(saw)
        except (KeyError, IndexError, TypeError):
            return None
        return answer


def _read() -> tuple[Claim, ...]:
    text = Path(__file__).with_name("claims.yaml").read_text("utf-8")
    return tuple(Claim(**row) for row in yaml.safe_load(text))


CLAIMS = _read()
