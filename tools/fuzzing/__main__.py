"""``python -m tools.fuzzing --count 20000``: plan made-up settings files, and synthesise some of them.

Prints the seed of each failing case and keeps its file; ``--seed N --count 1`` makes it again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from .agreement import Judged

EACH_SECONDS = float(os.environ.get("FUZZ_EACH_SECONDS", "60"))
"""After which it says how far it is."""
INTERRUPTED = 130


def main() -> int:
    """Run the cases: 1 if some fail, else 130 if they were stopped by a signal."""
    _stop_by(_leave)
    parser = argparse.ArgumentParser(prog="python -m tools.fuzzing", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="cases to make")
    parser.add_argument("--seed", type=int, default=0, help="the first case's seed")
    parser.add_argument(
        "--synth",
        type=int,
        default=0,
        metavar="N",
        help="synthesise this many of the accepted ones, the first ones",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("fuzz-failures"),
        help="folder for the files of failing cases",
    )
    asked = parser.parse_args()
    from .agreement import folder_of_files, judge, text_of
    from .cases import settings_values

    tally = Tally(asked.seed)
    _stop_by(signal.default_int_handler)
    ending = "stopped: "
    try:
        with folder_of_files() as folder:
            for seed in range(asked.seed, asked.seed + asked.count):
                text = text_of(settings_values(Random(seed)))
                judged = judge(text, folder, synthesise=tally.made < asked.synth)
                tally.add(judged)
                if judged.fault:
                    kept = _kept(asked.keep, seed, text)
                    print(f"seed {seed}: {judged.fault}\n  kept as {kept}", flush=True)
                tally.tell_each_minute()
        ending = ""
    except KeyboardInterrupt:
        pass
    print(f"{ending}{tally}")
    refused = ", ".join(f"{code} {count}" for code, count in tally.codes.most_common())
    print(f"refused with {refused or 'nothing'}", flush=True)
    return 1 if tally.failed else INTERRUPTED if ending else 0


def _stop_by(handler: Callable[[int, FrameType | None], object]) -> None:
    """Have it end what Ctrl-C, SIGTERM and a closed terminal end; nohup's ignoring stays."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(*_: object) -> NoReturn:
    """While modules are read: an exception would strike anywhere in them."""
    os.write(1, b"stopped: before the first case\n")
    os._exit(INTERRUPTED)


@dataclass
class Tally:
    """What became of the files so far."""

    seed: int  # of the first
    done: int = 0
    accepted: int = 0
    made: int = 0
    failed: int = 0
    slowest: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)

    def add(self, judged: Judged) -> None:
        """Count one more file."""
        self.done += 1
        self.accepted += judged.accepted
        self.made += judged.resources > 0
        self.failed += bool(judged.fault)
        self.slowest = max(self.slowest, judged.seconds)
        self.codes.update(judged.codes)

    def tell_each_minute(self) -> None:
        """Print how far it is, if that was a minute ago."""
        now = time.monotonic()
        if now - self.told >= EACH_SECONDS:
            self.told = now
            print(self, flush=True)

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        return (
            f"{self.done} files from seed {self.seed} in {seconds:.0f} s: {self.accepted} accepted, "
            f"{self.made} of them synthesised, {self.failed} failed; slowest plan "
            f"{self.slowest:.1f} s of processor time"
        )


def _kept(folder: Path, seed: int, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{seed}.yaml"
    kept.write_text(text, encoding="utf-8")
    return kept


if __name__ == "__main__":
    sys.exit(main())
