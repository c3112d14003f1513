"""``python -m tools.fuzzing --count 20000``: plan made-up settings files, and synthesise some of them.

Prints the seed of each failing case and keeps its file; ``--seed N --count 1`` makes it again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import sys
import time
from pathlib import Path
from random import Random

from .agreement import folder_of_files, judge, text_of
from .cases import settings_values


def main() -> int:
    """Run the cases; how many fail is the exit code's reason."""
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
    codes: collections.Counter[str] = collections.Counter()
    done = accepted = made = failed = 0
    slowest = 0.0
    began = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), folder_of_files() as folder:
        for seed in range(asked.seed, asked.seed + asked.count):
            text = text_of(settings_values(Random(seed)))
            judged = judge(text, folder, synthesise=made < asked.synth)
            done += 1
            accepted += judged.accepted
            made += judged.resources > 0
            codes.update(judged.codes)
            slowest = max(slowest, judged.seconds)
            if seed % 1000 == 999:
                print(
                    f"to seed {seed}: {accepted} accepted, {made} synthesised, {failed} failed",
                    flush=True,
                )
            if judged.fault:
                failed += 1
                asked.keep.mkdir(parents=True, exist_ok=True)
                kept = asked.keep / f"{seed}.yaml"
                kept.write_text(text, encoding="utf-8")
                print(f"seed {seed}: {judged.fault}\n  kept as {kept}", flush=True)
    print(
        f"{done} files from seed {asked.seed} in {time.monotonic() - began:.0f} s: "
        f"{accepted} accepted, {made} of them synthesised, {failed} failed; slowest plan "
        f"{slowest:.1f} s of processor time"
    )
    print("refused with " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
