"""What does a JMeter results file (JTL as CSV) say?

`timeStamp` is the start of a sample and `elapsed` its whole time; `Latency` is the time to the first
byte and not used. Rows of transaction controllers repeat the samplers below them. JMeter 2 writes no
heading by default, and any column, delimiter and form of time stamp can be configured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from perfkit.measuring.importers.column_blocks import NotPlain, is_large
from perfkit.measuring.importers.delimited import Table, delimiter_of, first_line, headings, split_line
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.jmeter_columns import take_columns
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "JMeter CSV"
_OLD = (
    "timeStamp elapsed label responseCode responseMessage threadName dataType success bytes "
    "grpThreads allThreads Latency"
)
_NEW = (
    "timeStamp elapsed label responseCode responseMessage threadName dataType success failureMessage bytes sentBytes "
    "grpThreads allThreads URL Latency IdleTime Connect"
)
_SHORT = (
    "timeStamp elapsed label responseCode threadName success bytes grpThreads allThreads Latency "
    "SampleCount ErrorCount Hostname"
)
# Without a heading: (number of cells, position of true/false) -> columns.
_LAYOUTS = {
    (12, 7): _OLD.split(),
    (13, 7): [*_OLD.split(), "Connect"],
    (13, 5): _SHORT.split(),
    (16, 7): [name for name in _NEW.split() if name != "URL"],
    (17, 7): _NEW.split(),
}
_USED = (
    *("timeStamp", "elapsed", "label", "responseCode", "responseMessage"),
    *("dataType", "success", "allThreads", "URL", "Connect"),
)
_EPOCH_MS = re.compile(r"1\d{12}")
TRANSACTION = "row of a transaction controller (its samplers are counted)"
_NO_NUMBER = "no number in timeStamp or elapsed"
OF_TRANSACTION = "Number of samples in transaction"
_DIGITS = 9  # of milliseconds: eleven days
_STAMP_DIGITS = 13  # of milliseconds since the epoch
_FORMS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S,%f")


def matches(head: str) -> bool:
    """By the names of the columns, or by a first row that begins with epoch milliseconds and holds true or false."""
    return {"timestamp", "elapsed"} <= {name.lower() for name in headings(head)} or _columns_of(head) is not None


def read(source: Source) -> Imported:
    """Samplers as requests; rows of transactions only where there is nothing else."""
    reader = _read_columns(source) or _read_rows(source)
    tally = reader.tally
    log = reader.log if len(reader.log) or not len(reader.transactions) else reader.transactions
    tally.kept = len(log)
    if log is reader.transactions:
        del tally.dropped[TRANSACTION]
    clients = reader.most_threads or None
    known = {"loop": "closed", "concurrency": clients, "new_connections": reader.connections}
    levels = log.levels(**known) if len(log) else ()
    notes = [*source.notes, "Latency (time to the first byte) is not used; elapsed is the whole time"]
    if log.stride > 1:
        notes.append(f"quantiles from every {log.stride}th request; counts, means and extremes from all")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="epoch, at the start of a sample", scope="request", basis="sent"),
        levels=levels,
        requests=log.requests(),
        notes=tuple(notes),
    )


def _read_columns(source: Source) -> Reader | None:
    """A large and plain file; None where it is neither."""
    if not is_large(source):
        return None
    tally = Tally()
    table = Table(source, tally, _columns_of(source.head))
    reader = Reader(table, tally)
    try:
        take_columns(source, table, reader, tally)
    except NotPlain:
        return None
    source.note_cut_end()
    return reader


def _read_rows(source: Source) -> Reader:
    tally = Tally()
    table = Table(source, tally, _columns_of(source.head))
    reader = Reader(table, tally)
    for row in table.rows():
        reader.take(row)
    return reader


def _columns_of(head: str) -> list[str] | None:
    """The columns of a file without a heading; None where there is one, or it is another format."""
    line = first_line(head)
    cells = [cell.strip() for cell in split_line(line, delimiter_of(line))]
    verdicts = [index for index, cell in enumerate(cells) if cell.lower() in ("true", "false")]
    if len(cells) < 4 or not verdicts or not _EPOCH_MS.fullmatch(cells[0]) or not cells[1].isdecimal():
        return None
    guessed = ["timeStamp", "elapsed", "label", "responseCode", *(f"column {i}" for i in range(5, len(cells) + 1))]
    guessed[verdicts[0]] = "success"
    return _LAYOUTS.get((len(cells), verdicts[0]), guessed)


class Reader:
    """Sorts rows into samplers and transactions."""

    def __init__(self, table: Table, tally: Tally) -> None:
        self.log, self.transactions = RequestLog(), RequestLog()
        self.most_threads = 0
        self.tally = tally
        self._has_connect, self.has_type = (table.index(name) is not None for name in ("Connect", "dataType"))
        self.connections: int | None = 0 if self._has_connect else None
        absent = len(table.columns)  # where take() puts an empty cell
        found = {name: table.index(name) for name in _USED}
        self.places = {name: absent if at is None else at for name, at in found.items()}
        self._at = tuple(self.places.values())

    def take(self, row: list[str]) -> None:
        """One row."""
        row.append("")
        stamp, elapsed, label, code, message, kind, success, threads, url, connect = [row[at] for at in self._at]
        start_ns = start_of(stamp.strip())
        if start_ns is None or not elapsed.isdecimal() or len(elapsed) > _DIGITS:
            self.tally.dropped[_NO_NUMBER] += 1
            return
        is_transaction = self.is_of_transaction(message) or (url == "null" and self.has_type and not kind)
        is_error = success.strip().lower() == "false" if success else self.is_bad_code(code)
        log = self.transactions if is_transaction else self.log
        log.add(start_ns, int(elapsed) * 1_000_000, is_error, label.strip())
        if is_transaction:
            self.count_transactions(1)
            return
        self.take_threads((threads,))
        if self.connections is not None and connect not in ("0", ""):
            self.connections += 1

    @staticmethod
    def is_of_transaction(message: str) -> bool:
        """By what JMeter writes of a transaction controller."""
        return message.startswith(OF_TRANSACTION)

    @staticmethod
    def is_bad_code(code: str) -> bool:
        """Where nothing else tells success from failure."""
        return not code.startswith(("2", "3"))

    def count_transactions(self, count: int) -> None:
        """Rows that repeat their samplers."""
        if count:
            self.tally.dropped[TRANSACTION] += count

    def take_threads(self, counts: Iterable[str]) -> None:
        """How many threads were active at once."""
        for text in counts:
            if len(text) <= _DIGITS and text.isdecimal() and int(text) > self.most_threads:
                self.most_threads = int(text)


def start_of(text: str) -> int | None:
    """A JMeter time stamp in nanoseconds since the epoch: milliseconds, or a date."""
    if text.isdecimal():
        return int(text) * 1_000_000 if len(text) <= _STAMP_DIGITS else None
    for form in _FORMS:
        try:
            return _positive_ns(datetime.strptime(text, form))
        except ValueError:
            continue
    try:
        return _positive_ns(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _positive_ns(moment: datetime) -> int | None:
    """Without a zone as if it were UTC: only differences are used."""
    nanoseconds = int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
    return nanoseconds if nanoseconds >= 0 else None
