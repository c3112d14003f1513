"""The loops as machine code, kept in a file, where numba is installed; else plain Python."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from . import core, kernels

_PLAIN: dict[str, Callable[..., Any]] = {
    loop.__name__: loop
    for loop in (
        core.advance,
        kernels.fill_uniform,
        kernels.fill_law,
        kernels.fill_steps,
        kernels.tally,
        kernels.quantile,
        kernels.add_and_clear,
        kernels.total,
    )
}
#: What an annotation is in machine code: numba's name of it, and its type for the call.
_KINDS: dict[str, tuple[str, Any]] = {
    "int": ("int64", ctypes.c_int64),
    "float": ("float64", ctypes.c_double),
    "Wholes": ("int64*", ctypes.c_void_p),
    "Floats": ("float64*", ctypes.c_void_p),
    "None": ("void", ctypes.c_void_p),
}
_PREFIX = "low_latency_"  # of the names in the machine code
_FILE = "loops.o"


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
    """The loops, by default compiled where numba is installed."""
    if compiled is None:
        compiled = all(map(importlib.util.find_spec, ("numba", "llvmlite")))
    return _loops(compiled)


@cache
def _loops(compiled: bool) -> Loops:
    return Loops(compiled, **(_loaded() if compiled else _PLAIN))


# --- calling machine code ------------------------------------------------------------------------


def _loaded() -> dict[str, Callable[..., Any]]:
    """The loops from their file of machine code."""
    from llvmlite import binding

    code = _machine_code()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return {
        name: _callable(engine.get_function_address(_PREFIX + name), loop, engine)
        for name, loop in _PLAIN.items()
    }


def _callable(address: int, loop: Callable[..., Any], engine: Any) -> Callable[..., Any]:
    """Machine code as the function that it was made of, by numba's convention (CPUCallConv)."""
    # The first two arguments say where result and exception go; what is returned is 0, or says that
    # there is an exception. numba's public `cfunc` would need numba in memory when it runs.
    kinds = _flat(map(_structure, loop.__annotations__.values()))
    *parameters, result = (_KINDS[kind][1] for kind in kinds if kind in _KINDS)
    native = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *parameters)(
        address
    )
    raised = ctypes.byref(ctypes.c_void_p())

    def call(*given: Any) -> Any:
        values = result()
        status = native(
            ctypes.byref(values),
            raised,
            *[each.buffer_info()[0] if type(each) is array else each for each in _flat(given)],
        )
        if status:
            raise RuntimeError(f"{loop.__name__} ended with {status}")
        return values.value

    call.engine = engine  # type: ignore[attr-defined]  # which owns the machine code
    return call


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Arguments with the arrays of named tuples one by one, as numba's convention has them."""
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


def _structure(annotation: Any) -> Any:
    """An annotation, or a named tuple's class with the annotations of its fields."""
    name = getattr(annotation, "__forward_arg__", annotation)
    if name in _KINDS:
        return name
    named = getattr(core, name)
    return (named, *map(_structure, named.__annotations__.values()))


def _machine() -> Any:
    """This computer, as LLVM has it."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
        codemodel="jitdefault",
    )


# --- making it and keeping it --------------------------------------------------------------------


def _machine_code() -> bytes:
    """The kept machine code, or else newly compiled, where it may be kept."""
    made_of = _made_of()
    stated = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(stated) if stated else Path(importlib.util.cache_from_source(__file__)).parent]
    if not stated:
        with contextlib.suppress(RuntimeError):  # nobody's home is known
            folders.append(Path.home() / ".cache" / "low-latency-endpoint")
    for folder in folders:
        with contextlib.suppress(OSError):
            kept_of, _, code = (folder / _FILE).read_bytes().partition(b"\n")
            if kept_of == made_of:
                return code
    code = _compiled()
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(made_of + b"\n" + code)
            Path(file.name).replace(folder / _FILE)
            break
    return code


def _made_of() -> bytes:
    """What decides about the machine code: the sources, the compilers and the processor."""
    from llvmlite import binding

    sources = (str(core.__file__), str(kernels.__file__), __file__)
    parts = [Path(source).read_bytes() for source in sources]
    parts += [version(name).encode() for name in ("numba", "llvmlite")]
    parts += [
        f"{binding.get_process_triple()} {binding.get_host_cpu_name()} "
        f"{binding.get_host_cpu_features().flatten()}".encode()
    ]
    return hashlib.sha256(b"\n".join(parts)).hexdigest().encode()


def _compiled() -> bytes:
    """Machine code of the loops, made on two processors where a process can be forked safely."""
    from llvmlite import binding

    # The event loop takes as long as the others: another process compiles those. It is forked once
    # numba has loaded what it needs for any loop, which takes as long again.
    event_loop, *most, smallest = _PLAIN.values()
    gc.disable()  # a sixth of the time: numba makes millions of objects, and most of them stay
    try:
        texts = _in_llvms_language([smallest])
        if sys.platform == "linux":
            with ProcessPoolExecutor(1, get_context("fork")) as pool:
                meanwhile = pool.submit(_in_llvms_language, most)
                texts += [*_in_llvms_language([event_loop]), *meanwhile.result()]
        else:
            texts += _in_llvms_language([event_loop, *most])
    finally:
        gc.enable()
    machine = _machine()
    whole, *rest = (binding.parse_assembly(text) for text in texts)
    for each in rest:
        whole.link_in(each)
    return bytes(machine.emit_object(whole))


def _in_llvms_language(loops: Sequence[Callable[..., Any]]) -> list[str]:
    """What numba makes of loops, as optimised text that LLVM reads."""
    import numba.extending

    without: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    for part in core.PARTS:
        numba.extending.register_jitable(error_model="numpy")(part)
    texts = []
    for loop in loops:
        *parameters, result = map(_type_of, map(_structure, loop.__annotations__.values()))
        made = numba.njit(result(*parameters), **without)(loop)
        (text,) = made.inspect_llvm().values()
        symbol = re.search(rf"^define .*? (@[^(\s]*\d{loop.__name__}[^(\s]*)\(", text, re.MULTILINE)
        assert symbol, text
        texts.append(text.replace(symbol[1], f"@{_PREFIX}{loop.__name__}"))
    return texts


def _type_of(structure: Any) -> Any:
    """numba's type of an annotation."""
    from numba import types as numba_types

    types: Any = numba_types
    if isinstance(structure, tuple):
        named, *fields = structure
        return types.BaseTuple.from_types(list(map(_type_of, fields)), named)
    name = _KINDS[structure][0]
    found = getattr(types, name.removesuffix("*"))
    return types.CPointer(found) if name.endswith("*") else found
