"""Does any damage to a file end in anything but a clear answer, and does any change a unit without a word?"""

import gzip
import json
import random
import re
import resource
from itertools import filterfalse
from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers import jmeter_summary, locust_json
from perfkit.measuring.importers.audit import audit_document
from perfkit.measuring.importers.foreignrun import judged
from perfkit.measuring.importers.formats import FORMATS, read_file
from perfkit.showing.report.foreignrows import facts, tables

HERE = Path(__file__).parent
SMALL = 7000  # bytes
CONTENTS = [
    path.read_bytes()
    for folder in ("samples", "cases")
    for path in sorted((HERE / folder).iterdir())
    if 0 < path.stat().st_size < SMALL and path.suffix not in (".gz", ".md")
]
ODD = [b"", b"inf", b"NaN", b"-1", b"1e308", b"9" * 400, b'"', b"\0", b"\xff\xfe", b"{", b"}", b"[", b"]", b",", b";"]
ODD += [b"|", b"null", b"\n", b"\r", b"\t", "秒".encode(), b"\xd0", b"{}", b"[]", b'"x"', b"18446744073709551616"]
ODD += [b"ms", b"us", b"s", b"%", b"#", b" ", b"\xa0", b"1.234,5", b"12:00:00", b"true", b"N/A", b"-", b"[N/A]"]
HANG_S = 2.0
COMPUTED = {jmeter_summary.NAME, locust_json.NAME}  # parts once the whole is lost; quantiles of what is left
FULL = [pytest.mark.slow, pytest.mark.timeout(3600)]


def outcome(path):
    """Reads, audits and shows; anything but an answer or a ConfigError is a failure of the test."""
    try:
        imported = read_file(path)
    except ConfigError:
        return None
    run = judged(imported)
    json.dumps(audit_document(imported, list(run.findings)))
    json.dumps(imported.to_json())
    json.dumps(run.flame)
    assert [*facts(imported), *tables(imported)]
    return imported


def mutated(content, rng):
    """A few cuts, swaps and odd values."""
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.randint(0, 40))
        numbers = [match.span() for match in re.finditer(rb"\d+", content)]
        choice = rng.randrange(6)
        if choice == 0 and numbers:
            at, end = rng.choice(numbers)
        if choice == 1:
            content = content[:at] or b"x"
        elif choice == 2:
            content = rearranged(content, rng)
        elif choice == 3:
            content = content[:at] + content[end:] + content[at:end]
        elif choice == 4:
            other = rng.choice(CONTENTS)
            content = content[:at] + other[rng.randrange(len(other)) :]
        else:
            content = content[:at] + rng.choice(ODD) + content[end:]
    return content


def rearranged(content, rng):
    """Lines shuffled, lost or doubled: no word or number is changed."""
    lines = content.split(b"\n")
    choice = rng.randrange(4)
    if choice == 0:
        rng.shuffle(lines)
    elif choice == 1:
        del lines[rng.randrange(len(lines))]
    elif choice == 2:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    else:
        lines = lines[: rng.randrange(len(lines)) + 1]
    return b"\n".join(lines)


def packed(content, rng):
    """The same text in another encoding, with other line ends, or compressed."""
    text = content.decode("utf-8")
    form = rng.choice(("utf-16", "utf-16-le", "utf-8-sig", "crlf", "gzip"))
    if form == "gzip":
        return gzip.compress(content)
    return text.replace("\n", "\r\n").encode() if form == "crlf" else text.encode(form)


def is_document(content):
    """One JSON document: a line that is lost there moves what follows under another name."""
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def cpu_s():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def test_every_format_is_among_what_is_damaged(tmp_path):
    path = tmp_path / "whole"
    found = set()
    for content in CONTENTS:
        path.write_bytes(content)
        found |= {imported.format for imported in [outcome(path)] if imported}
    assert {kind.name for kind in FORMATS} - found == set()


@pytest.mark.parametrize("number", range(len(CONTENTS)))
def test_a_heading_alone_or_half_a_file_is_read_or_refused_in_words(number, tmp_path):
    content = CONTENTS[number]
    path = tmp_path / "part"
    for end in {content.find(b"\n") + 1, len(content) // 3, len(content) // 2, len(content) - 1} - {0}:
        path.write_bytes(content[:end])
        outcome(path)


@pytest.mark.parametrize("count", [300, pytest.param(80_000, marks=FULL)])
def test_no_damage_ends_in_a_crash_or_a_hang(count, tmp_path):
    rng = random.Random(17)
    path = tmp_path / "damaged"
    read, slow = 0, []
    for number in range(count):
        content = mutated(rng.choice(CONTENTS), rng) or b"x"
        path.write_bytes(content)
        started = cpu_s()
        read += outcome(path) is not None
        if cpu_s() - started > HANG_S:
            slow.append((number, content[:80]))
    print(f"{count} damaged files: {read} read, {count - read} refused, {len(slow)} slow, {cpu_s():.0f} s of CPU")
    assert slow == []


def times(imported):
    """Every time and value that the file itself states, by kind: in what unit it was read shows in its size."""
    requests = imported.requests
    found = {("latency", int(one)) for one in (() if requests is None else requests.latency_ns)}
    is_stated = requests is None and imported.format not in COMPUTED
    for level in imported.levels if is_stated else ():
        stated = {} if level.is_interpolated else level.percentiles_s
        values = (*stated.values(), level.max_s, level.min_s)
        found |= {("latency", round(value * 1e9)) for value in values if value}
    found |= {((row.source.partition(":")[0], row.name), row.value) for row in imported.series}
    return found | {(profile.unit, True) for profile in imported.profiles}


@pytest.mark.parametrize("count", [150, pytest.param(20_000, marks=FULL)])
def test_lines_that_move_or_are_lost_never_change_a_unit(count, tmp_path):
    rng = random.Random(29)
    path = tmp_path / "damaged"
    known = {}
    for content in filterfalse(is_document, CONTENTS):
        path.write_bytes(content)
        if (imported := outcome(path)) is not None:
            path.write_bytes(content + content)  # vmstat's first report counts where it is not the first
            twice = outcome(path)
            known[content] = (imported.format, times(imported) | (times(twice) if twice else set()))
    read = 0
    for _ in range(count):
        content = rng.choice(list(known))
        changed = rearranged(content, rng)
        path.write_bytes((packed(changed, rng) if rng.random() < 0.5 else changed) or b"x")
        imported = outcome(path)
        if imported is None or imported.format != known[content][0]:
            continue
        read += 1
        assert times(imported) <= known[content][1], changed[:300]
    print(f"{count} rearranged files: {read} read as the same format, none in another unit, {cpu_s():.0f} s of CPU")


def test_a_unit_that_was_changed_by_a_thousand_would_be_seen(tmp_path):
    path = tmp_path / "planted"
    path.write_text("concurrency,mean (ms),p99 (ms),qps\n1,10,12,99\n2,11,14,180\n")
    before = times(outcome(path))
    path.write_text("concurrency,mean (us),p99 (us),qps\n1,10,12,99\n2,11,14,180\n")
    assert not times(outcome(path)) <= before
