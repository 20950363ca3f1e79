"""`perfkit calibrate`, the whole way: a simulated service, whose true numbers are known, becomes a preset again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from perfkit.clock import calendar_now
from perfkit.explaining.twin.calibrate import Order, plan_cells, scan_plan
from perfkit.measuring.archive.scanfolder import create_scan
from perfkit.measuring.archive.storedscan import ScanHeader
from perfkit.measuring.service import launch
from perfkit.serving.devices.simulated.preset import load_preset
from perfkit.serving.server.defaults import settings_for
from perfkit.showing.cli import calibrate
from perfkit.showing.cli.main import main

COMMAND = ["calibrate", "--model", "simulated:bert-large", "--seconds", "0.3", "--rounds", "1"]


def interrupted(folder):
    """The same calibration, killed before its first cell was measured."""
    order = Order(settings=settings_for("simulated:bert-large", {}), seconds=0.3, rounds=1)
    header = ScanHeader(
        id="x", created=calendar_now(), simulated=True, plan=scan_plan(order, [*plan_cells(1, False)]).to_json()
    )
    create_scan(folder, header).close()


def test_to_go_on_takes_the_folder(capsys):
    assert main([*COMMAND, "--resume"]) == 2
    assert "--resume needs --out DIR" in capsys.readouterr().err


def test_a_simulated_devices_own_numbers_come_back_and_the_preset_can_be_served(tmp_path, capsys):
    out = tmp_path / "it"
    command = [*COMMAND, "--json", "--out", str(out)]
    interrupted(out / "scan")
    assert main(command) == 2
    assert "go on with it by --resume" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["simulated"], document["judged"]) == (1, True, 0)
    assert [(cell["workers"], cell["max_size"], cell["is_fitted"]) for cell in document["cells"]] == [
        (1, 1, True),
        (1, 4, True),
        (1, 16, True),
    ]
    truth, found = load_preset("bert-large").device, load_preset(document["preset"])
    for name in ("alpha_s", "beta_s", "h2d_bytes_per_s", "d2h_bytes_per_s", "pageable_bytes_per_s", "copy_latency_s"):
        assert getattr(found.device, name) == pytest.approx(getattr(truth, name), rel=1e-3), name
    with launch(model=f"simulated:{document['preset']}") as service:
        assert service.stats()["simulated"] is True
    assert main(command) == 2
    assert "simulated-bert-large.toml exists already; name another folder with --out" in capsys.readouterr().err


@pytest.mark.parametrize(("judged", "error_ratio", "code"), [(6, 0.15, 0), (9, 0.16, 1), (5, 0.01, 5), (0, None, 5)])
def test_the_exit_code_of_a_check_is_its_verdict(judged, error_ratio, code):
    calibration = SimpleNamespace(judged=range(judged), median_error_ratio=error_ratio)
    assert calibrate.exit_code(calibration) == code
