"""Which settings work against each other without being wrong? Told in /stats and in the log."""

from __future__ import annotations

from perfkit.settings.server import ServerSettings

_MOST_IN_HAND = 2  # times the best batch: a rule of thumb, from seed 000, section 4.2


def cautions(settings: ServerSettings) -> list[str]:
    """One line for each; empty when there is nothing to say."""
    return [text for text in (_too_much_in_hand(settings),) if text]


def _too_much_in_hand(settings: ServerSettings) -> str:
    """More workers than can fill their batches.

    A worker has one batch in hand, so `batch.max_size` requests at most. What workers share out among themselves
    comes from one queue: above twice the best batch in all hands, the batches stay part empty (seed 000, section 4.2).
    """
    batch, workers = settings.batch, _workers(settings)
    best = batch.best_size or (batch.max_size if batch.max_size > 1 else None)
    if best is None or workers * batch.max_size <= _MOST_IN_HAND * best:
        return ""
    which = "batch.best_size" if batch.best_size else "batch.max_size, for batch.best_size is not set"
    return (
        f"{workers} workers with up to {batch.max_size} requests in hand are {workers * batch.max_size}, more than "
        f"{_MOST_IN_HAND} x {best} ({which}): batches may leave part empty; "
        f"try {max(1, _MOST_IN_HAND * best // batch.max_size)} workers, or a longer window, and measure"
    )


def _workers(settings: ServerSettings) -> int:
    """Threads that take batches from the common queue, at most."""
    model = settings.concurrency.model
    if model == "elastic":
        return settings.elastic.max
    return 1 if model in ("serial", "thread_per_request") else settings.workers
