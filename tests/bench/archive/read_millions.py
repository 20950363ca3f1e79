"""What does it take to read a long run or scan, get its quantiles with intervals, and draw it? A process of its own."""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
from pathlib import Path

from perfkit.clock import NS_PER_S, REAL_CLOCK


def main(folder: Path) -> None:
    started_ns = REAL_CLOCK.now_ns()
    from perfkit.measuring.archive.folder import load_run
    from perfkit.measuring.archive.storedscan import load_scan
    from perfkit.measuring.recount import recount
    from perfkit.showing.plots.scan import plot_scan, scan_table

    if (folder / "scan.json").exists():
        scan = load_scan(folder)
        runs = [scan.run(place) for place in range(len(scan.header.points))]
    else:
        runs = [load_run(folder)]
    counts = [recount(run) for run in runs]
    points = [
        {
            "varied": {"workers": place + 1},
            "grade": "sound",
            "reasons": [],
            "requests": found.requests,
            "errors": {},
            "throughput_rps": found.throughput.to_json(),
            "latency_s": {name: one.to_json() for name, one in found.latency.items()},
        }
        for place, found in enumerate(counts)
    ]
    plot = plot_scan(scan_table(points, "workers"), "workers").to_json()
    usage, status = resource.getrusage(resource.RUSAGE_SELF), Path("/proc/self/status").read_text()
    found = {
        "rows": sum(one.requests for one in counts),
        "wall_s": (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": int(status.partition("VmHWM:")[2].split()[0]) * 1024,  # ru_maxrss is the parent's too
        "plot_characters": len(plot),
        "p99": dataclasses.asdict(counts[0].latency["p99"]),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
