"""Can the scripts stand in a page as they are, alone and safe?"""

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import EnvironmentLacks
from perfkit.showing.web import assets

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize("source", [assets.chart_js, assets.flame_js])
def test_a_module_of_ours_imports_nothing_and_names_no_address(source):
    text = source()
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert "://" not in text
    assert text.count("export default") == 1


def test_plotly_comes_from_the_installed_package_and_not_from_the_tree():
    assert assets.plotly_js().startswith("/**\n* plotly.js v")
    assert all(file.stat().st_size < 100_000 for file in assets._FOLDER.iterdir() if file.is_file())


def test_the_widget_that_carries_plotly_tells_the_charts_when_it_is_there():
    module = assets.plotly_module_js()
    event = re.search(r'READY_EVENT = "([\w-]+)"', assets.chart_js())[1]
    assert f'dispatchEvent(new Event("{event}"))' in module.replace("globalThis.", "")
    assert module.rstrip().endswith("export default { initialize() {} };")


def test_a_missing_plotly_is_an_environment_that_lacks_it_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    assets.plotly_js.cache_clear()
    with pytest.raises(EnvironmentLacks, match="install plotly 7 or later"):
        assets.plotly_js()


@given(JSON_VALUES)
def test_inline_json_means_the_same_and_holds_nothing_that_html_reads(value):
    text = assets.inline_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_inline_json_refuses_what_a_browser_cannot_parse():
    with pytest.raises(ValueError, match="not JSON compliant"):
        assets.inline_json({"p99": float("nan")})


@given(st.lists(st.sampled_from(["</script>", "</SCRIPT", "<!--", "<", "/script", "x", "\\", "-->"])).map("".join))
def test_an_inline_script_cannot_end_its_tag_or_open_a_comment(source):
    text = assets.inline_script(source)
    assert not re.search(r"</script|<!--", text, re.IGNORECASE)
    assert text.replace("\\x3C", "<") == source.replace("\\x3C", "<")
