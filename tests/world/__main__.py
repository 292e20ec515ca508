"""Run worlds: ``python -m tests.world --seed N [--hosts H] [--days D] [--worlds K]``.

Without ``--days``, each world changes for an hour and then comes to rest; no page is visited twice. With ``--days D``
the web, the operator and the disturbances change for D days, and pages are revisited. ``--worlds K`` runs the worlds
with the seeds N to N + K - 1. A world that fails is printed, shrunk, and printed again. ``--only E,F`` brings about
only the events with these numbers.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from tests.world.plan import draw_plan
from tests.world.worlds import report, run_world, shrink


def main(arguments: list[str] | None = None) -> int:
    """Run worlds. Returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--days", type=float, default=0.0, help="virtual days until the world comes to rest")
    parser.add_argument("--workers", type=int, help="processes that crawl at the same time")
    parser.add_argument("--worlds", type=int, default=1, help="how many worlds, with consecutive seeds")
    parser.add_argument("--quiet", action="store_true", default=None, help="a constant web without disturbances")
    parser.add_argument("--only", help="the numbers of the events to bring about, from 0, separated by commas")
    parser.add_argument("--no-shrink", action="store_true", help="leave a world that fails as it is")
    asked = parser.parse_args(arguments)
    failed = 0
    for seed in range(asked.seed, asked.seed + asked.worlds):
        plan = draw_plan(seed, asked.hosts, asked.days, is_quiet=asked.quiet, workers=asked.workers)
        if asked.only is not None:
            kept = {int(number) for number in asked.only.split(",") if number}
            plan = replace(plan, events=tuple(event for n, event in enumerate(plan.events) if n in kept))
        result = run_world(plan)
        if not result.violations:
            print(result, flush=True)
            continue
        failed += 1
        print(f"FAILED {report(result)}", flush=True)
        if not asked.no_shrink:
            smaller = shrink(plan, lambda plan: bool(run_world(plan).violations))
            print(f"shrunk: {report(run_world(smaller))}", flush=True)
    print(f"{asked.worlds} worlds, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
