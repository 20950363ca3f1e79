"""Why should a run's numbers be believed? Its certificate: every test, limit and circumstance in one record."""

from perfkit.measuring.analysis.certificate.entry import Certificate, Cost, Entry, Status
from perfkit.measuring.analysis.certificate.instruments import certify_instruments
from perfkit.measuring.analysis.certificate.record import record_surroundings
from perfkit.measuring.analysis.certificate.steadystate import certify_latencies, certify_steadiness
from perfkit.measuring.analysis.certificate.sufficiency import certify_quantile, certify_sufficiency

__all__ = [
    "Certificate",
    "Cost",
    "Entry",
    "Status",
    "certify_instruments",
    "certify_latencies",
    "certify_quantile",
    "certify_steadiness",
    "certify_sufficiency",
    "record_surroundings",
]
