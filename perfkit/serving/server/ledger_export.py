"""How does a reader get the ledger? As an Arrow stream with one int64 column per cell."""

from __future__ import annotations

from typing import Any

from perfkit.serving.instrument.ledger import Ledger

ARROW = b"application/vnd.apache.arrow.stream"


def export(ledger: Ledger, since: int) -> bytes:
    """All closed rows from number `since` on.

    The schema's metadata carries `next` (what to ask for next time) and `lost` (rows that were
    overwritten before anybody read them). Absent cells are 0, as in the ledger.
    """
    import numpy
    import pyarrow

    cells, lost = ledger.read(since)
    matrix = numpy.frombuffer(cells, dtype=numpy.int64).reshape(-1, ledger.width)
    until = int(matrix[-1, 0]) if len(matrix) else since
    arrays: list[Any] = [pyarrow.array(numpy.ascontiguousarray(matrix[:, k])) for k in range(ledger.width)]
    metadata = {"next": str(max(until, since)), "lost": str(lost)}
    schema = pyarrow.schema([(name, pyarrow.int64()) for name in ledger.columns], metadata=metadata)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pyarrow.table(arrays, schema=schema))
    buffer: bytes = sink.getvalue().to_pybytes()
    return buffer
