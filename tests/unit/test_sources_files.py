"""Files that grow, are renamed, replaced, emptied, copied and taken away: each record once, or told as lost."""

import asyncio
import gzip
import os
import shutil
import tempfile
from collections import Counter
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.sources.registry import source_of
from st_common.sources.writer import Writer
from tests.kit.feeding import lines_of, stream_with

pytestmark = pytest.mark.spec("B6")

HEADER = "id,t,x,y\n"


class Folder:
    """A folder, and a capture of its files that looks when it is told to, and may be killed while it stores."""

    def __init__(self, root, pattern="*.csv", **others):
        self.drop, self.home = root / "drop", Home(root / "home")
        self.drop.mkdir(exist_ok=True)
        source = {"kind": "files", "path": str(self.drop / pattern)}
        self.stream = stream_with(source, **others)
        self.doubts, self.source = 0, None
        self.begin()

    def begin(self):
        """Begins anew, as after a kill."""
        self.doubts += self.source.doubts if self.source else 0
        self.writer = Writer(self.home, self.stream, "feed", clock=lambda: 1)
        self.source = source_of(self.stream.sources["feed"], self.stream)
        self.source.begin(self.writer.places.read())

    def look(self, dies_behind=None):
        """Stores what is new; it may die when so many arrivals are stored."""

        async def run():
            async with aclosing(self.source.look()) as arrivals:
                async for number, one in numbered(arrivals):
                    if number == dies_behind:
                        return
                    self.writer.write([one])

        asyncio.run(run())
        if dies_behind is not None:
            self.begin()
        return self

    @property
    def told(self):
        return self.doubts + self.source.doubts

    @property
    def lines(self):
        return lines_of(self.home)

    def put(self, name, lines, *, over=False, header=HEADER):
        """Writes a file; `over` another one by renaming it."""
        path = self.drop / (f".{name}" if over else name)
        path.write_text(header + "".join(f"{one}\n" for one in lines))
        path.replace(self.drop / name)

    def add(self, name, lines):
        with (self.drop / name).open("a") as file:
            file.write("".join(f"{one}\n" for one in lines))

    def settle(self):
        for path in self.drop.iterdir():
            os.utime(path, (1, 1))


async def numbered(arrivals):
    number = 0
    async for one in arrivals:
        yield number, one
        number += 1


def records(start, stop):
    return [f"o{number},1,2,3" for number in range(start, stop)]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_a_file_that_another_one_replaced_is_read_from_its_beginning_and_told(folder):
    folder.put("a.csv", records(0, 100))
    folder.look()
    folder.put("a.csv", records(1000, 1160), over=True)
    folder.look()
    assert folder.lines == records(0, 100) + records(1000, 1160)
    assert folder.told == 1
    assert "a.csv was emptied, replaced or taken away" in folder.source.doubted


def test_a_file_that_was_emptied_hinders_nobody_and_is_told(folder):
    folder.put("a.csv", records(0, 50))
    folder.look()
    folder.put("a.csv", records(50, 53))
    folder.put("b.csv", records(60, 70))
    folder.look()
    assert sorted(folder.lines) == sorted(
        records(0, 50) + records(50, 53) + records(60, 70)
    )
    assert folder.told == 1


def test_a_file_that_was_emptied_and_has_grown_beyond_what_is_stored_is_another_one(
    folder,
):
    folder.put("a.csv", records(0, 20))
    folder.look()
    folder.put("a.csv", records(100, 200))
    folder.look()
    assert folder.lines == records(0, 20) + records(100, 200)


@pytest.mark.parametrize("pattern", ["*.csv", "*"], ids=["one-name", "all"])
@pytest.mark.parametrize("dies", [False, True], ids=["runs", "dies"])
@pytest.mark.parametrize("way", ["rename", "copy"])
def test_a_rotated_file_is_read_to_its_end_and_the_new_one_from_its_beginning(
    tmp_path, pattern, dies, way
):
    folder = Folder(tmp_path, pattern)
    folder.put("a.csv", records(0, 40))
    folder.look()
    folder.add("a.csv", records(40, 50))  # nobody has seen these in this file
    old, new = folder.drop / "a.csv.1", folder.drop / "a.csv"
    if way == "rename":
        new.rename(old)
    else:
        shutil.copyfile(new, old)
    folder.put("a.csv", records(50, 55))
    for step in range(3):
        folder.look(dies_behind=step if dies else None)
    folder.add("a.csv.1", records(55, 57))  # whoever writes has not let go of it
    folder.look().look()
    assert sorted(folder.lines) == sorted(records(0, 57))
    assert folder.told == 0


