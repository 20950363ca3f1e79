"""Which copies of a model are on the device, and which one leaves when another has to come?

The device has room for some copies, its slots; the least recently used one that nobody uses leaves (LRU).
Who needs a copy asks and gets a ticket. Tickets are granted in the order of asking, so that nobody starves: while
one waits for a slot, later ones wait behind it, also for a copy that is there. Pure: it knows no thread and no copy
of anything; whoever drives it does the loading and tells how that went. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import Enum

from perfkit.errors import ConfigError


class Stand(Enum):
    """How a ticket stands."""

    WAITING = "waiting"  # no slot for its copy yet
    LOAD = "load"  # its holder must load the copy into `slot`
    LOADING = "loading"  # another holder loads its copy
    READY = "ready"  # its copy is there


class Ticket:
    """One user's claim on a copy, until it is handed back."""

    __slots__ = ("copy", "slot", "stand")

    def __init__(self, copy: int) -> None:
        self.copy = copy
        self.slot: int | None = None
        self.stand = Stand.WAITING


class _Resident:
    """A copy that has a slot."""

    __slots__ = ("is_loaded", "slot", "tickets")

    def __init__(self, slot: int, *, is_loaded: bool) -> None:
        self.slot = slot
        self.is_loaded = is_loaded
        self.tickets: list[Ticket] = []


class Residency:
    """The slots of one device. At first the copies 0, 1, … fill them."""

    def __init__(self, slots: int, copies: int) -> None:
        if slots < 1:
            raise ConfigError(f"a device with {slots} slots holds no copy; give it 1 or more")
        self.loads = 0  # how many times a copy was told to come
        there = range(min(slots, copies))
        self._free = deque(range(len(there), slots))
        self._residents = OrderedDict((copy, _Resident(copy, is_loaded=True)) for copy in there)  # least recent first
        self._waiting: deque[Ticket] = deque()

    @property
    def resident(self) -> tuple[int, ...]:
        """The copies on the device, the least recently used first."""
        return tuple(copy for copy, there in self._residents.items() if there.is_loaded)

    @property
    def waiting(self) -> int:
        """Tickets without a slot."""
        return len(self._waiting)

    def ask(self, copy: int) -> Ticket:
        """Claim a copy."""
        ticket = Ticket(copy)
        self._waiting.append(ticket)
        self._grant()
        return ticket

    def loaded(self, ticket: Ticket) -> None:
        """The holder of a ticket that said LOAD is done: whoever waits for that copy may use it."""
        there = self._residents[ticket.copy]
        there.is_loaded = True
        for user in there.tickets:
            user.stand = Stand.READY

    def failed(self, ticket: Ticket) -> None:
        """The load went wrong: the slot is free, the ticket is void, and who waited for that load asks as the first."""
        there = self._residents.pop(ticket.copy)
        self._free.append(there.slot)
        others = [user for user in there.tickets if user is not ticket]
        for user in others:
            user.slot, user.stand = None, Stand.WAITING
        self._waiting.extendleft(reversed(others))
        self._grant()

    def hand_back(self, ticket: Ticket) -> None:
        """The user is done with its copy, which may leave now when nobody else uses it."""
        self._residents[ticket.copy].tickets.remove(ticket)
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._place(self._waiting[0]):
            self._waiting.popleft()

    def _place(self, ticket: Ticket) -> bool:
        there = self._residents.get(ticket.copy)
        if there is not None:
            ticket.stand = Stand.READY if there.is_loaded else Stand.LOADING
            self._residents.move_to_end(ticket.copy)
        else:
            slot = self._find_slot()
            if slot is None:
                return False
            there = self._residents[ticket.copy] = _Resident(slot, is_loaded=False)
            ticket.stand = Stand.LOAD
            self.loads += 1
        ticket.slot = there.slot
        there.tickets.append(ticket)
        return True

    def _find_slot(self) -> int | None:
        """A free slot, else that of the least recently used copy that nobody uses; None = all are in use."""
        if self._free:
            return self._free.popleft()
        idle = next((copy for copy, there in self._residents.items() if not there.tickets), None)
        return None if idle is None else self._residents.pop(idle).slot
