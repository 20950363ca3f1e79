"""How is a large JMeter CSV taken in columns, with the very rules that single rows are taken by?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.measuring.importers.column_blocks import NotPlain, coded, column_blocks
from perfkit.measuring.importers.delimited import Table
from perfkit.measuring.importers.imported import Tally
from perfkit.measuring.importers.source import Source

if TYPE_CHECKING:
    from perfkit.measuring.importers.jmeter import Reader

_LATEST_MS = 10**13  # thirteen digits
_LONGEST_MS = 10**9
_NS_PER_MS = 1_000_000
_NUMBERS = ("timeStamp", "elapsed")


def take_columns(source: Source, table: Table, reader: Reader, tally: Tally) -> None:
    """Hands every row to the reader; raises NotPlain where rows must be read one by one."""
    places = {name: at for name, at in reader.places.items() if at < len(table.columns)}
    if any(name not in places for name in _NUMBERS):
        raise NotPlain("a column is missing")
    kinds = {at: "integer" if name in _NUMBERS else "text" for name, at in places.items()}
    for block in column_blocks(source, table, kinds, tally):
        _take(_Block(block, places), reader)


class _Block:
    """Columns by JMeter's names; one that the file lacks reads as empty texts."""

    def __init__(self, columns: Mapping[int, Any], places: Mapping[str, int]) -> None:
        self._columns, self._places = columns, places

    def numbers(self, name: str, below: int) -> Any:
        """Whole numbers; raises NotPlain where one is missing or out of range."""
        column = self._columns[self._places[name]]
        values = column.to_numpy(zero_copy_only=False)
        if column.null_count or (len(values) and (values.min() < 0 or values.max() >= below)):
            raise NotPlain(f"{name} out of range")
        return values

    def texts(self, name: str) -> tuple[Any, Sequence[str]]:
        """Codes, and the texts that they stand for."""
        if name not in self._places:
            length = len(next(iter(self._columns.values())))
            return np.zeros(length, dtype=np.int32), [""]
        return coded(self._columns[self._places[name]])

    def where(self, name: str, verdict: Any) -> Any:
        """For each row whether its text passes."""
        codes, texts = self.texts(name)
        return np.array([verdict(text) for text in texts], dtype=bool)[codes]


def _take(block: _Block, reader: Reader) -> None:
    start_ns = block.numbers("timeStamp", _LATEST_MS) * _NS_PER_MS
    latency_ns = block.numbers("elapsed", _LONGEST_MS) * _NS_PER_MS
    is_transaction = block.where("responseMessage", reader.is_of_transaction)
    if reader.has_type:
        is_transaction |= block.where("URL", "null".__eq__) & block.where("dataType", "".__eq__)
    failed = block.where("success", lambda text: text.strip().lower() == "false")
    is_untold = block.where("success", "".__eq__)
    is_error = np.where(is_untold, block.where("responseCode", reader.is_bad_code), failed)
    codes, labels = block.texts("label")
    names = [label.strip() for label in labels]
    for log, chosen in ((reader.transactions, is_transaction), (reader.log, ~is_transaction)):
        log.add_many(start_ns[chosen], latency_ns[chosen], is_error[chosen], (codes[chosen], names))
    reader.count_transactions(int(is_transaction.sum()))
    thread_codes, threads = block.texts("allThreads")
    used = np.unique(thread_codes[~is_transaction])
    reader.take_threads(threads[code] for code in used)
    if reader.connections is not None:
        is_new = block.where("Connect", lambda text: text not in ("0", ""))
        reader.connections += int((is_new & ~is_transaction).sum())