def test_a_file_that_is_written_anew_with_all_of_it_and_more_goes_on(folder):
    for end in (10, 60, 200):
        folder.put("a.csv", records(0, end), over=True)
        folder.look()
    assert folder.lines == records(0, 200)
    assert folder.told == 0


def test_files_of_a_restored_folder_are_known_again_by_their_bytes(folder):
    folder.put("a.csv", records(0, 90))
    folder.look()
    shutil.copytree(folder.drop, folder.drop.with_name("kept"))
    shutil.rmtree(folder.drop)
    folder.drop.with_name("kept").rename(folder.drop)
    folder.begin()
    folder.look().look()
    assert folder.lines == records(0, 90)


def test_equal_files_beside_each_other_are_two(tmp_path):
    columns = {"event_ts": "t", "x": "x", "y": "y"}
    folder = Folder(tmp_path, columns={"object": "file name", **columns})
    for name in ("a.csv", "b.csv"):
        folder.put(name, records(0, 5))
    folder.look().look()
    assert sorted(folder.lines) == sorted(records(0, 5) * 2)


def test_a_last_line_without_an_end_that_goes_on_is_stored_whole_and_told(folder):
    folder.put("a.csv", records(0, 2))
    with (folder.drop / "a.csv").open("a") as file:
        file.write("o2,1,2")
    folder.settle()
    folder.look().look()
    assert folder.lines == [*records(0, 2), "o2,1,2"]
    folder.begin()
    folder.add("a.csv", ["00", *records(3, 4)])
    folder.look().look()
    assert folder.lines == [*records(0, 2), "o2,1,2", "o2,1,200", *records(3, 4)]
    assert folder.told == 1
    assert "went on in its last line" in folder.source.doubted


def test_a_last_line_without_an_end_is_stored_once_where_only_its_end_comes(folder):
    folder.put("a.csv", records(0, 1))
    with (folder.drop / "a.csv").open("a") as file:
        file.write(records(1, 2)[0])
    folder.settle()
    folder.look()
    folder.add("a.csv", ["", *records(2, 3)])
    folder.look()
    assert folder.lines == records(0, 3)
    assert folder.told == 0


def test_a_broken_file_is_told_once_and_hinders_nobody(folder):
    folder = Folder(folder.drop.parent, "*")
    packed = gzip.compress((HEADER + "\n".join(records(0, 9))).encode())
    (folder.drop / "a.csv.gz").write_bytes(packed[:-12])
    folder.put("b.csv", records(10, 12))
    folder.settle()
    folder.look().look()
    assert folder.lines == records(10, 12)
    assert folder.told == 1
    (folder.drop / "a.csv.gz").write_bytes(packed)
    folder.settle()
    folder.look()
    assert sorted(folder.lines) == sorted(records(0, 9) + records(10, 12))


def test_a_quiet_file_that_is_taken_away_is_not_in_doubt_and_one_that_grew_is(folder):
    folder.put("a.csv", records(0, 3))
    folder.settle()
    folder.look()
    (folder.drop / "a.csv").unlink()
    folder.look()
    assert folder.told == 0
    folder.put("b.csv", records(3, 6))
    folder.look()
    (folder.drop / "b.csv").unlink()
    folder.look()
    assert folder.told == 1


@pytest.mark.parametrize("grown", [0, 7])
def test_places_of_a_home_of_before_are_gone_on_from(folder, grown):
    """They were a name and a number of bytes."""
    folder.put("a.csv", records(0, 30))
    at = (folder.drop / "a.csv").stat().st_size
    for one in list(folder_arrivals(folder)):
        folder.writer.write([one_with(one, {"a.csv": at, "z.csv": 5})])
    folder.add("a.csv", records(30, 30 + grown))
    folder.begin()
    folder.look().look()
    assert folder.lines == records(0, 30 + grown)
    folder.put("a.csv", records(100, 200), over=True)
    folder.look()
    folder.begin()
    folder.look()
    assert folder.lines == records(0, 30 + grown) + records(100, 200)


