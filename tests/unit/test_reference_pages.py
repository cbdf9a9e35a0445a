"""Pages of docs/, comments of conf/ and schemas that are made from the code are fresh, and say what it does."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from st_common.config.streams import stream_of_table
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


def test_every_key_says_what_it_is(settings: ModuleType):
    for table in settings.TABLES:
        for key in table.keys.values():
            assert key.text, f"[{table.name}] {key.name}"
            assert key.text[0].islower() or key.text[0] in '"`', key.text


def test_the_comment_of_a_file_is_made_anew_and_what_else_it_has_stays(
    settings: ModuleType,
):
    text = (ROOT / "conf" / "layers.toml").read_text(encoding="utf-8")
    older = text.replace("# geometry ", "# geo      ").replace("one of them", "two")
    assert older != text
    assert settings.commented("layers", older) == text


@pytest.mark.parametrize("file", ["streams", "operations", "deliveries", "layers"])
def test_what_a_schema_says_is_what_reading_says(settings: ModuleType, file: str):
    """The files of the repository, and what reading refuses of them."""
    validator = jsonschema.Draft7Validator(settings.schema(file))
    validator.check_schema(validator.schema)
    document = tomllib.loads((ROOT / "conf" / f"{file}.toml").read_text())
    validator.validate(document)
    assert list(validator.iter_errors({**document, "unknown": {}}))


@pytest.mark.parametrize(
    ("line", "is_right"),
    [
        ("shards = 4", True),
        ('silence_s = "off"', True),
        ("silence_s = 0", False),
        ("shards = 0", False),
        ("shard = 4", False),
        ('engine = "sparc"', False),
        ("spark = { cores = 8 }", True),
        ("spark = { core = 8 }", False),
        ('sources.feed = { kind = "stdin" }', True),
        ("sources.feed = { batch_ms = 5 }", False),
    ],
)
def test_a_schema_refuses_what_reading_refuses(
    settings: ModuleType, line: str, is_right: bool
):
    text = (
        '[streams.s]\nformat = "csv"\ncolumns = { object = 1, x = 2, y = 3, v = 4 }\n'
        f'attributes = {{ v = "double" }}\nheader = false\n{line}\n'
    )
    document = tomllib.loads(text)
    validator = jsonschema.Draft7Validator(settings.schema("streams"))
    assert validator.is_valid(document) == is_right
    with nullcontext() if is_right else pytest.raises(ConfigError):
        stream_of_table("s", document["streams"]["s"], Path("streams.toml"))


def test_every_variable_of_the_environment_is_told():
    code = (ROOT / "st_common" / "config" / "environment.py").read_text(
        encoding="utf-8"
    )
    variables = set(re.findall(r'environ\.get\("(FAIRWAY_[A-Z]+)"\)', code))
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert len(variables) >= 4
    assert [name for name in sorted(variables) if f"`{name}`" not in page] == []
