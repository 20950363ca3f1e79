"""Does each real file read as its manifest says, figure by figure?

The manifest (`cases/MANIFEST.md`) was written apart from the product, from the server's own log and a few lines of
numpy. A few of the files lie here; PERFKIT_CASES names a folder that has them all.
"""

import os
import re
from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.formats import read_file

FOLDER = Path(os.environ.get("PERFKIT_CASES", Path(__file__).parent / "cases"))
LINE = re.compile(r"^  - \*\*(?P<name>[^*]+)\*\* \(\d+ B\): (?P<reading>.*)$", re.MULTILINE)
READINGS = {
    match["name"]: match["reading"].partition(" Odd:")[0]
    for match in LINE.finditer((FOLDER / "MANIFEST.md").read_text("utf-8"))
}
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
PERCENTILES = (50, 75, 90, 95, 97.5, 99)


def found(pattern, text):
    """The numbers that a pattern names; [] when it does not occur."""
    match = re.search(pattern.replace("#", NUMBER), text)
    return [float(one) for one in match.groups() if one is not None] if match else []


def first(pattern, text, size=1.0):
    """The first number, divided to its base unit; None when there is none."""
    return next((one / size for one in found(pattern, text)), None)


def times(text, size=1e3):
    """Mean, maximum and percentiles in seconds, as `P50 10.4, …, mean 10.14, max 13.52 ms` gives them."""
    facts = {"mean_s": first(r"\bmean #", text, size), "max_s": first(r"\bmax #", text, size)}
    return facts | {f"p{p:g}": first(rf"\bP{p:g} #", text, size) for p in PERCENTILES}


def compared(level, facts):
    """Names of the figures that differ, with both; a figure that the manifest does not give is not compared."""
    own = {name: getattr(level, name) for name in ("requests", "errors", "unsent", "throughput_rps", "mean_s", "max_s")}
    own |= {f"p{p:g}": level.percentile(round(p / 100, 6)) for p in PERCENTILES}
    return {
        name: (own[name], value)
        for name, value in facts.items()
        if value is not None and (own[name] is None or own[name] != pytest.approx(value, rel=1e-3, abs=1e-6))
    }


def whole(imported, facts):
    assert compared(imported.levels[0], facts) == {}


def wrk(imported, text):
    socket = found(r"connect #, read #, write #, timeout #", text)
    count = first(r"n=#", text)
    errors = None if count is None else first(r"HTTP errors #", text) + sum(socket)
    rate = first(r"answered in \S+ s, #/s", text)
    whole(imported, {**times(text), "requests": count, "errors": errors, "throughput_rps": rate})


def hey_report(imported, text):
    if "PART" in text:
        assert imported.levels[0].requests is imported.levels[0].errors is None
        text = text.replace("n, errors", "")
    unanswered, rate = first(r"# without an answer", text) or 0.0, first(r"Requests/sec #", text)
    errors = None if "HTTP errors" not in text else first(r"HTTP errors #", text) + unanswered
    facts = {**times(text), "requests": first(r"n=#", text), "errors": errors}
    if "absent" not in text or "3 answered" in text:
        facts |= {"mean_s": first(r"mean # s", text), "max_s": first(r"slowest # s", text), "throughput_rps": rate}
    whole(imported, facts)


def ab_report(imported, text):
    most = first(r"100% # ms", text, 1e3)
    whole(
        imported, {**times(text), "max_s": most, "requests": first(r"n=#", text), "errors": first(r"Non-2xx #", text)}
    )


def requests(imported, text):
    """A list of single requests: of all of them, or where there are no others of the samplers."""
    part = text.partition("transaction rows apart")[0].partition("per label")[0].partition("good only")[0]
    if "no percentile may be taken" in text or "sorted by ttime" in text:
        part = re.sub(r"P\d+ .*", "", part) if "cut row" in part else part
    part = part.partition("2xx only")[0]
    counted = {
        "requests": first(r"n=#", part),
        "errors": first(r"errors #", part),
        "throughput_rps": first(r", #/s", part),
    }
    whole(imported, {**counted, **times(part)})


def percentiles(imported, text):
    whole(imported, {**times(text), "max_s": first(r"100 % = # ms", text, 1e3)})


