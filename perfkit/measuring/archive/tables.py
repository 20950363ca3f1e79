"""How does a table become Parquet and come back with its integers, nulls and extra columns intact?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.format import TABLES, TableFormat

if TYPE_CHECKING:
    from pandas import DataFrame

_INTEGER_NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
MAX_CELLS = 1 << 31
"""A table above this (16 GiB of integers) was not written by a run; a small file can claim any size."""

_NULL_BLOCK = 1 << 16


def to_arrow(name: str, frame: DataFrame) -> Any:
    """The frame as an Arrow table in the format's columns, extra ones behind; raises ArchiveError."""
    import pyarrow

    table = _format_of(name)
    columns = {column: _arrow_column(table, column, frame) for column in table.columns}
    for column in frame.columns:
        if column not in columns:
            columns[str(column)] = _arrow_column(table, column, frame)
    return pyarrow.table(columns)


def write_table(arrow: Any, sink: Any) -> None:
    """Write an Arrow table as Parquet into a binary file or an Arrow sink; raises what that raises.

    Instants and identifiers grow in small steps: delta encoding halves the file and the time.
    """
    import pyarrow
    from pyarrow import parquet

    integers = [column.name for column in arrow.schema if column.type == pyarrow.int64()]
    parquet.write_table(
        arrow,
        sink,
        compression="zstd",
        use_dictionary=[name for name in arrow.column_names if name not in integers],
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    )


def needed_bytes(arrows: Mapping[str, Any]) -> int:
    """What some tables take as Parquet, found by writing them to nowhere."""
    import pyarrow

    total = 0
    for arrow in arrows.values():
        sink = pyarrow.MockOutputStream()
        write_table(arrow, sink)
        total += sink.size()
    return total


def read_table(data: bytes, where: Path) -> DataFrame:
    """A Parquet file's bytes as a frame with nullable integers; raises ArchiveError."""
    import pyarrow

    return _to_frame(read_arrow(pyarrow.BufferReader(data), where), where)


def read_columns(file: BufferedReader, wanted: Sequence[str], where: Path) -> DataFrame:
    """Those of some columns that an open Parquet file has, in its order; raises ArchiveError.

    For long tables: texts are categories, integers are nullable only where one is absent.
    """
    import pandas

    texts = [name for name in wanted if any(table.columns.get(name) == "text" for table in TABLES.values())]
    arrow = read_arrow(file, where, wanted, texts)
    found: dict[str, Any] = {}
    while arrow.num_columns:  # each is let go before the next is made
        name, column, arrow = arrow.column_names[0], arrow.column(0), arrow.remove_column(0)
        is_plain = str(column.type) in _INTEGER_NAMES and not column.null_count
        found[name] = column.to_numpy() if is_plain else _to_frame(arrow.from_arrays([column], [name]), where)[name]
    return pandas.DataFrame(found, copy=False)


def read_arrow(source: Any, where: Path, wanted: Sequence[str] | None = None, texts: Sequence[str] = ()) -> Any:
    """An open Parquet file as an Arrow table, or some of its columns, `texts` as dictionaries; raises ArchiveError."""
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(source, read_dictionary=list(texts), pre_buffer=wanted is None)
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells > MAX_CELLS:
            raise ArchiveError(f"{where} claims {cells} cells, at most {MAX_CELLS} are read; do not trust this folder")
        known = None if wanted is None else [name for name in file.schema_arrow.names if name in wanted]
        return file.read(columns=known)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ArchiveError(f"{where} is no whole Parquet file ({error}); restore it from a copy") from error


def _to_frame(arrow: Any, where: Path) -> DataFrame:
    import pandas
    import pyarrow

    integers = {getattr(pyarrow, name)(): _nullable(pandas, name) for name in _INTEGER_NAMES}
    try:
        frame: DataFrame = arrow.to_pandas(
            types_mapper=integers.get, ignore_metadata=True, split_blocks=True, self_destruct=True
        )
    except (pyarrow.ArrowException, ValueError) as error:
        raise ArchiveError(f"{where} cannot be read as a table ({error}); restore it from a copy") from error
    return frame


def _nullable(pandas: Any, name: str) -> Any:
    return pandas.api.types.pandas_dtype(name.replace("int", "Int").replace("u", "U"))


def _format_of(name: str) -> TableFormat:
    if name not in TABLES:
        raise ArchiveError(f"a run has no table {name!r}; it has {', '.join(TABLES)}")
    return TABLES[name]


def _arrow_column(table: TableFormat, column: str, frame: DataFrame) -> Any:
    import pyarrow

    kind = table.columns.get(column)
    wanted = {"integer": pyarrow.int64(), "number": pyarrow.float64(), "text": pyarrow.string()}.get(kind or "")
    if column not in frame.columns:
        if column in table.keys:
            raise ArchiveError(f"table {table.name} came without {column}; every row needs it")
        return _nulls(len(frame), wanted)
    try:
        values = pyarrow.Array.from_pandas(frame[column])
        values = values if wanted is None else values.cast(wanted)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise ArchiveError(
            f"column {column} of table {table.name} cannot be saved as {kind or 'one type'}: {error}"
        ) from error
    if column in table.keys and values.null_count:
        raise ArchiveError(
            f"column {column} of table {table.name} lacks {values.null_count} values; every row needs one"
        )
    return values


def _nulls(count: int, kind: Any) -> Any:
    """A column of nulls that holds one block of them, however long it is: most columns of a foreign run are so."""
    import pyarrow

    block = pyarrow.nulls(min(count, _NULL_BLOCK), kind)
    whole, rest = divmod(count, _NULL_BLOCK)
    return pyarrow.chunked_array([block] * whole + [block[:rest]], kind)
