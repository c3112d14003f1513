"""The loops, compiled by numba where it is installed, plain Python where it is not."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..errors import rule
from . import core, kernels

EXTRA_NEEDED = rule(
    "LLS126",
    "this needs a package that is not installed",
    fix="pip install 'cdk-low-latency-endpoint[simulation]'.",
)


@dataclass(frozen=True)
class Loops:
    """The loops and the arrays that they work on: NumPy's compiled, Python's lists plain."""

    compiled: bool
    advance: Callable[..., int]
    fill_uniform: Callable[..., None]
    fill_law: Callable[..., None]
    fill_steps: Callable[..., None]
    choose: Callable[..., None]
    tally: Callable[..., None]
    quantile: Callable[..., float]
    add_and_clear: Callable[..., None]
    total: Callable[..., float]

    def kept(self, loop: Callable[..., Any]) -> bool:
        """Whether a loop that has run was read from where numba keeps what it compiled."""
        return self.compiled and bool(loop.stats.cache_hits)  # type: ignore[attr-defined]

    def wholes(self, values: Sequence[int]) -> Any:
        """An array of whole numbers."""
        if self.compiled:
            import numpy

            return numpy.array(values, dtype=numpy.int64)
        return list(values)

    def floats(self, values: Sequence[float]) -> Any:
        """An array of floating-point numbers."""
        if self.compiled:
            import numpy

            return numpy.array(values, dtype=numpy.float64)
        return list(map(float, values))

    def same_whole(self, value: int, size: int) -> Any:
        """An array that holds one whole number everywhere."""
        if self.compiled:
            import numpy

            return numpy.full(size, value, dtype=numpy.int64)
        return [value] * size

    def same_float(self, value: float, size: int) -> Any:
        """An array that holds one floating-point number everywhere."""
        if self.compiled:
            import numpy

            return numpy.full(size, value, dtype=numpy.float64)
        return [value] * size


def have_numba() -> bool:
    """Whether the extra ``[simulation]`` is there."""
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "numpy"))


def loops(compiled: bool | None = None) -> Loops:
    """The loops.

    Parameters
    ----------
    compiled : bool, optional
        Whether numba compiles them; results are the same. By default if it is installed.

    Raises
    ------
    ConfigurationError
        ``LLS126`` for ``compiled=True`` without numba.
    """
    if compiled is None:
        compiled = have_numba()
    elif compiled and not have_numba():
        raise EXTRA_NEEDED.error(got="numba is not installed", allowed="numba and numpy")
    return _loops(compiled)


@cache
def _loops(compiled: bool) -> Loops:
    prepare = _compiler() if compiled else lambda function: function
    return Loops(
        compiled,
        prepare(core.advance),
        *(
            prepare(function)
            for function in (
                kernels.fill_uniform,
                kernels.fill_law,
                kernels.fill_steps,
                kernels.choose,
                kernels.tally,
                kernels.quantile,
                kernels.add_and_clear,
                kernels.total,
            )
        ),
    )


def _compiler() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """numba's compiler, keeping what it made where it may: beside the source or under ~/.cache."""
    import numba

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # "no locator available": nowhere may be written
            return numba.njit(nogil=True)(function)

    return compiled