def h2load_report(imported, text):
    answered = " 0 started" not in text
    counts = {
        "requests": first(r"# total", text),
        "errors": first(r"# failed", text),
        "throughput_rps": first("# req/s", text),
    }
    whole(imported, {**counts, **(times(text) if answered else {"mean_s": None})})


def autocannon_json(imported, text):
    bad, lost = found(r"non-2xx #\), errors #", text)
    made_up = first(r"totalCount #", text) != first(r"answered #", text)
    figures = {"mean_s": None} if "NO DATA" in text or made_up else times(text)
    counts = {
        "requests": first(r"answered #", text) + lost,
        "errors": bad + lost,
        "throughput_rps": first(r"s: #/s", text),
    }
    whole(imported, {**counts, **figures})


def locust_stats(imported, text):
    part = text.split("; ")[-1]
    counts = {
        "requests": first("n=#", part),
        "errors": first("failures #", part),
        "throughput_rps": first(", #/s", part),
    }
    if not counts["requests"]:
        assert imported.levels[-1].mean_s is None
        return
    assert compared(imported.levels[-1], {**counts, **times(part)}) == {}


def locust_history(imported, text):
    counts = {"requests": first(r"last total n=#", text), "errors": first(r"failures #", text)}
    mean = first(r"total mean # ms", text, 1e3) or None
    assert compared(imported.levels[-1], {**counts, "mean_s": mean}) == {}
    steps = re.search(r"steps \[([\d, ]+)\]", text)[1].split(", ")
    assert {level.concurrency for level in imported.levels[:-1]} <= set(map(float, steps))


def locust_json(imported, text):
    facts = {
        "requests": first("n=#", text),
        "errors": first("failures #", text),
        "throughput_rps": first("s, #/s", text),
    }
    whole(imported, {**facts, **times(text), "max_s": None, "mean_s": None})  # of rounded times


def locust_failures(imported, text):
    assert str(int(imported.metrics[0].value)) in text.split(",")


def k6_rows(imported, text):
    counts = {"requests": first("http_reqs #", text), "errors": first("failed #", text)}
    answered = counts["requests"] != counts["errors"]
    unsent = first("dropped_iterations #", text) or None
    whole(imported, {**counts, "unsent": unsent, **(times(text) if answered else {})})


def k6_summary(imported, text):
    counts = {"requests": first("http_reqs #", text), "errors": first("failed #", text)}
    unsent, rate = first("dropped_iterations #", text), first("at #/s", text)
    names = {"mean_s": "avg", "max_s": "max", "p50": "med", "p90": r"p\(90\)", "p95": r"p\(95\)"}
    figures = {name: first(rf"'{key}': #", text, 1e3) for name, key in names.items()}
    if counts["requests"] == counts["errors"]:
        figures = {"throughput_rps": 0.0}
    whole(imported, {"throughput_rps": rate, **counts, "unsent": unsent, **figures})


def k6_text(imported, text):
    figures = {"mean_s": first("avg=#ms", text, 1e3), "p95": first(r"p\(95\)=#ms", text, 1e3)}
    whole(imported, {"requests": first("http_reqs: #", text), "throughput_rps": first(r" #/s", text), **figures})


def perf_analyzer_csv(imported, text):
    rows = re.findall(r"(?:Concurrency|Request Rate) [\d.]+: [^;]+", text)
    assert len(rows) == len(imported.levels)
    for row, level in zip(rows, imported.levels, strict=True):
        load, rate = found(r"(?:Concurrency|Request Rate) #: #/s", row)
        assert load in (level.concurrency, level.offered_rps)
        assert compared(level, {"throughput_rps": rate, **times(row, 1e6)}) == {}
        if "server queue" in row:
            wanted = first(r"server queue #", row, 1e6)
            loads = {one.labels["load"]: one.value for one in imported.metrics if one.name == "server_queue_seconds"}
            assert loads[level.name] == pytest.approx(wanted)


def perf_analyzer_text(imported, text):
    rates = [float(one) for one in re.findall(r"(?<!throughput: )(?<!\] )Throughput: ([\d.]+) infer/sec", text)]
    counts = [float(one) for one in re.findall(r"Request count: (\d+)", text)]
    assert [level.throughput_rps for level in imported.levels][: len(rates)] == rates
    assert [level.requests for level in imported.levels][: len(counts)] == counts


