"""``make size``: lines by room, modules, the longest functions and the largest complexity."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PRODUCT = ("constructs", "local_sagemaker/src", "tools")
TESTS = ("tests", "local_sagemaker/tests")
_SHOWN = 8
_COMPLEXITY = re.compile(r"`(.+)` is too complex \((\d+) > 0\)")


def main() -> None:
    """Print the size of the checkout in the current folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in _modules(*PRODUCT)}
    lines = {path: text.count("\n") for path, text in texts.items()}
    rooms: Counter[str] = Counter()
    for path, count in lines.items():
        rooms[_room(path)] += count
    print("Lines of Python by room")
    for room, count in rooms.most_common():
        print(f"{count:9,}  {room}")
    print(f"{sum(lines.values()):9,}  product, in {len(lines)} modules")
    tests = sum(path.read_text(encoding="utf-8").count("\n") for path in _modules(*TESTS))
    print(f"{tests:9,}  tests")
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


def _modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))


def _room(path: Path) -> str:
    """A folder of the library or of the local AWS; elsewhere the project's own."""
    deep = {"constructs": 3, "local_sagemaker": 4, "tools": 2}.get(path.parts[0], 1)
    return "/".join(path.parent.parts[:deep])


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
