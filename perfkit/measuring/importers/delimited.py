"""What are the rows of a delimited text, and which of them cannot be used?"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from perfkit.measuring.importers.imported import Tally
from perfkit.measuring.importers.source import Source

_DELIMITERS = ",;\t|"
_RULE = re.compile(r"[\s|:+=-]+")  # the line below the head of a Markdown table
CUT_ROW = "another number of cells than the heading (a cut row, or a stray line)"


def delimiter_of(line: str) -> str:
    """The most frequent delimiter outside quotes; a comma where there is none."""
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_DELIMITERS, key=bare.count)


def first_line(head: str) -> str:
    """The first line that is not blank."""
    return next((line for line in head.splitlines() if line.strip()), "")


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    return next(csv.reader([line], delimiter=delimiter), [])


def headings(head: str) -> list[str]:
    """The cells of the first line, without blanks around them."""
    line = first_line(head)
    return [cell.strip() for cell in split_line(line, delimiter_of(line))]


class Table:
    """Rows below a heading, as lists as long as the heading; others are dropped and counted."""

    def __init__(self, source: Source, tally: Tally, columns: Sequence[str] | None = None) -> None:
        self._source = source
        self._tally = tally
        self.delimiter = delimiter_of(first_line(source.head))
        self.columns = list(columns) if columns else headings(source.head)
        self.has_heading = columns is None

    def index(self, name: str) -> int | None:
        """Which column bears a name, in any case; None if none does."""
        lowered = [column.lower() for column in self.columns]
        return lowered.index(name.lower()) if name.lower() in lowered else None

    def rows(self) -> Iterator[list[str]]:
        """Every row of the right length; blank lines and repeated headings are no rows."""
        width = len(self.columns)
        awaits_heading = self.has_heading
        for row in self._raw():
            if not row or (len(row) == 1 and not row[0].strip()):
                continue
            if awaits_heading or (self.has_heading and row[0].strip() == self.columns[0]):
                awaits_heading = False
            elif len(row) == width:
                yield row
            else:
                self._tally.dropped[CUT_ROW] += 1

    def _raw(self) -> Iterator[list[str]]:
        reader = csv.reader(self._source.lines(keep_ends=True), delimiter=self.delimiter)
        while True:
            try:
                yield next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._tally.dropped[f"not readable as CSV: {error}"] += 1


def plain_rows(source: Source) -> Iterator[list[str]]:
    """Rows of a small table as a person or an article writes it: CSV, Markdown, or columns apart by blanks."""
    delimiter = delimiter_of(first_line(source.head))
    for line in source.lines():
        if not line.strip() or _RULE.fullmatch(line):
            continue
        if delimiter == "|":
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]
        elif delimiter in line:
            yield [cell.strip() for cell in split_line(line, delimiter)]
        else:
            yield re.split(r"\s{2,}|\t", line.strip())
