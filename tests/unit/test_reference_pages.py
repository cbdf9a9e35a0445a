"""Pages of docs/ that are made from the code are fresh, and comments of conf/ that differ from the code are refused."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from st_common.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("tool", ["commands", "settings"])
def test_a_page_that_is_made_from_the_code_is_fresh(tool: str):
    done = subprocess.run(
        [sys.executable, f"tools/{tool}.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    path = ROOT / "tools" / "settings.py"
    spec = importlib.util.spec_from_file_location("settings_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "settings_page", module)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# tick_s  ", "# tick    ", r"\[streams.NAME\]: tick, tick_s"),
        ("two ticks (default 1)", "two ticks (default 2)", "tick_s: default 2, in"),
    ],
)
def test_a_comment_that_says_something_else_than_the_code_is_refused(
    settings: ModuleType, tmp_path: Path, old: str, new: str, message: str
):
    for path in (ROOT / "conf").glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        (tmp_path / path.name).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        settings.page(tmp_path)


def test_every_variable_of_the_environment_is_told():
    code = (ROOT / "st_common" / "settings.py").read_text(encoding="utf-8")
    variables = set(re.findall(r'environ\.get\("(FAIRWAY_[A-Z]+)"\)', code))
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert len(variables) >= 4
    assert [name for name in sorted(variables) if f"`{name}`" not in page] == []
