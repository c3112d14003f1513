"""The packages: what they import, inside functions too; CONTRIBUTING names them; names and lengths."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "low_latency_endpoint"
TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)/` \| [^|]+ \|$", TABLE, re.M)
#: What each package may import of the others. `cli` may import all but those of constructs.
_ALLOWED = {
    "errors": "report",
    "report": "",
    "facts": "report errors",
    "options": "facts report errors",
    "plan": "options facts report errors",
    "simulate": "plan report options facts errors",
    "hugging_face": "plan options facts errors",
    "account": "plan options facts errors",
    "settings": "hugging_face plan report options facts errors",
    "synthesis": "plan report options facts errors",
    "network": "synthesis plan options facts errors",
    "hosting": "hugging_face network synthesis plan options facts errors",
    "monitoring": "hosting network synthesis plan report options facts errors",
    "warm_up": "monitoring hosting network synthesis plan options facts errors",
    "load_test_fleet": "hosting network synthesis plan options facts errors",
    "pattern": "settings load_test_fleet monitoring warm_up hosting hugging_face network synthesis plan options facts errors",
    "operate": "settings account report plan options facts errors",
    "load_test": "settings account report simulate plan options facts errors",
    "change": "pattern settings hugging_face plan report options facts errors",
}
ALLOWED = {package: set(names.split()) for package, names in _ALLOWED.items()}
#: Modules of the longest chain of imports. The aim is 20; lower it with each merge.
LONGEST_CHAIN = 34
CONSTRUCTS = {
    "synthesis",
    "network",
    "hosting",
    "monitoring",
    "warm_up",
    "load_test_fleet",
    "pattern",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    whole = grimp.build_graph(
        PACKAGE, include_external_packages=True, exclude_type_checking_imports=True
    )
    for room in whole.find_children(PACKAGE):
        whole.squash_module(room)
    return whole


def test_each_room_has_a_row(graph: grimp.ImportGraph) -> None:
    assert {f"{PACKAGE}.{room}" for room in ROWS} == graph.find_children(PACKAGE)


@pytest.mark.parametrize("room", ROWS)
def test_a_room_imports_what_its_row_says(graph: grimp.ImportGraph, room: str) -> None:
    allowed = set(ROWS) - CONSTRUCTS if room == "cli" else ALLOWED[room]
    imported = {
        module.removeprefix(f"{PACKAGE}.")
        for module in graph.find_modules_directly_imported_by(f"{PACKAGE}.{room}")
        if module.startswith(f"{PACKAGE}.")
    }
    assert imported - {room} <= allowed
    assert room in (*CONSTRUCTS, "change") or not graph.direct_import_exists(
        importer=f"{PACKAGE}.{room}", imported="aws_cdk"
    )


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What each module of the library imports, for typing and inside functions too.

    Without the package itself, which names its classes for type checkers alone.
    """
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False, cache_dir=None)
    for importer in graph.find_modules_that_directly_import(PACKAGE):
        for statement in graph.get_import_details(importer=importer, imported=PACKAGE):
            assert statement["line_contents"].endswith("import __version__")
        graph.remove_import(importer=importer, imported=PACKAGE)
    modules = graph.modules - {PACKAGE}
    return {module: graph.find_modules_directly_imported_by(module) for module in modules}


def test_no_modules_import_each_other(imports: dict[str, set[str]]) -> None:
    TopologicalSorter(imports).prepare()  # its error names the circle


def test_no_chain_of_imports_is_too_long(imports: dict[str, set[str]]) -> None:
    chains: dict[str, list[str]] = {}
    for module in TopologicalSorter(imports).static_order():
        below = max((chains[name] for name in imports[module]), key=len, default=[])
        chains[module] = [module, *below]
    longest = max(chains.values(), key=len)
    assert len(longest) <= LONGEST_CHAIN, "\n".join(longest)


@pytest.mark.parametrize("sources", ["constructs", "local_sagemaker/src"])
def test_no_two_classes_share_a_name(sources: str) -> None:
    modules: dict[str, list[str]] = {}
    for path in (ROOT / sources).rglob("*.py"):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                modules.setdefault(statement.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def test_no_module_is_too_long_to_read_in_one_sitting() -> None:
    lengths = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for sources in ("constructs", "local_sagemaker/src")
        for path in (ROOT / sources).rglob("*.py")
    }
    assert {path: lines for path, lines in lengths.items() if lines > 600} == {}