def perf_analyzer_export(imported, text):
    parts = re.split(r"(?=concurrency \d+: n=)", text)[1:]
    for part, level in zip(parts, imported.levels, strict=True):
        facts = {"requests": first("n=#", part), "throughput_rps": first("s, #/s", part)}
        assert compared(level, {**facts, **times(part)}) == {}


def jmeter_console(imported, text):
    facts = {"requests": first(r"summary = +#", text), "throughput_rps": first(r"= +#/s", text)}
    figures = {"mean_s": first(r"Avg: +#", text, 1e3), "max_s": first(r"Max: +#", text, 1e3)}
    whole(imported, {**facts, "errors": first(r"Err: +#", text), **figures})


def stacks(imported, text):
    (profile,) = imported.profiles
    wanted = first(r"total weight #", text) or first(r"stacks, # samples", text)
    assert (profile.total, imported.rows.kept) == (wanted, first(r"# stacks", text))
    if "top leaves" in text and "threads" not in text:
        name, share = re.search(r"top leaves (.+?) [\d.]+ \(([\d.]+)%\)", text).groups()
        own = sum(weight.own for weight in profile.top if weight.name.split(" (")[0].startswith(name.split("<")[0]))
        assert own / profile.total == pytest.approx(float(share) / 100, abs=0.01)


def dump(imported, text):
    (profile,) = imported.profiles
    assert profile.samples == first(r"# threads", text)
    idle = first(r"idle #", text)
    assert idle is None or profile.states["idle"] == idle


def speedscope(imported, text):
    (profile,) = imported.profiles
    assert len(profile.threads) == first(r"# profiles", text)
    for name, seconds in re.findall(r"'([^']+)' \(sampled, unit seconds\) \d+ samples, ([\d.]+) seconds", text):
        assert profile.threads[name] == pytest.approx(float(seconds), abs=0.005)


def pairs(imported, text):
    assert imported.rows.kept == first(r"array of # events", text)
    assert len(imported.profiles[0].threads) == first(r"threads #", text)


def script(imported, text):
    assert imported.rows.kept == first(r"# samples", text)
    assert len(imported.profiles[0].threads) == first(r"# thread ids", text)
    assert f"samples span {first(r'[(]# s[)]', text):.3f} s" in imported.notes


def report(imported, text):
    (profile,) = imported.profiles
    for share, name in re.findall(r"([\d.]+)% python \S+ \[.\] (\S+)", text):
        (own,) = [weight.own for weight in profile.top if weight.name == name]
        assert own / profile.total == pytest.approx(float(share) / 100)


def counters(imported, text):
    values = {metric.name: metric.value for metric in imported.metrics}
    for value, name in re.findall(r"([\d.]+)(?:,,| +)(context-switches|page-faults|cpu-migrations)", text):
        assert values[name] == float(value)
    assert values["task-clock_seconds"] == pytest.approx(first(r"#(?:,| )msec", text, 1e3))


def trace(imported, text):
    kept = first(r"# complete", text) or first(r"events in it: #", text)
    recording = 1 if "'Trace': 1" in text else 0
    assert imported.rows.kept == kept - recording
    (profile,) = imported.profiles
    totals = {weight.name: (weight.count, weight.total) for weight in profile.top}
    for name, count, length in re.findall(r"'([^']+)' (\d+)x ([\d.]+) ms", text.partition("annotations")[2]):
        assert totals[name] == (int(count), pytest.approx(float(length) / 1e3, abs=1e-6))
    threads = first(r"# threads with ops", text)
    assert threads is None or len(profile.threads) == threads


def torch_table(imported, text):
    assert imported.profiles[0].total == pytest.approx(first(r"total: #ms", text, 1e3))


def values_of(imported, source, name):
    return [row.value for row in imported.series if (row.source, row.name) == (source, name)]


def mpstat(imported, text):
    idle = values_of(imported, "cpu", "cpu_idle")
    wanted = first(r"mean #", text, 100) or first(r"Average: all .*? #\.?(?:;|$)", text, 100)
    assert sum(idle) / len(idle) == pytest.approx(wanted, abs=2e-3)  # mpstat weighs by the ticks of an interval


def pidstat(imported, text):
    (source,) = {row.source for row in imported.series if row.source.startswith("pid:")}
    used = values_of(imported, source, "cpu_of_one_core")
    wanted = first(r"mean #", text, 100) or first(r"Average: 0 \d+ [\d.]+ [\d.]+ [\d.]+ [\d.]+ #", text, 100)
    assert sum(used) / len(used) == pytest.approx(wanted, abs=3e-4)


