"""Opening a file that a user names: no pipe, for whose writer a reader would wait for ever, and no device."""

from __future__ import annotations

import errno
import re
import stat
from pathlib import Path
from typing import BinaryIO

#: Descriptors that a shell has opened, as for `<(...)`: what they are of has a writer.
_OF_A_SHELL = re.compile(r"/dev/(stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def opened(path: str | Path) -> BinaryIO:
    """A file, to read its bytes; ``OSError`` at once for what is none."""
    kind = 0 if _OF_A_SHELL.fullmatch(str(path)) else stat.S_IFMT(Path(path).stat().st_mode)
    if kind in _KINDS:
        raise OSError(errno.EINVAL, _KINDS[kind], str(path))
    return Path(path).open("rb")
