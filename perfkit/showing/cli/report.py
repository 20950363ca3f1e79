"""`perfkit report`: how do archived results look, on one offline page?"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.add_argument("folder", type=Path, help="folder of a scan, run, comparison or demo")
    parser.add_argument("--out", type=Path, metavar="FILE", help="page to write (default: report.html in the folder)")


def run(options: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from perfkit.measuring.archive.format import PAGE_NAME
    from perfkit.showing.cli import console
    from perfkit.showing.report.collect import page_of_folder
    from perfkit.showing.report.page import write_page

    page = options.out or options.folder / PAGE_NAME
    write_page(page, page_of_folder(options.folder))
    console.say(f"report: {page}")
    return 0
