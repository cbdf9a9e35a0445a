"""Old versions of layers: what anybody may ask again is read as it was, and nothing else takes the disk."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from st_common import tables
from st_common.batch.borders import Border, Borders
from st_common.batch.trial import Trial, versions_of
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.controls.rows import ControlRow, Drop, LayerVersion, Register
from st_common.controls.writing import payload_of
from st_common.engine.statements import Reached
from st_common.errors import ConfigError, FairwayError
from st_common.history.visits import MEMBERS
from st_common.layers.features import Features
from st_common.layers.rows import layer_rows
from st_common.log.log import Log
from st_common.log.log_purging import purge_records
from st_common.maintenance.held import held
from st_common.maintenance.maintain import maintain
from st_common.operators.state.state import State
from st_common.partitioning.regions import whole
from st_common.position import position_of
from st_common.query.plan import LayerJoin, Plan
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S4")

LATER = date(2100, 1, 1)
LATER_US = 4_102_444_800_000_000
PLAN = Plan(
    stream="grid", join=LayerJoin(layer="parks", predicate="intersects")
).to_json()
# load a version and say so, load one that no log names, register, register once more, drop, take in records
DOINGS = st.lists(
    st.sampled_from(["load", "load", "untold", "a", "b", "drop a", "records"]),
    min_size=1,
    max_size=14,
)


def load(home: Home, number: int) -> int:
    """Puts a layer of one feature in the place of what there was; gives the version."""
    tags = np.empty(1, object)
    tags[:] = [{}]
    features = Features(
        fids=np.array([f"f{number}"], object),
        kinds=np.array(["park"], object),
        tags=tags,
        geometries=np.array([shapely.box(0, 0, 1 + number, 1)]),
        wanted=1,
    )
    rows = layer_rows(features, whole("g"))
    return tables.replace(home.table("layers", "parks"), rows, load_contract("layers"))


def fids(home: Home, version: int) -> list[str]:
    path = home.table("layers", "parks")
    return tables.read(path, version=version)["fid"].to_pylist()


def purged(home: Home, border: int) -> None:
    """Makes a home of which nothing before a segment is judged again."""
    purge_records(Log(home.log("grid")), border)
    for name in ("positions", "changes"):
        contract = load_contract(name)
        tables.append(
            home.table(name, "grid"),
            contract.arrow_schema().empty_table(),
            contract,
            app=tables.PURGED,
            version=position_of(border, 0),
        )


class Told:
    """A stream's log, and beside it which version each query joins after each segment."""

    def __init__(self, home: Home) -> None:
        self.home, self.log = home, bare_log(home.log("grid"))
        self.loaded: dict[int, list[str]] = {}
        self.newest = self.said = 0
        self.joined: dict[str, int] = {}
        # What queries join, and what the log said last, in front of each segment and at the end.
        self.asked: list[set[int]] = [set()]
        self.counting: list[int] = [0]

    def does(self, doing: str) -> None:
        if doing in ("load", "untold"):
            self.newest = load(self.home, len(self.loaded))
            self.loaded[self.newest] = [f"f{len(self.loaded)}"]
        if doing == "load":
            self.writes(LayerVersion(layer="parks", version=self.newest))
            self.said = self.newest
            self.joined = dict.fromkeys(self.joined, self.newest)
        elif doing in ("a", "b") and self.newest:
            version = len(self.asked)
            self.writes(
                Register(
                    query=doing,
                    version=version,
                    plan=PLAN,
                    layer_version=self.newest,
                )
            )
            self.joined[doing] = self.said or self.newest
        elif doing == "drop a" and "a" in self.joined:
            self.writes(Drop(query="a"))
            del self.joined["a"]
        elif doing == "records":
            self.log.append(b"id,t,x,y\n", arrival_us=0)
        else:
            return
        self.asked.append(set(self.joined.values()))
        self.counting.append(self.said)

    def writes(self, row: ControlRow) -> None:
        self.log.append(payload_of([row]), arrival_us=0, control=True)


@tries(20)
@example(doings=["untold", "a", "untold", "records"], share=1.0)
@example(doings=["untold", "records", "a", "untold"], share=0.5)
@given(doings=DOINGS, share=st.floats(0, 1))
def test_what_may_be_judged_again_joins_what_it_joined_and_all_else_is_gone(
    doings: list[str], share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    told = Told(home)
    for doing in doings:
        told.does(doing)
    if not told.loaded:
        return
    border = round(share * (len(told.asked) - 1))
    purged(home, border)
    list(maintain(home, today=LATER))
    asked = set().union(*told.asked[border:])
    for version in {*asked, told.newest}:
        assert fids(home, version) == told.loaded[version]
    may_stay = {*asked, told.newest, *told.counting[border:]}
    for version in told.loaded.keys() - may_stay:
        with pytest.raises(
            FairwayError, match=f"version {version} of layers/parks was"
        ):
            fids(home, version)
    assert load(home, len(told.loaded)) == told.newest + 1


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    bare_log(home.log("grid")).append(b"id,t,x,y\n", arrival_us=0)
    return home


def test_a_trial_holds_the_versions_that_it_asked_and_doctor_says_so(
    home: Home,
) -> None:
    first, second, third = (load(home, number) for number in range(3))
    purged(home, 1)
    trial = Trial(name="wider", versions={"parks": first})
    Borders(home, "grid", "settings", trial).keep(
        Border(
            day=date(2024, 5, 2),
            state=State(),
            members=MEMBERS.empty_table(),
            reached=Reached(segment=1),
            fixes=0,
            late=0,
        )
    )
    said = "\n".join(held(home, {}, now_us=LATER_US))
    assert f"old versions are kept: trial wider of grid needs version {first}" in said
    assert "1 files of old versions could go" in said
    list(maintain(home, today=LATER))
    assert (fids(home, first), fids(home, third)) == (["f0"], ["f2"])
    with pytest.raises(ConfigError, match=f"version {second} of layer 'parks' was"):
        versions_of(home, [f"parks@{second}"])
    assert versions_of(home, [f"parks@{first}"]) == {"parks": first}


def test_versions_that_were_replaced_of_late_stay(home: Home) -> None:
    for number in range(3):
        load(home, number)
    purged(home, 1)
    list(maintain(home, today=date(2024, 5, 1)))
    assert [fids(home, version) for version in (1, 2, 3)] == [["f0"], ["f1"], ["f2"]]


def test_a_run_that_is_killed_anywhere_leaves_what_is_needed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [load(home, number) for number in range(4)]
    log, path = bare_log(home.log("grid")), home.table("layers", "parks")
    told = LayerVersion(layer="parks", version=versions[1])
    log.append(payload_of([told]), arrival_us=0, control=True)
    purged(home, 1)
    real, left, kills = Path.unlink, [0], 0

    def unlink(file: Path, *, missing_ok: bool = False) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(file, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    while True:
        left[0] = kills % 2
        try:
            list(maintain(home, today=LATER))
            break
        except KeyboardInterrupt:
            kills += 1
            tables.forget(path)
            assert (fids(home, versions[1]), fids(home, versions[3])) == (
                ["f1"],
                ["f3"],
            )
    assert kills > 2
    assert fids(home, versions[1]) == ["f1"]
    assert all(tables.is_gone(path, versions[number]) for number in (0, 2))
