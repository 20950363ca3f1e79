"""What does the engine ask of whatever decides when requests leave?"""

from __future__ import annotations

from typing import Protocol

from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.desk import Ticket
from perfkit.records import EndState


class Driver(Protocol):
    """Decides when requests leave."""

    @property
    def held(self) -> int:
        """Requests that had to wait at the client for a connection."""

    @property
    def is_done(self) -> bool:
        """Nothing is due any more and everything has ended."""

    def start(self, start_ns: int, end_ns: int) -> None:
        """Begin a phase between two instants."""

    def on_alarm(self, now_ns: int) -> None:
        """Send what is due."""

    def freed(self, channel: Channel, now_ns: int) -> None:
        """Take back a channel whose request has ended."""

    def settle(self, now_ns: int) -> None:
        """Use the channels that have become free."""

    def give_up(self, due_by_ns: int, outcome: EndState) -> None:
        """End requests without a channel that were due by an instant."""

    def stop(self, now_ns: int) -> None:
        """Let nothing become due any more."""


class Loop(Driver, Protocol):
    """A driver whose requests can be sent again: `Users` or `Arrivals`."""

    def set_aside(self, channel: Channel, now_ns: int) -> Channel | None:
        """Take back the channel of a request that will be sent again; returned when it stays with the request."""

    def resend(self, ticket: Ticket, channel: Channel | None) -> None:
        """Send a request again, over the channel that stayed with it or over any."""
