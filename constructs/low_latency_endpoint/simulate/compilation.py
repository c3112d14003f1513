"""The loops: compiled by numba where it is installed, else plain Python."""

from __future__ import annotations

import importlib.util
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import core, kernels

#: ``numpy``: no check for a division by zero. Without ``_nrt``, numba's counts of references: the
#: loops allocate nothing, and counting who uses which array takes seven eighths of their time.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


@dataclass(frozen=True)
class Loops:
    """The loops and the arrays that they work on: machine numbers compiled, Python's lists plain."""

    compiled: bool
    advance: Callable[..., int]
    fill_uniform: Callable[..., None]
    fill_law: Callable[..., None]
    fill_steps: Callable[..., None]
    tally: Callable[..., None]
    quantile: Callable[..., float]
    add_and_clear: Callable[..., None]
    total: Callable[..., float]

    def wholes(self, values: Sequence[int]) -> Any:
        """An array of whole numbers."""
        return array("q", values) if self.compiled else list(values)

    def floats(self, values: Sequence[float]) -> Any:
        """An array of floating-point numbers."""
        return array("d", values) if self.compiled else list(map(float, values))

    def same_whole(self, value: int, size: int) -> Any:
        """An array that holds one whole number everywhere."""
        return self.wholes([value]) * size

    def same_float(self, value: float, size: int) -> Any:
        """An array that holds one floating-point number everywhere."""
        return self.floats([value]) * size


def loops(compiled: bool | None = None) -> Loops:
    """The loops, by default compiled where numba is installed.

    numba compiles each loop at its first call, and keeps the machine code in ``NUMBA_CACHE_DIR``,
    in ``__pycache__`` or in the user's cache folder.
    """
    if compiled is None:
        compiled = importlib.util.find_spec("numba") is not None
    return _loops(compiled)


@cache
def _loops(compiled: bool) -> Loops:
    if compiled:
        _prepare_numba()
    compilation = _compiled if compiled else _plain
    return Loops(
        compiled,
        advance=compilation(core.advance),
        fill_uniform=compilation(kernels.fill_uniform),
        fill_law=compilation(kernels.fill_law),
        fill_steps=compilation(kernels.fill_steps),
        tally=compilation(kernels.tally),
        quantile=compilation(kernels.quantile),
        add_and_clear=compilation(kernels.add_and_clear),
        total=compilation(kernels.total),
    )


def _plain(loop: Callable[..., Any]) -> Callable[..., Any]:
    return loop


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as numba compiles it, or loads it from its cache, at the first call."""
    import numba

    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, **_OPTIONS)(loop)
    except RuntimeError:  # no folder can be written: each process compiles
        compiled = numba.njit(**_OPTIONS)(loop)
    return compiled


def _prepare_numba() -> None:
    """Let loops call the functions of the event loop, and say when numba compiles."""
    import numba.extending
    from numba.core import event as compiler_events

    class Announcement(compiler_events.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                sys.stderr.write("Compiling the simulator. Later runs load the result.\n")
            self.said = True

        def on_end(self, event: Any) -> None:
            pass

    for part in core.PARTS:
        numba.extending.register_jitable(**_OPTIONS)(part)
    compiler_events.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]
