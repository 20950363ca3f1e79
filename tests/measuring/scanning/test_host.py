"""Does a scan get its service live where it can, and fresh where it must?"""

import psutil
import pytest

from perfkit import fields
from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.scanning.host import Given, Launched
from perfkit.serving.server.defaults import settings_for
from perfkit.settings.server import ServerSettings

NOOP = ServerSettings(model="noop")


def with_(**changes):
    return fields.replace(NOOP, changes)


def test_a_live_setting_changes_in_the_running_process_and_any_other_brings_a_fresh_one():
    with Launched() as host:
        first = host.at(NOOP)
        process = psutil.Process(first.pid)
        assert host.at(with_(workers=2)) is first
        assert first.settings.workers == 2
        assert host.at(fields.replace(NOOP, {"batch.max_size": 4})).settings.workers == 1
        fresh = host.at(fields.replace(NOOP, {"ledger.capacity": 2048}))
        assert fresh.pid != first.pid
        assert not process.is_running()
        other = host.at(settings_for("simulated:s001-a10", {}))
        assert other.stats()["simulated"] is True
        last = psutil.Process(other.pid)
    assert not last.is_running()


def test_a_host_that_was_never_asked_starts_nothing():
    with Launched() as host:
        host.close()


def test_a_service_of_its_own_needs_settings():
    with Launched() as host:
        host.at(NOOP)
        with pytest.raises(TargetFailed, match="needs settings"):
            host.at(None)


def test_a_given_service_is_changed_but_never_replaced(server):
    host = Given(server)
    pid, before = server.pid, server.settings
    assert host.at(with_(workers=4)) is server
    assert server.settings.workers == 4
    with pytest.raises(ConfigError, match=r"^ledger.capacity cannot change while the server runs"):
        host.at(fields.replace(NOOP, {"ledger.capacity": 2048}))
    assert host.at(None).settings.workers == 4, "no settings: as it is"
    assert (host.at(before).pid, server.settings) == (pid, before)