def vmstat(imported, text):
    assert imported.rows.read == first(r"# rows", text)
    for name, key, size in (
        ("cpu_user", "us", 100),
        ("cpu_system", "sy", 100),
        ("cpu_idle", "id", 100),
        ("runnable", "r mean", 1),
    ):
        values = values_of(imported, "machine", name)
        assert sum(values) / len(values) == pytest.approx(first(rf"\b{key} #", text, size), rel=0.02)


def iostat(imported, text):
    idle = [float(one) / 100 for one in re.findall(r"'([\d.]+)'", text)]
    assert values_of(imported, "machine", "cpu_idle") == pytest.approx(idle[1:])


def prometheus(imported, text):
    for part in re.findall(r"(/\w+: count [^;]+)", text):
        (level,) = [one for one in imported.levels if part.partition(":")[0] in one.name]
        count, total = found(r"count #, sum # s", part)
        assert compared(level, {"requests": count, "mean_s": total / count, **times(part)}) == {}
    if "no request series yet" in text:
        assert imported.levels == ()


# By the beginning or the end of a file's name; the first that fits.
CHECKS = (
    (r"wrk_", wrk),
    (r"hey_csv", requests),
    (r"hey_", hey_report),
    (r"ab_.*percentiles", percentiles),
    (r"ab_.*\.txt", ab_report),
    (r"ab_|h2load_.*log\.tsv|jmeter_(csv|xml).*jtl", requests),
    (r"h2load_", h2load_report),
    (r"autocannon_.*json", autocannon_json),
    (r"autocannon_text", lambda imported, text: whole(imported, {"requests": first("200 #;", text), "p99": 0.025})),
    (r"locust_.*failures", locust_failures),
    (r"locust_.*history", locust_history),
    (r"locust_.*stats", locust_stats),
    (r"locust_json", locust_json),
    (r"k6_(csv|ndjson)", k6_rows),
    (r"k6_text", k6_text),
    (r"k6_", k6_summary),
    (r"perf_analyzer_.*\.csv", perf_analyzer_csv),
    (r"perf_analyzer_.*\.profile", perf_analyzer_export),
    (r"perf_analyzer_", perf_analyzer_text),
    (r"jmeter_.*stdout", jmeter_console),
    (r"pyspy_dump", dump),
    (r"pyspy_speedscope", speedscope),
    (r"pyspy_chrometrace", pairs),
    (r"pyspy_raw|perf_.*folded", stacks),
    (r"perf_.*script", script),
    (r"perf_.*report", report),
    (r"perf_stat", counters),
    (r"torch_.*table", torch_table),
    (r"torch_", trace),
    (r"sysstat_.*mpstat", mpstat),
    (r"sysstat_.*pidstat", pidstat),
    (r"sysstat_.*vmstat", vmstat),
    (r"sysstat_.*iostat", iostat),
    (r"prom_", prometheus),
)
NO_RESULT = re.compile(
    r"only a message|no result|not a whole JSON|refused as unknown|no export|Interrupt signal|Failed to |error: failed"
)


def is_partial(name, text):
    """Whether the manifest says that the file has no result at all, rather than a part of one."""
    has_part = "may be shown" in text or "whole complete events" in text or ("Pass" in text and "Request count" in text)
    return bool(NO_RESULT.search(text)) and not has_part


@pytest.mark.parametrize("name", sorted(READINGS))
def test_a_file_reads_as_its_manifest_says(name, capsys):
    text = READINGS[name]
    if is_partial(name, text):
        with pytest.raises(ConfigError) as refused:
            read_file(FOLDER / name)
        told = f"refused: {str(refused.value).partition(': ')[2]:.90}"
    else:
        imported = read_file(FOLDER / name)
        check = next(check for pattern, check in CHECKS if re.match(pattern, name))
        check(imported, text)
        rows = imported.rows
        dropped = ", ".join(f"{count} {reason}" for reason, count in rows.dropped.items()) or "none"
        told = f"{imported.format}: {rows.read} read, {rows.kept} kept, dropped {dropped}; agrees with: {text:.110}"
    if "PERFKIT_CASES" in os.environ:
        with capsys.disabled():
            print(f"\n{name}: {told}", end="")
