"""Does the flame graph show the recording, and do zoom, search, threads and modes do what they say?"""

import json
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

WEB = Path(__file__).parents[1] / "showing" / "web"
DATA = json.loads((WEB / "flame.json").read_text("utf-8"))


def draw(visited, data=DATA):
    """Draw a flame graph; clicks are kept in the page's `chosen`."""
    visited.page.evaluate(
        """text => {
          globalThis.chosen = [];
          const el = document.getElementById("picture");
          el.addEventListener("flame-select", (event) => chosen.push(event.detail));
          globalThis.flame = drawFlame(el, text);
        }""",
        json.dumps(data),
    )


def shown(visited):
    """The figures that the graph keeps about its last drawing."""
    return visited.page.evaluate("({ ...document.getElementById('picture').dataset })")


def click_row(visited, row, x=100):
    """Click into a row of the icicle; row 0 is its root."""
    visited.page.locator("canvas").click(position={"x": x, "y": row * 19 + 9})


def colors(visited):
    """How many different colours the canvas holds."""
    return visited.page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas");
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          return new Set(new Uint32Array(pixels.buffer)).size;
        }"""
    )


def samples_of(recording, wanted=None):
    """All samples of a recording, or those of one thread."""
    return sum(
        own for own, thread in zip(recording["self"], recording["thread"], strict=True) if wanted in (None, thread)
    )


def test_the_recording_is_drawn_and_its_caption_tells_rate_samples_and_errors(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    caption = visited.page.locator(".caption").inner_text()
    assert "py-spy, 100 Hz, 5 s, 647 samples, 0.46 % errors (3)" in caption
    assert shown(visited)["root"] == "all threads"
    assert colors(visited) > 8
    assert (visited.outside, visited.errors) == ([], [])


def test_a_click_zooms_to_the_frame_and_tells_the_page(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    click_row(visited, 5)
    assert shown(visited)["root"] == "compute (sample_models/minilm.py:84)"
    chosen = visited.page.evaluate("chosen")
    assert [choice["frame"] for choice in chosen] == ["compute (sample_models/minilm.py:84)"]
    assert chosen[0]["path"][:2] == ["all threads", "_bootstrap (threading.py:1002)"]
    assert (chosen[0]["samples"], chosen[0]["mode"]) == (486, "default")


def test_escape_and_the_button_reset_the_zoom(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    click_row(visited, 5)
    visited.page.keyboard.press("Escape")
    assert shown(visited)["root"] == "all threads"
    click_row(visited, 5)
    visited.page.get_by_role("button", name="Reset zoom").click()
    assert shown(visited)["root"] == "all threads"
    assert visited.page.get_by_role("button", name="Reset zoom").is_disabled()


def test_the_keyboard_alone_reaches_a_frame_and_zooms(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.locator("canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"):
        visited.page.keyboard.press(key)
    assert visited.page.locator(".cursor").inner_text().startswith("compute (sample_models/minilm.py:84): 486 samples")
    visited.page.keyboard.press("Enter")
    assert shown(visited)["root"] == "compute (sample_models/minilm.py:84)"
    visited.page.keyboard.press("ArrowUp")
    visited.page.keyboard.press(" ")
    assert shown(visited)["root"] == "work (perfkit/serving/server/pools.py:88)"


def test_search_counts_each_sample_once(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.get_by_role("searchbox", name="search frames").fill("TORCH")
    own = Counter()
    cpu = DATA["recordings"][0]
    for name, count in zip(cpu["name"], cpu["self"], strict=True):
        own["torch" in DATA["names"][name]] += count
    assert float(shown(visited)["matchShare"]) == pytest.approx(own[True] / own.total())
    assert visited.page.locator("output").inner_text() == "5 frames match: 72.3 % of the samples shown"
    visited.page.get_by_role("searchbox", name="search frames").fill("run")
    assert shown(visited)["matchFrames"] == "2"
    assert float(shown(visited)["matchShare"]) == pytest.approx(1.0)


def test_one_thread_shows_only_its_samples(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.get_by_label("threads shown").select_option(label="worker-1")
    assert shown(visited)["thread"] == "worker-1"
    line = visited.page.locator(".cursor").inner_text()
    cpu = DATA["recordings"][0]
    share = samples_of(cpu, 2) / samples_of(cpu)
    assert line.startswith(f"worker-1: {samples_of(cpu, 2)} samples: {100 * share:.1f} % of the recording")


def test_threads_side_by_side_keep_a_root_for_each(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.get_by_label("threads shown").select_option(label="all threads, side by side")
    assert int(shown(visited)["nodes"]) == len(DATA["recordings"][0]["parent"]) + 1


def test_the_mode_switch_shows_the_other_recording_and_keeps_the_thread(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.get_by_label("threads shown").select_option(label="worker-0")
    visited.page.get_by_role("button", name="GIL holders").click()
    assert (shown(visited)["mode"], shown(visited)["thread"]) == ("gil", "worker-0")
    assert "threads that held the GIL" in visited.page.locator(".caption").inner_text()
    assert visited.page.get_by_role("button", name="GIL holders").get_attribute("aria-pressed") == "true"
    visited.page.get_by_role("button", name="wall").click()
    assert shown(visited)["mode"] == "idle"


def test_the_tooltip_gives_samples_and_both_shares(visit, flame_page):
    visited = visit(flame_page)
    draw(visited)
    visited.page.locator("canvas").hover(position={"x": 100, "y": 5 * 19 + 9})
    tip = visited.page.get_by_role("tooltip").inner_text()
    assert tip.splitlines() == [
        "compute (sample_models/minilm.py:84)",
        "486 samples: 75.1 % of the recording, 77.5 % of its parent; 36 in the frame itself",
    ]


def test_frames_too_narrow_to_see_are_skipped_and_counted(visit, flame_page):
    visited = visit(flame_page)
    visited.page.add_script_tag(path=str(WEB / "big_tree.js"))
    visited.page.evaluate("drawFlame(document.getElementById('picture'), bigTree(20000)); 0")
    figures = shown(visited)
    assert int(figures["nodes"]) > 19_000
    assert int(figures["skippedNodes"]) > 0
    assert int(figures["drawnNodes"]) + int(figures["skippedNodes"]) == int(figures["nodes"])
    assert colors(visited) > 8


def test_the_screens_own_pixels_are_used(visit, flame_page):
    visited = visit(flame_page, scale=2)
    draw(visited)
    width, shown_width = visited.page.evaluate(
        "(() => { const canvas = document.querySelector('canvas'); return [canvas.width, canvas.clientWidth]; })()"
    )
    assert width == 2 * shown_width


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_a_light_and_on_a_dark_page(visit, flame_page, dark):
    visited = visit(flame_page, dark=dark)
    draw(visited)
    ink, paper = visited.page.evaluate(
        "[getComputedStyle(document.querySelector('.caption')).color, getComputedStyle(document.body).color]"
    )
    assert ink == paper == ("rgb(255, 255, 255)" if dark else "rgb(0, 0, 0)")


def test_a_simulated_recording_says_so(visit, flame_page):
    visited = visit(flame_page)
    draw(visited, {**DATA, "simulated": True})
    assert visited.page.locator(".caption").inner_text().startswith("simulated · ")


def test_hostile_names_stay_text(visit, flame_page):
    visited = visit(flame_page)
    hostile = "<img src=x onerror=alert(1)>"
    names = [hostile, *DATA["names"][1:]]
    draw(visited, {**DATA, "title": hostile, "names": names})
    click_row(visited, 1, x=1150)
    assert visited.page.locator("img").count() == 0
    assert hostile in visited.page.locator(".caption").inner_text()


def test_no_recording_is_said_in_words(visit, flame_page):
    visited = visit(flame_page)
    draw(visited, {**DATA, "recordings": []})
    assert visited.page.locator(".caption").inner_text() == "No flame graph was recorded."
    assert not visited.page.locator("canvas").is_visible()
    visited.page.evaluate("text => flame.update(text)", json.dumps(DATA))
    assert visited.page.locator("canvas").is_visible()


def test_folding_keeps_every_sample_and_lays_children_inside_their_parent(visit, flame_page):
    visited = visit(flame_page)
    visited.page.add_script_tag(path=str(WEB / "big_tree.js"))
    wrong = visited.page.evaluate(
        """() => {
          const data = bigTree(3000);
          const recording = data.recordings[0];
          const wrong = [];
          const all = recording.self.reduce((sum, own) => sum + own, 0);
          for (const thread of ["merged", "apart", 3]) {
            const tree = layTree(foldTree(recording, data.names.length, thread));
            const own = recording.self.filter((_, at) => thread !== 3 || recording.thread[at] === 3);
            const wanted = thread === 3 ? own.reduce((sum, count) => sum + count, 0) : all;
            if (tree.total[0] !== wanted) wrong.push(["total", thread]);
            for (let node = 1; node < tree.size; node += 1) {
              const above = tree.parent[node];
              const end = (at) => tree.start[at] + tree.total[at];
              const isInside = tree.start[node] >= tree.start[above] && end(node) <= end(above);
              if (above >= node || !isInside) wrong.push([thread, node]);
            }
          }
          return wrong;
        }"""
    )
    assert wrong == []


def test_a_frame_is_coloured_by_its_top_module(visit, flame_page):
    modules = {
        "encode (sample_models/minilm.py)": "sample_models",
        "run (threading.py:982)": "threading",
        "linear (/opt/lib/python3.11/site-packages/torch/nn/functional.py:12)": "torch",
        "work (/usr/lib/python3.11/threading.py)": "threading",
        "_find (<frozen importlib._bootstrap>:1)": "importlib._bootstrap",
        "worker-0 (1234)": "",
        "gemm": "",
    }
    found = visit(flame_page).page.evaluate("names => names.map(moduleOf)", list(modules))
    assert dict(zip(modules, found, strict=True)) == modules
