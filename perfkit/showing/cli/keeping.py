"""What is kept of an imported file: its tables and plots, in a folder that other tools open."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.importers.imported import Imported

_SHOWN_NAMES = 8  # curves in one plot
_LEAST = 2  # points of a curve


def check_new(folder: Path) -> None:
    """Raises ConfigError where there is something already; nothing is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already; name a new folder after --out")


def keep(imported: Imported, folder: Path) -> list[str]:
    """Writes import.json, and as far as the file allows levels.csv, requests.parquet and plots; returns their names."""
    from perfkit.measuring.importers.frames import levels_frame, requests_frame

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "import.json").write_text(json.dumps({"schema": 1, **imported.to_json()}), "utf-8")
    if imported.levels:
        levels_frame(imported).to_csv(folder / "levels.csv", index=False)
    if imported.requests is not None:
        requests_frame(imported).to_parquet(folder / "requests.parquet", index=False)
    _plots(imported, folder)
    return sorted(path.name for path in folder.iterdir())


def _plots(imported: Imported, folder: Path) -> None:
    """Pages with plotly inside, so that they open without a network."""
    from perfkit.measuring.importers.frames import requests_frame
    from perfkit.showing.plots.foreign import foreign_table, plot_foreign
    from perfkit.showing.plots.latency import latency_table, plot_latency

    title = f"{Path(imported.path).name} ({imported.format})"
    table = foreign_table(imported.levels)
    if imported.is_range and len(table) >= _LEAST:
        plot_foreign(table, title=title).write_html(folder / "load.html")
    if imported.requests is not None:
        frame = requests_frame(imported)
        groups = frame.groupby("name", observed=True)["latency_ns"]
        shown = {str(name): (part / NS_PER_S).tolist() for name, part in itertools.islice(groups, _SHOWN_NAMES)}
        plot_latency(latency_table(shown), title=title).write_html(folder / "latency.html")
