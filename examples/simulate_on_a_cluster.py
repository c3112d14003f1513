"""Spread a search over a cluster: every point is one function call that depends on its seed alone.

    python examples/simulate_on_a_cluster.py                     # this machine's processors
    python examples/simulate_on_a_cluster.py --with ray          # a Ray cluster
    python examples/simulate_on_a_cluster.py --part 3 --of 100   # one job of an AWS Batch array
    python examples/simulate_on_a_cluster.py --merge results     # what the jobs wrote

On AWS Batch submit an array job (``arrayProperties={"size": 100}``) with the command
``python simulate_on_a_cluster.py --of 100 --output /mnt/shared``: the part is read from
``AWS_BATCH_JOB_ARRAY_INDEX``. Any scheduler will do that runs a command with a number. A failed
part is run again: it gives the same result.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from low_latency_endpoint.simulate import Lognormal, OpenLoop, Scenario, simulate

ROUTINGS = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")
PEAK_TPS = 1000.0


def points() -> list[dict[str, Any]]:
    """What is searched: every process makes the same list."""
    return [
        {"instances": instances, "routing": routing, "cv": cv}
        for instances in range(5, 10)
        for routing in ROUTINGS
        for cv in (0.5, 1.0, 2.0)
    ]


def try_point(point: dict[str, Any]) -> dict[str, Any]:
    """One point of the search, on one core."""
    scenario = Scenario(
        service=Lognormal(0.045, point["cv"]),
        concurrency=10,
        traffic=OpenLoop(PEAK_TPS),
        instances=point["instances"],
        routing=point["routing"],
    )
    found = simulate(scenario, requests=100_000, replications=4, seed=1)
    p99 = found.percentile(99.0)
    return {
        **point,
        "p99_ms": round(1000 * p99.mean, 3),
        "±": round(1000 * p99.half_width, 3),
        "utilisation": round(found.utilisation.mean, 4),
    }


def on_this_machine(chosen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The standard library's pool."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(try_point, chosen))


def on_ray(chosen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A Ray cluster: `pip install ray`, and RAY_ADDRESS for one that runs already."""
    import ray  # type: ignore[import-not-found,unused-ignore]

    ray.init()
    remote = ray.remote(try_point)
    return list(ray.get([remote.remote(point) for point in chosen]))


def show(found: list[dict[str, Any]]) -> None:
    """The quickest strategy for each fleet and law."""
    for one in sorted(found, key=lambda one: (one["cv"], one["instances"], one["p99_ms"])):
        print(
            f"CV {one['cv']:<4} {one['instances']:>3} instances  {one['routing']:<27}"
            f" p99 {one['p99_ms']:>8.1f} ± {one['±']:.1f} ms, {one['utilisation']:.0%} in use"
        )


def main() -> None:
    """Run all points, one part of them, or merge parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--with", dest="runner", choices=("processes", "ray"), default="processes")
    parser.add_argument("--part", type=int, default=os.environ.get("AWS_BATCH_JOB_ARRAY_INDEX"))
    parser.add_argument("--of", type=int)
    parser.add_argument("--output", type=Path, default=Path("results"))
    parser.add_argument("--merge", type=Path)
    arguments = parser.parse_args()
    if arguments.merge:
        show(
            [
                one
                for path in sorted(arguments.merge.glob("part-*.json"))
                for one in json.loads(path.read_text(encoding="utf-8"))
            ]
        )
        return
    if arguments.of:
        if arguments.part is None or not 0 <= arguments.part < arguments.of:
            parser.error("--of needs --part from 0, or AWS_BATCH_JOB_ARRAY_INDEX")
        found = [try_point(point) for point in points()[arguments.part :: arguments.of]]
        arguments.output.mkdir(parents=True, exist_ok=True)
        path = arguments.output / f"part-{arguments.part:05}.json"
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
        return
    show({"processes": on_this_machine, "ray": on_ray}[arguments.runner](points()))


if __name__ == "__main__":
    main()
