"""How is a contradiction in a result file told: the figures, the rule they break, and where the rule comes from?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Figures = Mapping[str, float | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that cannot be right. `row` counts the data rows of a table from 1; None for the whole file."""

    check: str
    row: int | None
    claim: str
    figures: Figures
    rule: str
    source: str
