"""Does each stage get the CPU time between its own boundaries, and nothing else?"""

from perfkit.serving.instrument.cpulap import CpuLap


def test_a_lap_ends_where_the_next_begins():
    readings = iter([100, 130, 190])
    cpu = CpuLap(lambda: next(readings))
    assert (cpu.lap_ns(), cpu.lap_ns()) == (30, 60)


def test_what_lies_before_a_restart_belongs_to_no_stage():
    readings = iter([100, 500, 510])
    cpu = CpuLap(lambda: next(readings))
    cpu.restart()
    assert cpu.lap_ns() == 10