def test_a_place_of_before_in_the_middle_of_a_record_is_of_another_file(folder):
    folder.put("a.csv", records(0, 30))
    for one in list(folder_arrivals(folder)):
        folder.writer.write([one_with(one, {"a.csv": 71})])
    folder.put("a.csv", records(100, 160), over=True)
    folder.begin()
    folder.look()
    assert folder.lines == records(0, 30) + records(100, 160)
    assert folder.told == 1


def folder_arrivals(folder):
    async def run():
        return [one async for one in folder.source.look()]

    return asyncio.run(run())


def one_with(arrival, places):
    import dataclasses

    return dataclasses.replace(arrival, places=places)


NAMES = ("a.csv", "b.csv")
STEPS = st.one_of(
    st.tuples(st.just("look"), st.none() | st.integers(0, 3)),
    st.tuples(
        st.sampled_from(
            ["add", "add", "settle", "rotate", "copy", "empty", "replace", "rewrite"]
        ),
        st.sampled_from(NAMES),
        st.integers(0, 90),
    ),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0)),
)


class Model:
    """What was written, what may be lost because nobody had stored it, and how often that must be told."""

    def __init__(self, folder):
        self.folder, self.next = folder, 0
        self.files, self.at_risk = {name: [] for name in NAMES}, set()
        self.must_tell = 0

    def fresh(self, count):
        made = records(self.next, self.next + count)
        self.next += count
        return made

    def do(self, step):
        what, name, *rest = step
        if what == "look":
            self.folder.look(dies_behind=name)
        elif what == "settle":
            self.folder.settle()
        elif what == "add":
            lines = self.fresh(rest[0])
            path = self.folder.drop / name
            self.folder.add(name, lines) if path.exists() else self.folder.put(
                name, lines
            )
            self.files[name] += lines
        elif (self.folder.drop / name).exists():
            getattr(self, what)(name, *rest)

    def rotate(self, name, count):
        self._shift(name)
        (self.folder.drop / name).rename(self.folder.drop / f"{name}.1")
        self.files[name] = self.fresh(count)
        self.folder.put(name, self.files[name])

    def copy(self, name, count):
        self._shift(name)
        shutil.copyfile(self.folder.drop / name, self.folder.drop / f"{name}.1")
        self.files[name] = self.fresh(count)
        self.folder.put(name, self.files[name])

    def empty(self, name, count):
        self._lose(name)
        self.files[name] = self.fresh(count)
        self.folder.put(name, self.files[name])

    def replace(self, name, count):
        self._lose(name)
        self.files[name] = self.fresh(count)
        self.folder.put(name, self.files[name], over=True)

    def rewrite(self, name, count):
        self.files[name] = [*self.files[name], *self.fresh(count)]
        self.folder.put(name, self.files[name], over=True)

    def remove(self, name, _count):
        self.at_risk |= set(self.files[name]) - set(self.folder.lines)
        (self.folder.drop / name).unlink()
        self.files[name] = []

    def _shift(self, name):
        """Older ones get greater numbers; none is ever thrown away."""
        older = sorted(
            self.folder.drop.glob(f"{name}.*"), key=lambda one: len(one.name)
        )
        for path in reversed(older):
            path.rename(f"{path}.1")

    def _lose(self, name):
        lines, stored = set(self.files[name]), set(self.folder.lines)
        self.at_risk |= lines - stored
        self.must_tell += bool(lines - stored and lines & stored)


@given(st.lists(STEPS, max_size=25))
@example([("add", "a.csv", 5), ("look", None), ("copy", "a.csv", 3), ("look", 0)])
@example([("add", "a.csv", 5), ("look", None), ("copy", "a.csv", 3), ("look", 1)])
def test_whatever_becomes_of_files_each_record_is_stored_once_or_told_as_lost(steps):
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(Path(root), "*")
        model = Model(folder)
        for step in steps:
            model.do(step)
        folder.look().look()
        counts = Counter(folder.lines)
        assert max(counts.values(), default=1) == 1
        written = set(records(0, model.next))
        assert set(counts) <= written
        assert written - set(counts) <= model.at_risk
        assert bool(folder.told) >= bool(model.must_tell)
