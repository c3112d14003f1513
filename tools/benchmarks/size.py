"""``make size``: lines, syntax nodes and data by package, the longest functions, the complexity.

Lines can be saved by dense code, syntax nodes cannot: they count what a reader takes in.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PRODUCT = ("client/src", "constructs", "local_sagemaker/src")
TOOLS = ("tools",)
TESTS = ("tests", "client/tests", "local_sagemaker/tests")
_PACKED = (".gz", ".xz")
_SHOWN = 8
_COMPLEXITY = re.compile(r"`(.+)` is too complex \((\d+) > 0\)")


def main() -> None:
    """Print the size of the checkout in the current folder: its files as Git has them."""
    product = _tracked(*PRODUCT)
    print(f"{'package':<40} {'lines':>8} {'nodes':>8} {'modules':>7} {'data lines':>10}")
    for folders in (PRODUCT, TOOLS):
        _print_packages(_tracked(*folders))
    _print_row("product in all", _sum(size_of(path) for path in product))
    _print_row("tools in all", _sum(size_of(path) for path in _tracked(*TOOLS)))
    _print_row("tests in all", _sum(size_of(path) for path in _tracked(*TESTS)))
    modules = [path for path in product if path.suffix == ".py"]
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    functions = sorted(each for path, text in texts.items() for each in _functions(path, text))
    options = _declared(texts)
    sites = sum(options.values())
    print(
        f"{sites:9,}  places that declare {len(options)} options, "
        f"{sites / len(options):.2f} on average"
    )
    for name, count in options.most_common(_SHOWN):
        print(f"{count:9,}  {name}")
    print("Longest functions")
    for count, name in functions[: -_SHOWN - 1 : -1]:
        print(f"{count:9,}  {name}")
    found = sorted(_complexities())
    print(f"Cyclomatic complexity, {sum(each for each, _ in found) / len(found):.2f} on average")
    for complexity, name in found[: -_SHOWN - 1 : -1]:
        print(f"{complexity:9,}  {name}")


@dataclass(frozen=True)
class Size:
    """Of Python its lines, syntax nodes and modules; of other files the lines."""

    lines: int = 0
    nodes: int = 0
    modules: int = 0
    data_lines: int = 0


def size_of(path: Path) -> Size:
    """Measure one file; packed data has no lines."""
    if path.suffix in _PACKED:
        return Size()
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if path.suffix != ".py":
        return Size(data_lines=lines)
    # The context of a name or attribute is no node that anybody reads.
    contexts = (ast.Load, ast.Store, ast.Del)
    nodes = sum(not isinstance(node, contexts) for node in ast.walk(ast.parse(text)))
    return Size(lines, nodes, 1)


def _sum(sizes: Iterable[Size]) -> Size:
    total = Size()
    for size in sizes:
        total = Size(
            total.lines + size.lines,
            total.nodes + size.nodes,
            total.modules + size.modules,
            total.data_lines + size.data_lines,
        )
    return total


def _print_packages(paths: Iterable[Path]) -> None:
    """Print a row for each package, the one with the most nodes first."""
    sizes: dict[str, list[Size]] = defaultdict(list)
    for path in paths:
        sizes[_package(path)].append(size_of(path))
    totals = {name: _sum(of_package) for name, of_package in sizes.items()}
    for name, size in sorted(totals.items(), key=lambda entry: -entry[1].nodes):
        _print_row(name, size)


def _print_row(name: str, size: Size) -> None:
    print(f"{name:<40} {size.lines:>8,} {size.nodes:>8,} {size.modules:>7,} {size.data_lines:>10,}")


def _package(path: Path) -> str:
    """Return the package of the library, the local AWS or the tools in which a file is."""
    parts = path.parent.parts
    start = {"client": 2, "constructs": 1, "local_sagemaker": 2}.get(parts[0], 0)
    return "/".join(parts[start : start + 2])


def _tracked(*folders: str) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "--", *folders], check=True, capture_output=True, text=True
    )
    return [Path(line) for line in done.stdout.splitlines() if Path(line).is_file()]


def _functions(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or 0) - node.lineno + 1, f"{path}:{node.lineno} {node.name}"


def _declared(texts: dict[Path, str]) -> Counter[str]:
    """Where the options of a settings file are declared, by name.

    A group of options with such a field is a place, and a public class with such a field or with
    such a parameter of its constructor.
    """
    library = Path("constructs/low_latency_endpoint")
    public = set(
        re.findall(r'"([A-Z]\w+)"', texts[library / "__init__.py"].partition("__all__")[2])
    )
    made = [
        each
        for path, text in texts.items()
        if library in path.parents
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.ClassDef)
    ]
    bases = {each.name: {ast.unparse(base) for base in each.bases} for each in made}

    def is_group(name: str) -> bool:
        return name == "Options" or any(map(is_group, bases.get(name, ())))

    places: dict[str, set[str]] = {}
    settings: set[str] = set()
    for each in made:
        if each.name in public or is_group(each.name):
            for name, of_file in _names(each):
                places.setdefault(name, set()).add(each.name)
                settings |= {name} if of_file else set()
    return Counter({name: len(places[name]) for name in settings})


def _names(made: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    for each in made.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            written = ast.unparse(each)
            if "ClassVar" not in written:
                yield each.target.id, "Option(" in written
        elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
            for parameter in (*each.args.args, *each.args.kwonlyargs):
                yield parameter.arg, False


def _complexities() -> Iterator[tuple[int, str]]:
    """As ruff counts the paths through each function."""
    options = ("--select=C901", "--config=lint.mccabe.max-complexity=0", "--output-format=json")
    done = subprocess.run(
        ["ruff", "check", "--exit-zero", "--ignore-noqa", *options, *PRODUCT],
        check=True,
        capture_output=True,
        text=True,
    )
    for each in json.loads(done.stdout):
        if found := _COMPLEXITY.search(each["message"]):
            path = Path(each["filename"]).relative_to(Path.cwd())
            yield int(found[2]), f"{path}:{each['location']['row']} {found[1]}"


if __name__ == "__main__":
    main()
