"""Why is there no fit? A refusal is an answer like any other, with its reason."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What could not be said, and why; the reason reads on its own and names the way out where there is one."""

    reason: str

    def to_json(self) -> dict[str, str]:
        """As `--json` prints it in the place of a fit."""
        return {"refusal": self.reason}
