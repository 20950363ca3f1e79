"""Are GPUs found by their UUID, and where there are none, is the reason said?"""

import pytest

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.nvml.library import (
    find_gpu,
    list_gpus,
    missing_library,
    open_library,
    surroundings,
)

# What the library's first calls answer, and a word of the reason.
NO_GPU = [
    ("nvmlInitWithFlags=9", "the driver is not loaded"),
    ("nvmlInitWithFlags=4", "needs a privilege"),
    ("nvmlInitWithFlags=18", "differ in version"),
    ("nvmlInitWithFlags=999", "sandbox or microVM"),
    ("nvmlDeviceGetCount_v2=999", "does not say how many GPUs"),
    ("nvmlDeviceGetHandleByIndex_v2=15", "no GPU answers: the GPU is lost"),
    ("nvmlDeviceGetHandleByIndex_v2=4", "no GPU answers: it needs a privilege"),
]


@pytest.mark.parametrize(("failures", "reason"), NO_GPU, ids=[one[0] for one in NO_GPU])
def test_a_driver_that_shows_no_gpu_makes_the_collector_unavailable_and_says_why(nvml, plan, failures, reason):
    plan(FAIL=failures)
    with pytest.raises(CollectorUnavailable, match=reason):
        list_gpus(open_library())


def test_a_driver_without_gpus_says_so(nvml, plan):
    plan(GPUS=0)
    with pytest.raises(CollectorUnavailable, match="shows no GPU"):
        list_gpus(nvml)


def test_a_driver_too_old_for_the_binding_says_so(over, build_nvml):
    over(build_nvml("nvmlInitWithFlags"))
    with pytest.raises(CollectorUnavailable, match="older than this function"):
        open_library()


def test_cudas_uuid_finds_the_gpu_whatever_its_number(nvml, plan):
    plan(GPUS=3)
    gpus = list_gpus(nvml)
    cuda_uuid = "00000000-0000-0000-0000-000000000005"  # as torch gives it, without NVML's prefix
    assert [find_gpu(gpus, text).index for text in (cuda_uuid, f"GPU-{cuda_uuid}")] == [2, 2]
    assert find_gpu(gpus, "00000000-0000-0000-0000-000000000009") is None


def test_a_gpu_without_name_and_uuid_is_known_by_its_number(nvml, plan):
    plan(FAIL="nvmlDeviceGetUUID=3,nvmlDeviceGetName=999,nvmlDeviceGetMigMode=3")
    assert [(gpu.uuid, gpu.name, gpu.is_mig) for gpu in list_gpus(nvml)] == [("index:0", "GPU", False)]


def test_a_library_in_the_loaders_path_is_there_and_elsewhere_it_is_not(nvml_folder, tmp_path, monkeypatch):
    assert missing_library({"LD_LIBRARY_PATH": f"{tmp_path}:{nvml_folder}"}) is None
    monkeypatch.setattr("perfkit.measuring.collectors.nvml.library.LIBRARY", "libnvidia-ml.so.of-nobody")
    assert "no libnvidia-ml.so.1 here" in (missing_library({"LD_LIBRARY_PATH": str(tmp_path)}) or "")


def test_a_machine_without_the_binding_says_which_package_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert missing_library({}) == ("the Python package nvidia-ml-py is not installed; install it to record the GPU")


def test_places_that_are_known_to_tell_less_are_named(plant):
    gvisor = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
    wsl = "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@builder)"
    assert surroundings(plant({"proc/version": "Linux version 6.8.0-45-generic"})) == ""
    assert "gVisor" in surroundings(plant({"proc/version": gvisor}))
    assert "WSL" in surroundings(plant({"proc/version": wsl}))
    assert "Jetson" in surroundings(
        plant({"proc/version": "Linux version 5.15.148-tegra", "etc/nv_tegra_release": "R36"})
    )
