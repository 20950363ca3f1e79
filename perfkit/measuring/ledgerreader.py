"""How is a server's ledger read before it overwrites itself? In pieces, while the load goes on."""

from __future__ import annotations

from typing import Any

from perfkit.measuring.service import Service

_DUE_RATIO = 0.4  # of the ledger's capacity: a reading costs the server time, so it waits until it must


class LedgerReader:
    """Reads one round's rows of both ledgers. For one thread."""

    def __init__(self, service: Service, stats: dict[str, Any] | None) -> None:
        self._service = service
        self._ledger = stats["ledger"] if stats and stats["ledger"]["is_stamped"] else None
        self._pieces: dict[str, list[Any]] = {"requests": [], "batches": []}
        self._next = {table: self._ledger[table] for table in self._pieces} if self._ledger else {}
        self.lost = 0

    def read_if_due(self, stats: dict[str, Any]) -> None:
        """Read when much of the capacity has been written since the last reading."""
        for table, start in self._next.items():
            if stats["ledger"][table] - start > _DUE_RATIO * stats["ledger"]["capacity"]:
                self._read(table)

    def finish(self) -> tuple[Any | None, Any | None]:
        """All rows of requests and of batches as Arrow tables; None for a service without a ledger."""
        import pyarrow

        if self._ledger is None:
            return None, None
        for table in self._pieces:
            self._read(table)
        requests, batches = (pyarrow.concat_tables(pieces) for pieces in self._pieces.values())
        return requests, batches

    def _read(self, table: str) -> None:
        piece = self._service.ledger(table, self._next[table])
        self._next[table] = int(piece.schema.metadata[b"next"])
        self.lost += int(piece.schema.metadata[b"lost"])
        self._pieces[table].append(piece.replace_schema_metadata(None))
