"""Which kinds of failure does perfkit tell apart, and which exit code does each one carry?"""

from __future__ import annotations


class PerfkitError(Exception):
    """Base of everything perfkit raises on purpose: what came, what is allowed, what to do."""

    exit_code = 1


class ConfigError(PerfkitError):
    """A setting, flag or input that cannot be used as given."""

    exit_code = 2


class EnvironmentLacks(PerfkitError):
    """The machine has not got what the request needs (a package, a permission, a free port, disk)."""

    exit_code = 3


class CollectorUnavailable(EnvironmentLacks):
    """A collector cannot run here; the run goes on without it and records the gap."""


class TargetFailed(PerfkitError):
    """The service under test did not start, died, or answered something unusable."""

    exit_code = 4


class ArchiveError(PerfkitError):
    """A run folder cannot be written, or what it holds cannot be read."""

    exit_code = 3
