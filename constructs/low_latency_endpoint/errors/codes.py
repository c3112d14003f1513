"""Which codes there are to choose from: none that is taken, and none that ever was."""

from __future__ import annotations

import re
from pathlib import Path

#: Codes that rules once had. What a reader finds of them on the web is about another mistake.
RETIRED = frozenset(
    [
        "LLC000",
        "LLD605",
        "LLE114",
        "LLE201",
        "LLE315",
        "LLE316",
        "LLE317",
        "LLE361",
        "LLE367",
        "LLE395",
        "LLE396",
        "LLE397",
        "LLE556",
        "LLE562",
        "LLE565",
        "LLE572",
        "LLE573",
        "LLE574",
        "LLE575",
        "LLE576",
        "LLE577",
        "LLE578",
        "LLE579",
        "LLE581",
        "LLE582",
        "LLE583",
        "LLE584",
        "LLE585",
        "LLE586",
        "LLE587",
        "LLE588",
        "LLE590",
        "LLE591",
        "LLE592",
        "LLE593",
        "LLE594",
        "LLE632",
        "LLE804",
        "LLE805",
        "LLE806",
        "LLE810",
        "LLE850",
        "LLE851",
        "LLE852",
        "LLE853",
        "LLE854",
        "LLE855",
        "LLE856",
        "LLE857",
        "LLE858",
        "LLE859",
        "LLE860",
        "LLE861",
        "LLE862",
        "LLE863",
        "LLE864",
        "LLE865",
        "LLE866",
        "LLE867",
        "LLE868",
        "LLE870",
        "LLE871",
        "LLE872",
        "LLE873",
        "LLE874",
        "LLE875",
        "LLE876",
        "LLE877",
        "LLE878",
        "LLE879",
        "LLE880",
        "LLE881",
        "LLE898",
        "LLE918",
        "LLE919",
        "LLE934",
        "LLE943",
        "LLE944",
        "LLE945",
        "LLE946",
        "LLE947",
        "LLE953",
        "LLE954",
        "LLE956",
        "LLE957",
        "LLE958",
        "LLE959",
        "LLE960",
        "LLE961",
        "LLE962",
        "LLE963",
        "LLE964",
        "LLE965",
        "LLE966",
        "LLE967",
        "LLE968",
        "LLE969",
        "LLE970",
        "LLE971",
        "LLE972",
        "LLE973",
        "LLE974",
        "LLE975",
        "LLE976",
        "LLE977",
        "LLE978",
        "LLE979",
        "LLE981",
        "LLE982",
        "LLE984",
        "LLE985",
        "LLE986",
        "LLE987",
        "LLE988",
        "LLE989",
        "LLR101",
        "LLR102",
        "LLR104",
        "LLR105",
        "LLR106",
        "LLR108",
        "LLR110",
        "LLR113",
        "LLS114",
        "LLS124",
        "LLS126",
        "LLS132",
        "LLS133",
        "LLS134",
        "LLS135",
        "LLS136",
        "LLS137",
        "LLS138",
        "LLS139",
        "LLS140",
        "LLS141",
        "LLS142",
        "LLS143",
        "LLS144",
        "LLS145",
        "LLS146",
        "LLT122",
        "LLT160",
        "LLT161",
        "LLT162",
        "LLT167",
        "LLT171",
    ]
)
_PACKAGE = Path(__file__).parents[1]
_CODE = re.compile(r'"(LL[A-Z]\d{3})"')


def places_of(code: str) -> list[str]:
    """The lines of this package that register a code."""
    return [place for found, place in _written() if found == code]


def next_free(code: str) -> str:
    """The first code of the same hundred, from this one on, that no rule has or had; else empty."""
    taken = RETIRED.union(found for found, _ in _written())
    area = range(int(code[3:]), int(code[3]) * 100 + 100)
    return next((each for n in area if (each := f"{code[:3]}{n}") not in taken), "")


def _written() -> list[tuple[str, str]]:
    """Each code that the source writes as a text of its own, with its line."""
    return [
        (code, f"{path.relative_to(_PACKAGE)}:{number}")
        for path in sorted(_PACKAGE.rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for code in _CODE.findall(line)
    ]
