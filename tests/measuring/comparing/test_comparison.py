"""Does a comparison say what disturbed its runs?"""

import dataclasses

from perfkit.measuring.analysis.compare.replicate import Replicate
from perfkit.measuring.comparing.comparison import noise_lines

RUN = Replicate(
    run_id="made",
    created="2026-01-01T00:00:00+00:00",
    grade="sound",
    reasons=(),
    requests=100,
    values={},
    error_ratio=0.0,
    stolen_ratio=0.001,
    load_average=0.5,
)


def test_the_worst_of_each_disturbance_is_told_and_what_was_not_recorded_is_not():
    busy = dataclasses.replace(RUN, stolen_ratio=0.02, load_average=3.0, pressure_ratio=0.5, neighbour_cores=1.5)
    assert noise_lines([RUN, busy]) == (
        "stolen by other machines, of the cores' time in a run: at most 2.00 %",
        "some task waited for a core, of a run's time: at most 50.0 %",
        "cores that neighbours used: at most 1.50",
        "load average of the machine over the runs, their own work included: 0.500 to 3.00",
    )
    assert noise_lines([dataclasses.replace(RUN, stolen_ratio=None, load_average=None)]) == ()
