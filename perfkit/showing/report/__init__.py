"""How does one offline HTML page tell a whole measurement?"""

from perfkit.showing.report.data import ReportData
from perfkit.showing.report.page import render_report, write_report

__all__ = ["ReportData", "render_report", "write_report"]
