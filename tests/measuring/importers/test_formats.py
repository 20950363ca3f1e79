"""Is every format known by its content, and does no damage to a file end in anything but a clear answer?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfkit.measuring.importers.formats import FORMATS, Refused, read_file, read_files
from perfkit.measuring.importers.imported import Imported

SAMPLES = Path(__file__).parent / "samples"
KNOWN = {
    "ab.txt": ("ab report", 1),
    "ab_percentiles.csv": ("ab percentile CSV", 5),
    "ab_requests.tsv": ("ab request list", 3),
    "article_table.csv": ("results table", 5),
    "autocannon.json": ("autocannon JSON", 1),
    "autocannon.txt": ("autocannon text", 1),
    "collapsed.txt": ("collapsed stacks", 3),
    "ghz.json": ("ghz JSON", 3),
    "h2load.txt": ("h2load report", 1),
    "h2load_log.tsv": ("h2load request log", 3),
    "hey.csv": ("hey CSV", 20),
    "hey.txt": ("hey report", 1),
    "hook_log.csv": ("hook log CSV", 4),
    "iostat.txt": ("sysstat text", 2),
    "jmeter.csv": ("JMeter CSV", 20),
    "jmeter.xml": ("JMeter XML", 2),
    "jmeter_console.txt": ("JMeter console summary", 1),
    "jmeter_headerless.csv": ("JMeter CSV", 20),
    "k6.csv": ("k6 CSV", 12),
    "k6.ndjson": ("k6 NDJSON", 20),
    "k6.txt": ("k6 text summary", 1),
    "k6_summary.json": ("k6 summary JSON", 1),
    "locust.json": ("Locust JSON", 1),
    "locust_failures.csv": ("Locust failures CSV", 2),
    "locust_history.csv": ("Locust history CSV", 6),
    "locust_stats.csv": ("Locust stats CSV", 2),
    "metrics.prom": ("Prometheus metrics", 6),
    "model_analyzer.csv": ("Model Analyzer CSV", 2),
    "mpstat.json": ("mpstat JSON", 4),
    "mpstat.txt": ("sysstat text", 4),
    "nvidia_dmon.txt": ("nvidia-smi dmon", 2),
    "nvidia_smi.csv": ("nvidia-smi CSV", 4),
    "perf_analyzer.csv": ("perf_analyzer CSV", 3),
    "perf_analyzer.txt": ("perf_analyzer text", 1),
    "perf_analyzer_export.json": ("perf_analyzer export JSON", 4),
    "perf_report.txt": ("perf report", 3),
    "perf_script.txt": ("perf script", 2),
    "perf_stat.csv": ("perf stat", 2),
    "perf_stat.txt": ("perf stat", 3),
    "pidstat.txt": ("sysstat text", 2),
    "pyspy_dump.json": ("py-spy dump", 1),
    "pyspy_dump.txt": ("py-spy dump", 4),
    "single_times.csv": ("table of single times", 3),
    "speedscope.json": ("speedscope JSON", 6),
    "torch_table.txt": ("PyTorch profiler table", 3),
    "trace.json": ("Chrome trace", 6),
    "vegeta.csv": ("vegeta CSV", 20),
    "vegeta.ndjson": ("vegeta JSON lines", 20),
    "vegeta.txt": ("vegeta text report", 1),
    "vegeta_report.json": ("vegeta JSON report", 1),
    "vmstat.txt": ("sysstat text", 2),
    "wrk.txt": ("wrk report", 1),
    "wrk2.txt": ("wrk2 report", 1),
}


def test_every_sample_is_known_by_its_content(tmp_path):
    found = {}
    for sample in SAMPLES.iterdir():
        path = tmp_path / "no_hint"
        path.write_bytes(sample.read_bytes())
        imported = read_file(path)
        found[sample.name] = (imported.format, imported.rows.kept)
    assert found == KNOWN


def test_every_format_has_a_sample():
    assert {kind.name for kind in FORMATS} - {name for name, _ in KNOWN.values()} == set()


def test_what_each_file_says_of_its_times_is_told():
    for sample in SAMPLES.iterdir():
        timing = read_file(sample).timing
        assert timing.unit
        assert timing.clock
        assert timing.scope in ("request", "window", "cumulative", "none")
        assert timing.basis in ("scheduled", "sent", "unknown", "none")


def test_a_folder_of_mixed_files_gives_what_can_be_read_and_the_reasons_of_the_rest(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.csv").write_bytes((SAMPLES / "jmeter.csv").read_bytes())
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (tmp_path / "notes.txt").write_text("Results were good: 300 ms on average.\n")
    (tmp_path / "heading.csv").write_text((SAMPLES / "jmeter.csv").read_text().splitlines()[0] + "\n")
    results = list(read_files([tmp_path]))
    read = [result for result in results if isinstance(result, Imported)]
    refused = {Path(result.path).name: result.reason for result in results if isinstance(result, Refused)}
    assert [Path(one.path).name for one in read] == ["a.csv"]
    assert "the file is empty; expected the output of a load generator" in refused["empty.csv"]
    assert "a binary file; expected text" in refused["image.png"]
    assert "not understood; it begins “Results were good: 300 ms on average.”" in refused["notes.txt"]
    assert "JMeter CSV without a single usable row (nothing below the heading)" in refused["heading.csv"]


def written(path, size, head, block):
    with path.open("wb") as file:
        file.write(head)
        while file.tell() < size:
            file.write(block)


GIB = 1 << 30
ROW = b"%d,%d,predict,200,OK,Group 1-%d,text,true,,3300,244,8,8,http://svc.invalid/predict?some=rather&long=query,20,0,0\n"
EVENT = (
    b'{"ph": "X", "cat": "cpu_op", "name": "op%d", "pid": 1, "tid": %d, "ts": %d, "dur": 12, "args": {"dims": [%s]}},\n'
)


STORY = """
import json, re, resource, sys
from pathlib import Path
from perfkit.measuring.importers.formats import read_file
imported = read_file(Path(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF)
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]  # maxrss holds the parent's
p99 = imported.levels[0].quantiles[0.99] if imported.levels else None
facts = {"format": imported.format, "kept": imported.rows.kept, "peak_bytes": int(peak) * 1024}
facts |= {"cpu_s": used.ru_utime + used.ru_stime, "p99_s": p99.value if p99 else None, "n": p99.n if p99 else 0}
print(json.dumps(facts))
"""


def read_apart(path):
    """What a process of its own reads, and what that takes."""
    done = subprocess.run([sys.executable, "-c", STORY, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("size", "limit"),
    [(24 << 20, 400 << 20), pytest.param(2 * GIB, GIB, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
@pytest.mark.parametrize("kind", ["JMeter CSV", "Chrome trace"])
def test_memory_stays_bounded_however_large_the_file(kind, size, limit, tmp_path):
    path = tmp_path / "large"
    if kind == "JMeter CSV":
        head = (SAMPLES / "jmeter.csv").read_bytes().partition(b"\n")[0] + b"\n"
        block = b"".join(ROW % (1_800_000_000_000 + 3 * n, 20 + n % 37, n % 8) for n in range(10_000))
    else:
        head = b'{"traceEvents": [\n'
        block = b"".join(EVENT % (n % 50, n % 4, 20 * n, b"1, " * 60 + b"1") for n in range(10_000))
    written(path, size, head, block)
    facts = read_apart(path)
    path.unlink()
    print(f"{kind} of {size >> 20} MiB: {facts['cpu_s']:.1f} s of CPU, {facts['peak_bytes'] >> 20} MiB")
    assert facts["format"] == kind
    assert facts["kept"] >= size // (len(block) // 10_000) - 20_000
    assert facts["peak_bytes"] < limit


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_million_requests_have_their_quantiles_in_bounded_memory(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write((SAMPLES / "jmeter.csv").read_bytes().partition(b"\n")[0] + b"\n")
        for block in range(1000):
            rows = range(block * 10_000, (block + 1) * 10_000)
            file.write(b"".join(ROW % (1_800_000_000_000 + n // 3, 20 + n * 2654435761 % 37, n % 8) for n in rows))
    facts = read_apart(path)
    path.unlink()
    print(f"10 million rows: {facts['cpu_s']:.1f} s of CPU, {facts['peak_bytes'] >> 20} MiB")
    assert facts["kept"] == facts["n"] == 10_000_000
    assert facts["p99_s"] == pytest.approx(0.056)
    assert facts["peak_bytes"] < GIB
