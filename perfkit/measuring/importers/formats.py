"""Which format is a file in, by what stands in it, and how is it read?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from perfkit.errors import ConfigError, PerfkitError
from perfkit.measuring.importers import (
    ab,
    autocannon,
    dmon,
    folded,
    ghz,
    h2load,
    hey,
    hook_log,
    jmeter,
    jmeter_summary,
    jmeter_xml,
    k6,
    k6_summary,
    k6_text,
    locust,
    locust_failures,
    locust_json,
    model_analyzer,
    mpstat_json,
    nvidia_smi,
    perf_analyzer,
    perf_analyzer_export,
    perf_report,
    perf_script,
    perf_stat,
    plain_table,
    prometheus,
    pyspy_dump,
    single_times,
    speedscope,
    sysstat,
    torch_table,
    trace,
    vegeta,
    wrk,
)
from perfkit.measuring.importers.imported import Imported
from perfkit.measuring.importers.source import Source

_SHOWN = 60  # characters of an unknown file that the refusal quotes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of file: `matches` judges the first 64 KiB, `read` takes it all."""

    name: str
    matches: Callable[[str], bool]
    read: Callable[[Source], Imported]


# From the most specific to the most general: the first that matches reads the file.
FORMATS = (
    Format(name=perf_analyzer_export.NAME, matches=perf_analyzer_export.matches, read=perf_analyzer_export.read),
    Format(name=speedscope.NAME, matches=speedscope.matches, read=speedscope.read),
    Format(name=pyspy_dump.NAME, matches=pyspy_dump.matches, read=pyspy_dump.read),
    Format(name=trace.NAME, matches=trace.matches, read=trace.read),
    Format(name=k6_summary.NAME, matches=k6_summary.matches, read=k6_summary.read),
    Format(name=k6.LINES_NAME, matches=k6.matches_lines, read=k6.read_lines),
    Format(name=ghz.NAME, matches=ghz.matches, read=ghz.read),
    Format(name=autocannon.NAME, matches=autocannon.matches, read=autocannon.read),
    Format(name=autocannon.TEXT_NAME, matches=autocannon.matches_text, read=autocannon.read_text),
    Format(name=mpstat_json.NAME, matches=mpstat_json.matches, read=mpstat_json.read),
    Format(name=locust_json.NAME, matches=locust_json.matches, read=locust_json.read),
    Format(name=vegeta.JSON_NAME, matches=vegeta.matches_json, read=vegeta.read_json),
    Format(name=vegeta.LINES_NAME, matches=vegeta.matches_lines, read=vegeta.read_lines),
    Format(name=vegeta.TEXT_NAME, matches=vegeta.matches_text, read=vegeta.read_text),
    Format(name=perf_analyzer.TEXT_NAME, matches=perf_analyzer.matches_text, read=perf_analyzer.read_text),
    Format(name=ab.NAME, matches=ab.matches, read=ab.read),
    Format(name=h2load.NAME, matches=h2load.matches, read=h2load.read),
    Format(name=k6_text.NAME, matches=k6_text.matches, read=k6_text.read),
    Format(name=jmeter_xml.NAME, matches=jmeter_xml.matches, read=jmeter_xml.read),
    Format(name=sysstat.NAME, matches=sysstat.matches, read=sysstat.read),
    Format(name=torch_table.NAME, matches=torch_table.matches, read=torch_table.read),
    Format(name=perf_report.NAME, matches=perf_report.matches, read=perf_report.read),
    Format(name=perf_stat.NAME, matches=perf_stat.matches, read=perf_stat.read),
    Format(name=jmeter_summary.NAME, matches=jmeter_summary.matches, read=jmeter_summary.read),
    Format(name=wrk.NAME, matches=wrk.matches, read=wrk.read),
    Format(name=hey.NAME, matches=hey.matches, read=hey.read),
    Format(name=ab.PERCENTILES_NAME, matches=ab.matches_percentiles, read=ab.read_percentiles),
    Format(name=ab.REQUESTS_NAME, matches=ab.matches_requests, read=ab.read_requests),
    Format(name=h2load.LOG_NAME, matches=h2load.matches_log, read=h2load.read_log),
    Format(name=hey.CSV_NAME, matches=hey.matches_csv, read=hey.read_csv),
    Format(name=k6.CSV_NAME, matches=k6.matches_csv, read=k6.read_csv),
    Format(name=locust.HISTORY_NAME, matches=locust.matches_history, read=locust.read_history),
    Format(name=locust.STATS_NAME, matches=locust.matches_stats, read=locust.read_stats),
    Format(name=locust_failures.NAME, matches=locust_failures.matches, read=locust_failures.read),
    Format(name=perf_analyzer.CSV_NAME, matches=perf_analyzer.matches_csv, read=perf_analyzer.read_csv),
    Format(name=model_analyzer.NAME, matches=model_analyzer.matches, read=model_analyzer.read),
    Format(name=nvidia_smi.NAME, matches=nvidia_smi.matches, read=nvidia_smi.read),
    Format(name=dmon.NAME, matches=dmon.matches, read=dmon.read),
    Format(name=vegeta.CSV_NAME, matches=vegeta.matches_csv, read=vegeta.read_csv),
    Format(name=jmeter.NAME, matches=jmeter.matches, read=jmeter.read),
    Format(name=prometheus.NAME, matches=prometheus.matches, read=prometheus.read),
    Format(name=perf_script.NAME, matches=perf_script.matches, read=perf_script.read),
    Format(name=folded.NAME, matches=folded.matches, read=folded.read),
    Format(name=hook_log.NAME, matches=hook_log.matches, read=hook_log.read),
    Format(name=plain_table.NAME, matches=plain_table.matches, read=plain_table.read),
    Format(name=single_times.NAME, matches=single_times.matches, read=single_times.read),
)


class NotUnderstood(ConfigError):
    """A file of no known format. Alone it is told beside what is known; of a folder's many each needs one line."""

    def __init__(self, seen: str) -> None:
        known = ", ".join(sorted({kind.name for kind in FORMATS}))
        super().__init__(f"{seen}. Known formats: {known}")
        self.seen = seen


def read_file(path: Path) -> Imported:
    """Reads one file of any known format; raises ConfigError telling what was seen and what was expected."""
    source = Source(path)
    kind = next((kind for kind in FORMATS if kind.matches(source.head)), None)
    if kind is None:
        seen = " ".join(source.head.split())[:_SHOWN]
        raise NotUnderstood(f"{path}: not understood; it begins “{seen}”")
    imported = kind.read(source)
    says_something = imported.levels or imported.profiles or imported.metrics or imported.series
    if imported.rows.read == 0 or (imported.rows.kept == 0 and not says_something):
        reasons = ", ".join(f"{count} × {reason}" for reason, count in imported.rows.dropped.items())
        raise ConfigError(f"{path}: {kind.name} without a single usable row ({reasons or 'nothing below the heading'})")
    return imported


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A file that could not be read, and why."""

    path: str
    reason: str


def read_files(paths: Sequence[Path]) -> Iterator[Imported | Refused]:
    """Files, and those in folders, one after another; what cannot be read is told, and the others go on."""
    for path in paths:
        inside = sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path]
        for file in inside:
            try:
                yield read_file(file)
            except NotUnderstood as unknown:
                yield Refused(path=str(file), reason=unknown.seen if len(inside) > 1 else str(unknown))
            except PerfkitError as error:
                yield Refused(path=str(file), reason=str(error))
