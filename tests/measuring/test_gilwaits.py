"""Does the server's own sleeper run for one measurement, and only then?"""

import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.gilwaits import GilWaits
from perfkit.measuring.service import attach, launch


def is_recording(service):
    return service.control.get("/gil-waits")["is_recording"]


def test_oversleeps_are_recorded_between_start_and_stop_only(server, tmp_path):
    collector = GilWaits(server)
    began_ns = REAL_CLOCK.now_ns()
    collector.start(Target(pid=server.pid, folder=tmp_path))
    assert is_recording(server)
    REAL_CLOCK.sleep_until(began_ns + NS_PER_S // 4)
    recording = collector.stop()
    assert not is_recording(server)
    assert {(row.source, row.name, row.unit) for row in recording.series} == {("gil", "oversleep", "s")}
    assert all(began_ns < row.time_ns < REAL_CLOCK.now_ns() and row.value >= 0 for row in recording.series)
    assert (recording.name, recording.missing) == ("gil-waits", None)


def test_a_service_without_a_control_port_cannot_be_watched(foreign, tmp_path):
    with pytest.raises(CollectorUnavailable, match="launch it with perfkit to record GIL waits"):
        GilWaits(attach(foreign.url)).start(Target(pid=1, folder=tmp_path))


def test_a_service_that_died_meanwhile_is_a_gap_not_an_error(tmp_path):
    with launch(model="noop") as service:
        collector = GilWaits(service)
        collector.start(Target(pid=service.pid, folder=tmp_path))
    recording = collector.stop()
    assert recording.series == []
    assert "does not answer (Connection refused)" in recording.missing
