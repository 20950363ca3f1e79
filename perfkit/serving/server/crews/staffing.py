"""Which crew does a setting ask for? The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.elastic import ElasticLimits
from perfkit.serving.server.crews.coroutines import CoroutineCrew
from perfkit.serving.server.crews.crew import Crew
from perfkit.serving.server.crews.elastic import ElasticCrew
from perfkit.serving.server.crews.fixed import FixedCrew
from perfkit.serving.server.crews.per_request import ThreadPerRequest
from perfkit.serving.server.station import Bench
from perfkit.settings.server import ServerSettings
from perfkit.settings.workers import ElasticSettings


def staff(settings: ServerSettings, bench: Bench) -> Crew:
    """The crew of `concurrency.model`, not started yet."""
    return _CREWS[settings.concurrency.model](settings, bench)


def _fixed(settings: ServerSettings, bench: Bench) -> Crew:
    return FixedCrew(bench, settings.workers)


def _per_request(settings: ServerSettings, bench: Bench) -> Crew:
    return ThreadPerRequest(bench)


def _coroutines(settings: ServerSettings, bench: Bench) -> Crew:
    return CoroutineCrew(bench, settings.workers)


def _elastic(settings: ServerSettings, bench: Bench) -> Crew:
    return ElasticCrew(bench, _limits(settings.elastic))


def _limits(elastic: ElasticSettings) -> ElasticLimits:
    keep_alive_ns = round(elastic.keep_alive_s * NS_PER_S)
    return ElasticLimits(core=elastic.core, max=elastic.max, keep_alive_ns=keep_alive_ns)


_CREWS: dict[str, Callable[[ServerSettings, Bench], Crew]] = {
    "pool": _fixed,
    "processes": _fixed,  # whose stations are in other processes
    "serial": _fixed,  # of one, which the settings see to
    "thread_per_request": _per_request,
    "elastic": _elastic,
    "asyncio": _coroutines,
}
