"""Requests in flight are counted even when nobody says goodbye."""

from perfkit.serving.devices.simulated.presence import Presence


def test_a_request_leaves_once_whether_it_says_so_or_is_dropped():
    presence = Presence()
    polite, dropped = presence.enter(), presence.enter()
    assert len(presence) == 2
    polite.leave()
    polite.leave()
    assert len(presence) == 1
    del dropped
    assert len(presence) == 0
