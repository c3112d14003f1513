"""The source root ``constructs/`` never shadows PyPI's package of the same name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_source_root_is_no_package() -> None:
    assert not (ROOT / "constructs" / "__init__.py").exists()


@pytest.mark.parametrize("first_on_path", ["", str(ROOT)], ids=["as ''", "by name"])
def test_from_the_repository_root_constructs_is_still_pypis(first_on_path: str) -> None:
    program = (
        f"import sys; sys.path.insert(0, {first_on_path!r}); import constructs; "
        "print(constructs.Construct.__jsii_type__, constructs.__file__)"
    )
    kind, file = run(sys.executable, "-c", program, cwd=ROOT).split(maxsplit=1)
    assert kind == "constructs.Construct"
    assert "site-packages" in file


def test_an_init_file_would_shadow_it(tmp_path: Path) -> None:
    """The trap is real: what the tests above hold off is what happens with one more file."""
    (tmp_path / "constructs").mkdir()
    (tmp_path / "constructs" / "__init__.py").touch()
    with pytest.raises(AssertionError, match="constructs"):
        run(sys.executable, "-c", "import aws_cdk", cwd=tmp_path)
