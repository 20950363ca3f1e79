"""Can a large, well-formed CSV be read in columns, which is some ten times faster than row by row?

Arrow reads it block by block, so that memory stays bounded. Whatever is not plain (another encoding, a quoted
line end, a cell that is no number) raises NotPlain, and the caller reads row by row, which tells it apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfkit.measuring.importers.delimited import CUT_ROW, Table
from perfkit.measuring.importers.imported import Tally
from perfkit.measuring.importers.source import Source

LEAST_BYTES = 8 << 20  # below it the rows are read before Arrow is loaded
_BLOCK_BYTES = 4 << 20


class NotPlain(Exception):
    """The file has something that only the reader of rows can judge."""


def is_large(source: Source) -> bool:
    """Whether reading in columns is worth it and possible at all."""
    return source.is_plain_utf8 and source.path.stat().st_size >= LEAST_BYTES


def column_blocks(source: Source, table: Table, kinds: Mapping[int, str], tally: Tally) -> Iterator[Mapping[int, Any]]:
    """Blocks of rows as Arrow columns by place; `kinds` is integer or text. Raises NotPlain.

    A row of another length is dropped and counted; one that holds a quote may be part of a longer one.
    """
    import pyarrow
    from pyarrow import csv

    names = [f"c{place}" for place in range(len(table.columns))]
    types = {"integer": pyarrow.int64(), "text": pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}
    skipped: list[str] = []

    def skip(row: Any) -> str:
        skipped.append(row.text)
        return "skip"

    try:
        reader = csv.open_csv(
            source.path,
            read_options=csv.ReadOptions(
                column_names=names, skip_rows=int(table.has_heading), block_size=_BLOCK_BYTES, use_threads=True
            ),
            parse_options=csv.ParseOptions(delimiter=table.delimiter, invalid_row_handler=skip),
            convert_options=csv.ConvertOptions(
                include_columns=[names[place] for place in kinds],
                column_types={names[place]: types[kind] for place, kind in kinds.items()},
            ),
        )
        for batch in reader:
            yield dict(zip(kinds, batch.columns, strict=True))
    except pyarrow.ArrowException as error:
        raise NotPlain(str(error)) from None
    if any('"' in text for text in skipped):
        raise NotPlain("a quoted line end")
    if cut := sum(1 for text in skipped if text.strip()):
        tally.dropped[CUT_ROW] += cut


def coded(column: Any) -> tuple[Any, Sequence[str]]:
    """A text column as codes and the texts that they stand for."""
    return column.indices.to_numpy(), column.dictionary.to_pylist()
