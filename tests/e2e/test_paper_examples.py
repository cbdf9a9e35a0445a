"""The examples of the four papers, as tests/golden has them, on real data: they register, run, and answer right.

Streams, layers and attributes have the names of the papers; what they hold is real. Where an example names a place
that the data never see, the place alone is another one (`PLACES`). Expected answers come from pandas, shapely and
pyproj over the files.
"""

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Geod
from typer.testing import CliRunner

from st_common.cli import app

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LAYERS_TOML = Path(__file__).resolve().parents[2] / "conf" / "layers.toml"
PAPERS = re.compile(r"-- (GPAC|PLACE|CQL-S|CQL|BBoxDB)\b")
GEOD = Geod(ellps="WGS84")
STRAIT = "POLYGON((12.3 55.2, 13.1 55.3, 12.9 56.2, 12.4 56.1, 12.3 55.2))"
STREET = "Rua de Mouzinho da Silveira"
PLACES = {
    "cql-q2": [("'POLYGON ((121 25, 129 25, 127 33, 121 31, 121 25))'", f"'{STRAIT}'")],
    "bbox-airspace": [("(13.08, 52.33, 13.77, 52.68)", "(8.2, 47.2, 8.9, 47.7)")],
    "bbox-forest": [("(150.5, -34.2, 151.4, -33.5)", "(-8.7, 41.1, -8.5, 41.2)")],
    "bbox-street": [
        ("(150.5, -34.2, 151.4, -33.5)", "(-8.7, 41.1, -8.5, 41.2)"),
        ("Elizabeth Street", STREET),
    ],
    "bbox-street-filter": [
        ("(150.5, -34.2, 151.4, -33.5)", "(-8.7, 41.1, -8.5, 41.2)"),
        ("Elizabeth Street", STREET),
    ],
    "bbox-island": [
        ("(7.6, 54.0, 8.2, 54.4)", "(12.4, 55.6, 12.9, 56.1)"),
        ("(7.8, 54.15, 7.95, 54.21)", "(12.6, 55.7, 12.8, 56.0)"),
    ],
    "bbox-range": [
        ("(0, 0, 10, 10)", "(-8.66, 41.13, -8.58, 41.18)"),
        ("box(10, 10, 1, 1)", "box(-8.64, 41.14, -8.60, 41.17)"),
        ("(2, 2, 5, 5)", "(-8.63, 41.145, -8.605, 41.16)"),
    ],
}
TYPES = {"A": "truck", "B": "Car", "C": "Bus"}
ATTRIBUTES = {
    "movingobjects": {"type": "string"},
    "moving_objects": {"type": "string"},
    "stream_car": {},
    "stream_mycar": {},
    "buses": {"Line": "string"},
    "moving_objects_stream": {},
    "ships": {},
    "dgroup_car": {"state": "string"},
    "dgroup_bus": {},
    "dgroup_stock": {},
    "aircraft": {"CallSign": "string", "altitude_m": "double"},
    "trucks": {"convoy": "string"},
    "taxis": {"state": "string"},
}
PLANAR = ("movingobjects", "moving_objects", "dgroup_stock")


def example_of(path):
    """The statements of a golden file, with its own name for the query, and with places that the data see."""
    text = path.read_text().split("\n\n")[0]
    for old, new in PLACES.get(path.stem, ()):
        assert old in text
        text = text.replace(old, new)
    return re.sub(r"REGISTER QUERY \w+ AS", f'REGISTER QUERY "{path.stem}" AS', text)


EXAMPLES = {
    path.stem: example_of(path)
    for path in sorted(GOLDEN.glob("*.sql"))
    if PAPERS.match(path.read_text())
}


def taxis_of(shared):
    """The taxis of Porto in 100 minutes of a night, their times on a grid of 15 seconds: id, t, x, y, call."""
    rows = []
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for record in csv.DictReader(source):
            start = int(record["TIMESTAMP"]) // 15 * 15
            points = json.loads(record["POLYLINE"])
            rows += [
                (record["TAXI_ID"], start + 15 * n, x, y, record["CALL_TYPE"])
                for n, (x, y) in enumerate(points)
            ]
    fixes = pd.DataFrame(rows, columns=["id", "t", "x", "y", "call"])
    fixes = fixes[fixes["t"] < fixes["t"].min() + 6000].drop_duplicates(["id", "t"])
    return fixes.sort_values(["t", "id"], kind="stable", ignore_index=True)


def cars_of(shared):
    """The cars of Brussels on one day, each once in 30 seconds: id, t, x, y."""
    file = shared / "data" / "berlinmod-brussels" / "berlinmod_instants.csv.gz"
    rows = pd.read_csv(file, dtype={"vehid": str})
    when = pd.to_datetime(rows["t"], format="ISO8601").dt.tz_localize(None)
    rows["t"] = (when - pd.Timestamp(0)) // pd.Timedelta(30, "s") * 30
    rows = rows[when < pd.Timestamp("2020-06-02")].rename(
        columns={"vehid": "id", "lon": "x", "lat": "y"}
    )
    rows = rows.drop_duplicates(["id", "t"])[["id", "t", "x", "y"]]
    return rows.sort_values(["t", "id"], kind="stable", ignore_index=True)


def ships_of(shared):
    """The ships around Denmark: id, t, x, y."""
    rows = pd.read_csv(
        shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv",
        usecols=["# Timestamp", "Type of mobile", "MMSI", "Latitude", "Longitude"],
        dtype={"MMSI": str},
    )
    rows = rows[
        rows["Type of mobile"].isin(["Class A", "Class B"]) & (rows["Latitude"] <= 90)
    ]
    when = pd.to_datetime(rows["# Timestamp"], format="%d/%m/%Y %H:%M:%S")
    rows["t"] = (when - pd.Timestamp(0)) // pd.Timedelta(1, "s")
    rows = rows.rename(columns={"MMSI": "id", "Longitude": "x", "Latitude": "y"})[
        ["id", "t", "x", "y"]
    ]
    return rows.drop_duplicates(["id", "t"]).reset_index(drop=True)


def aircraft_of(shared):
    """Aircraft over Switzerland in the morning: id, t, x, y, CallSign, altitude_m."""
    with gzip.open(
        shared / "data" / "adsb-switzerland" / "switzerland.json.gz"
    ) as source:
        rows = pd.DataFrame(json.load(source))
    rows["t"], rows["altitude_m"] = rows["timestamp"] // 1000, rows["altitude"] * 0.3048
    names = {"icao24": "id", "longitude": "x", "latitude": "y", "callsign": "CallSign"}
    rows = rows.rename(columns=names)[["id", "t", "x", "y", "CallSign", "altitude_m"]]
    rows = (
        rows[rows["t"] < rows["t"].quantile(0.15)].drop_duplicates(["id", "t"]).dropna()
    )
    return rows.sort_values(["t", "id"], kind="stable", ignore_index=True)


def renamed(fixes, names):
    return fixes.assign(id=fixes["id"].replace(names))


def side_by_side(taxis):
    """Two taxis that are closer to each other than 8 m at one moment."""
    for _, now in taxis.groupby("t"):
        tree = shapely.STRtree(shapely.points(now["x"], now["y"]))
        left, right = tree.query(tree.geometries, predicate="dwithin", distance=6e-5)
        for one, other in zip(left[left < right], right[left < right], strict=True):
            return now["id"].iloc[one], now["id"].iloc[other]
    raise AssertionError("no two taxis ever met")


def accompanied(taxis, call, half_x, half_y, *, left):
    """The taxi around which others of a kind are most often, or with `left` which they leave most often."""
    x, y, calls = (
        taxis.pivot(index="t", columns="id", values=name).ffill()
        for name in ("x", "y", "call")
    )
    counts = {}
    for name in x.columns:
        near = (
            x.sub(x[name], axis=0).abs().le(half_x)
            & y.sub(y[name], axis=0).abs().le(half_y)
            & (calls == call)
        )
        near = near.drop(columns=name).to_numpy()
        counts[name] = (near[:-1] & ~near[1:]).sum() if left else near.sum()
    return max(counts, key=counts.get)


@pytest.fixture(scope="module")
def streams(shared):
    """The fixes of every stream."""
    taxis, cars, ships, aircraft = (
        taxis_of(shared),
        cars_of(shared),
        ships_of(shared),
        aircraft_of(shared),
    )
    unit = taxis.assign(
        x=(taxis["x"] + 8.66) / 0.1,
        y=(taxis["y"] - 41.12) / 0.06,
        type=taxis["call"].map(TYPES),
    )
    unit = renamed(unit, {accompanied(taxis, "A", 0.001, 0.0003, left=False): "car7"})
    one, other = side_by_side(taxis)
    leader = accompanied(taxis, "B", 0.0025, 0.0019, left=True)
    inside = shapely.intersects(
        shapely.from_wkt(STRAIT), shapely.points(ships["x"], ships["y"])
    )
    day = cars[cars["id"] == cars["id"].value_counts().index[0]]
    heights = aircraft.groupby("id")["altitude_m"].agg(["min", "max"])
    climbing = heights[(heights["min"] < 10_900) & (heights["max"] > 11_100)].index[0]
    stock = aircraft[aircraft["id"].isin([*heights.index[:40], climbing])]
    return {
        "movingobjects": unit[["id", "t", "x", "y", "type"]],
        "moving_objects": unit[["id", "t", "x", "y", "type"]],
        "stream_car": renamed(cars, {day["id"].iloc[0]: "mycar"}),
        "stream_mycar": renamed(day, {day["id"].iloc[0]: "mycar"}),
        "buses": cars.assign(
            Line=cars["id"].map(lambda name: "A" if name in "12" else "B")
        ),
        "moving_objects_stream": renamed(ships, {ships[inside]["id"].mode()[0]: "o1"}),
        "ships": ships,
        "dgroup_car": renamed(taxis, {one: "vehicle1", other: "vehicle2"}).assign(
            state=np.where(taxis["call"] == "C", "it's free", "busy")
        ),
        "dgroup_bus": taxis[["id", "t", "x", "y"]],
        "dgroup_stock": renamed(stock, {climbing: "Apple"}).assign(
            x=stock["altitude_m"] / 110, y=0.0
        )[["id", "t", "x", "y"]],
        "aircraft": aircraft,
        "trucks": renamed(taxis, {leader: "leader"}).assign(
            convoy=np.where(taxis["call"] == "B", "A", "B")
        ),
        "taxis": taxis.assign(state=np.where(taxis["call"] == "A", "busy", "free")),
    }


def settings_of(name):
    attributes = ", ".join(
        f'{key} = "{kind}"' for key, kind in ATTRIBUTES[name].items()
    )
    return (
        f'[streams.{name}]\nformat = "csv"\ntime_unit = "s"\nmax_ahead_s = "off"\nengine = "local"\n'
        f'columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}\nattributes = {{ {attributes} }}\n'
        f'crs = "{"planar" if name in PLANAR else "EPSG:4326"}"\n'
    )


def favourites_of(fixes, file):
    """A stored table of favourite cars: every third one, and car7; its place means nothing."""
    names = [*sorted(set(fixes["id"]))[::3], "car7"]
    features = [
        {
            "type": "Feature",
            "id": name,
            "properties": {},
            "geometry": {"type": "Point", "coordinates": [0.0, 0.0]},
        }
        for name in sorted(set(names))
    ]
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return set(names)


@pytest.fixture(scope="module")
def fairway(shared, streams, tmp_path_factory):
    """A home in which all examples ran: a function that runs a command there, and the notices of registration."""
    root = tmp_path_factory.mktemp("home")
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(
        "\n".join(settings_of(name) for name in streams)
    )
    (root / "conf" / "layers.toml").write_text(LAYERS_TOML.read_text())
    favourites_of(streams["movingobjects"], root / "cars.geojson")

    def run(*args):
        found = CliRunner().invoke(
            app, ["--home", str(root), *args], prog_name="fairway"
        )
        assert found.exit_code == 0, found.output
        return found

    data = shared / "data"
    porto = str(data / "osm-porto" / "porto-centre-2020-07-20.osm.pbf")
    run("layer", "load", "myfavoritecars", str(root / "cars.geojson"))
    run("layer", "load", "my_favourite_cars", str(root / "cars.geojson"))
    run("layer", "load", "dgroup_forest", porto, "--kinds", "park,forest")
    run("layer", "load", "dgroup_road", porto, "--kinds", "road")
    run(
        "layer",
        "load",
        "reefs",
        str(data / "polygons-naturalearth" / "ne_10m_ports.geojson"),
    )
    notices = {}
    for stem, text in EXAMPLES.items():
        notices[stem] = run("query", "register", "--text", text).stderr
        for area in re.findall(r"CREATE AREA (\w+|\"[^\"]+\") AS", text):
            run("query", "register", "--text", f"DROP AREA {area}")
    for name, fixes in streams.items():
        fixes.to_csv(root / f"{name}.csv", index=False)
        run("replay", name, str(root / f"{name}.csv"))
        run("run", name, "--until-idle")
    return run, notices


@pytest.fixture(scope="module")
def told(fairway):
    """A function that gives the changes of an example, and one that gives its answer now."""
    run, _ = fairway

    def changes(stem):
        lines = run("changes", stem, "--format", "jsonl").stdout.splitlines()
        return pd.DataFrame([json.loads(line) for line in lines])

    def answer(stem):
        return [
            json.loads(line)
            for line in run("answer", stem, "--format", "jsonl").stdout.splitlines()
        ]

    return changes, answer


def last_of(fixes):
    return fixes.drop_duplicates("id", keep="last").set_index("id")


def in_box(fixes, minx, miny, maxx, maxy):
    return fixes["x"].between(minx, maxx) & fixes["y"].between(miny, maxy)


def metres(fixes, x, y):
    """Geodesic metres between fixes and a place each."""
    other_x, other_y = (
        np.broadcast_to(np.asarray(each, float), len(fixes)) for each in (x, y)
    )
    return GEOD.inv(
        fixes["x"].to_numpy(), fixes["y"].to_numpy(), other_x.copy(), other_y.copy()
    )[2]


def objects(rows):
    return {row["object"] for row in rows}


def test_every_paper_has_examples():
    assert len(EXAMPLES) >= 30
    for paper in ("gpac", "place", "cql", "bbox"):
        assert sum(stem.startswith(paper) for stem in EXAMPLES) >= 5


@pytest.mark.spec("P4", "W8", "B17")
@pytest.mark.parametrize("stem", EXAMPLES)
def test_an_example_answers(told, stem):
    changes, _ = told
    assert len(changes(stem)) > 0


@pytest.mark.spec("W8")
def test_bare_words_are_told(fairway):
    _, notices = fairway
    for stem, words in (
        ("place-window", ["Car"]),
        ("place-area", ["Car"]),
        ("gpac-select", ["truck"]),
        ("cql-q1", ["mycar"]),
        ("cql-q3", ["mycar"]),
    ):
        assert re.findall(r"read as the text '(\w+)'", notices[stem]) == words


@pytest.mark.parametrize(
    "stem", ["gpac-select", "gpac-select-single-quotes", "gpac-static"]
)
def test_trucks_within_my_area(told, streams, stem):
    changes, answer = told
    fixes = streams["movingobjects"]
    trucks = in_box(fixes, 0.2, 0.6, 0.4, 0.8) & (fixes["type"] == "truck")
    found = changes(stem)
    assert set(found[found["sign"] == 1]["object"]) == set(fixes[trucks]["id"]) != set()
    last = last_of(fixes)
    now = in_box(last, 0.2, 0.6, 0.4, 0.8) & (last["type"] == "truck")
    assert objects(answer(stem)) == set(last.index[now])


@pytest.mark.parametrize("stem", ["gpac-join", "gpac-join-on"])
def test_my_favourite_cars_within_my_area(told, streams, tmp_path, stem):
    changes, _ = told
    fixes = streams["movingobjects"]
    names = favourites_of(fixes, tmp_path / "cars.geojson")
    within = in_box(fixes, 0.2, 0.6, 0.4, 0.8) & fixes["id"].isin(names)
    found = changes(stem)
    assert set(found[found["sign"] == 1]["object"]) == set(fixes[within]["id"]) != set()
    assert (found["object"] == found["partner"]).all()


def nearest(last, x, y, k):
    far = np.hypot(last["x"] - x, last["y"] - y).sort_values()
    assert far.iloc[k] - far.iloc[k - 1] > 1e-9
    return set(far.index[:k])


def test_the_nearest_by_gpac(told, streams):
    _, answer = told
    last = last_of(streams["movingobjects"])
    car7 = last.loc["car7"]
    others = last.drop("car7")
    trucks = last[last["type"] == "truck"]
    assert objects(answer("gpac-knn")) == nearest(last, 0.5, 0.25, 3)
    assert objects(answer("gpac-knn-moving")) == nearest(
        others, car7["x"], car7["y"], 3
    )
    within = trucks[in_box(trucks, 0.2, 0.6, 0.4, 0.8)]
    assert objects(answer("gpac-both")) == (
        nearest(within, 0.5, 0.25, 3) if len(within) > 3 else set(within.index)
    )


def around(last, width, height):
    car7 = last.loc["car7"]
    near = (last["x"] - car7["x"]).abs().le(width / 2) & (
        last["y"] - car7["y"]
    ).abs().le(height / 2)
    return last[near].drop("car7")


def test_regions_that_go_with_car7(told, streams):
    _, answer = told
    last = last_of(streams["movingobjects"])
    near = around(last, 0.02, 0.01)
    assert objects(answer("gpac-moving")) == set(near.index)
    car7 = last.loc["car7"]
    far = np.hypot(near["x"] - car7["x"], near["y"] - car7["y"]).sort_values()
    assert objects(answer("place-moving")) == set(far.index[:2])
    assert objects(answer("place-named-moving")) == set(last.index) - {"car7"}


def test_cars_in_a_circle(told, streams):
    _, answer = told
    last = last_of(streams["movingobjects"])
    cars = last[
        (last["type"] == "Car") & np.hypot(last["x"] - 0.3, last["y"] - 0.7).le(0.1)
    ]
    expected = nearest(cars, 0.3, 0.7, 2) if len(cars) > 2 else set(cars.index)
    assert objects(answer("place-circle")) == expected


@pytest.mark.spec("P5")
def test_cars_now_and_in_the_last_hour(told, streams):
    _, answer = told
    fixes = streams["movingobjects"]
    cars = fixes[in_box(fixes, 0.2, 0.6, 0.4, 0.8) & (fixes["type"] == "Car")]
    last = last_of(fixes)
    now = in_box(last, 0.2, 0.6, 0.4, 0.8) & (last["type"] == "Car")
    (row,) = answer("place-area")
    assert row["value"] == now.sum() > 0
    lately = cars[cars["t"] >= fixes["t"].max() - 3600]
    for stem in ("place-window", "place-window-objects"):
        (row,) = answer(stem)
        assert row["value"] == lately["id"].nunique() > now.sum()


@pytest.mark.spec("P5")
def test_the_time_between_two_readings(told, streams):
    changes, _ = told
    fixes = streams["moving_objects"]
    between = fixes.groupby("id")["t"].diff().dropna().sort_values().to_list()
    found = [
        json.loads(text)["elapsed_s"] for text in changes("place-elapsed")["fields"]
    ]
    assert sorted(value for value in found if value is not None) == between


def ways_of(fixes):
    """The fixes of one object with the metres of their legs, and travelled so far."""
    x, y = fixes["x"].to_numpy(), fixes["y"].to_numpy()
    legs = np.concatenate([[0.0], GEOD.inv(x[:-1], y[:-1], x[1:], y[1:])[2]])
    return fixes.assign(leg=legs, way=legs.cumsum())


def seconds(changes):
    return (
        pd.to_datetime(changes["event_ts"]).dt.tz_localize(None) - pd.Timestamp(0)
    ) / pd.Timedelta(1, "s")


@pytest.mark.spec("W2", "W5", "W7", "W8")
def test_q1_is_the_average_speed_of_the_past_hour_every_ten_minutes(told, streams):
    changes, _ = told
    fixes = streams["stream_car"]
    own = ways_of(fixes[fixes["id"] == "mycar"])
    found = changes("cql-q1")
    assert set(found["object"]) == {"mycar"}
    speeds = found[(found["sign"] >= 0) & found["value"].notna()]
    assert len(speeds) > 10
    for when, value in zip(seconds(speeds), speeds["value"], strict=True):
        high = when // 600 * 600
        legs = own[own["t"].between(high - 3600, high)]["leg"]
        assert value == pytest.approx(legs.iloc[1:].sum() / 3600, rel=1e-4, abs=1e-9)


@pytest.mark.spec("W4", "W7", "W8")
def test_q3_is_the_average_speed_of_the_last_50_km_every_10_km(told, streams):
    changes, _ = told
    own = ways_of(streams["stream_mycar"])
    found = changes("cql-q3")
    speeds = found[(found["sign"] >= 0) & found["value"].notna()]
    assert len(speeds) >= own["way"].iloc[-1] // 10_000 >= 3
    for when, value in zip(seconds(speeds), speeds["value"], strict=True):
        high = (own[own["t"] <= when]["way"].iloc[-1] + 1) // 10_000 * 10_000
        rows = own[own["way"].between(high - 50_000, high) & (own["t"] <= when)]
        expected = rows["leg"].iloc[1:].sum() / (rows["t"].iloc[-1] - rows["t"].iloc[0])
        assert value == pytest.approx(expected, rel=5e-3)


@pytest.mark.spec("W4")
def test_the_fixes_of_the_last_50_km(told, streams):
    _, answer = told
    found = pd.DataFrame(answer("cql-kms"))
    for name, fixes in streams["stream_car"].groupby("id"):
        own = ways_of(fixes)
        high = own["way"].iloc[-1] // 10_000 * 10_000
        rows = own[own["way"].between(high - 50_000, high)]
        count = (found["object"] == name).sum()
        assert (
            abs(count - (len(rows) if high else 0)) <= 1
        )  # a fix that is on a bound to the millimetre


@pytest.mark.spec("W3", "W6", "W7", "W8")
def test_q2_is_the_trajectory_in_the_sea(told, streams):
    changes, answer = told
    fixes = streams["moving_objects_stream"]
    inside = shapely.intersects(
        shapely.from_wkt(STRAIT), shapely.points(fixes["x"], fixes["y"])
    )
    own = fixes[inside & (fixes["id"] == "o1")]
    times = pd.to_datetime(own["t"], unit="s").dt.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    rows = answer("cql-q2")
    assert [(row["object"], row["partner"]) for row in rows] == [
        ("o1", time) for time in times
    ]
    stamps = [json.loads(row["fields"]) for row in rows]
    assert [(stamp["x"], stamp["y"]) for stamp in stamps] == list(
        zip(own["x"], own["y"], strict=True)
    )
    told_again = changes("cql-q2")
    assert (told_again["sign"] == 0).sum() == len(own) * (len(own) - 1) / 2


@pytest.mark.spec("W2")
def test_the_last_five_fixes(told, streams):
    changes, answer = told
    last = streams["taxis"].groupby("id").tail(5)
    assert {(row["object"], row["partner"][:19]) for row in answer("cql-rows")} == {
        (name, f"{time:%Y-%m-%dT%H:%M:%S}")
        for name, time in zip(
            last["id"], pd.to_datetime(last["t"], unit="s"), strict=True
        )
    }
    assert set(changes("cql-rows")["sign"]) == {-1}


@pytest.mark.spec("B17")
def test_aircraft_in_the_airspace(told, streams):
    changes, _ = told
    fixes = streams["aircraft"]
    within = in_box(fixes, 8.2, 47.2, 8.9, 47.7) & fixes["altitude_m"].between(
        0, 13_000
    )
    found = changes("bbox-airspace")
    assert set(found[found["sign"] == 1]["object"]) == set(fixes[within]["id"]) != set()
    assert all(
        list(json.loads(text)) == ["CallSign"]
        for text in found[found["sign"] == 1]["fields"]
    )


@pytest.mark.spec("B8", "B17")
def test_ships_that_head_to_an_island(told, streams):
    changes, _ = told
    fixes = streams["ships"]
    outside = in_box(fixes, 12.4, 55.6, 12.9, 56.1) & ~in_box(
        fixes, 12.6, 55.7, 12.8, 56.0
    )
    found = changes("bbox-island")
    assert (
        set(found[found["sign"] == 1]["object"]) == set(fixes[outside]["id"]) != set()
    )


@pytest.mark.spec("B8", "B17")
def test_the_price_of_a_stock(told, streams):
    changes, _ = told
    fixes = streams["dgroup_stock"]
    above = fixes[(fixes["id"] == "Apple") & fixes["x"].between(100, 9999)]
    found = changes("bbox-stock")
    assert (found["sign"] >= 0).sum() == len(above) > 10
    assert set(found["object"]) == {"Apple"}


@pytest.mark.spec("B9", "B17")
def test_two_vehicles_side_by_side(told, streams):
    changes, _ = told
    fixes = streams["dgroup_car"]
    one, other = (fixes[fixes["id"] == f"vehicle{n}"].set_index("t") for n in (1, 2))
    both = one.index.union(other.index)
    one, other = (
        one.reindex(both).ffill().dropna(),
        other.reindex(both).ffill().dropna(),
    )
    both = one.index.intersection(other.index)
    one, other = one.loc[both], other.loc[both]
    near = metres(one, other["x"], other["y"]) <= 10
    entries = int((near & ~np.concatenate([[False], near[:-1]])).sum())
    found = changes("bbox-side-by-side")
    assert (found["sign"] == 1).sum() == entries > 0


@pytest.mark.spec("B10")
def test_a_fix_goes_through_every_transformation(told, streams):
    changes, _ = told
    fixes = streams["dgroup_car"]
    fixes = fixes[
        in_box(fixes, -8.66, 41.13, -8.58, 41.18) & (fixes["state"] == "it's free")
    ]
    degree_x, degree_y = (
        metres(fixes, fixes["x"] + dx, fixes["y"] + dy) / 1e-4
        for dx, dy in ((1e-4, 0), (0, 1e-4))
    )
    half_x, half_y = (1.5 * (50 / degree + 0.01) / 2 for degree in (degree_x, degree_y))

    def meets(minx, miny, maxx, maxy, slack):
        x = fixes["x"].between(minx - half_x - slack, maxx + half_x + slack)
        return x & fixes["y"].between(miny - half_y - slack, maxy + half_y + slack)

    sure, perhaps = (
        set(
            fixes[
                meets(-8.64, 41.14, -8.60, 41.17, slack)
                & meets(-8.63, 41.145, -8.605, 41.16, slack)
            ]["id"]
        )
        for slack in (-1e-6, 1e-6)
    )
    found = changes("bbox-range")
    assert sure <= set(found[found["sign"] == 1]["object"]) <= perhaps
    assert sure


@pytest.mark.spec("B9", "B17")
def test_ships_close_to_a_reef(told, streams, shared):
    changes, _ = told
    fixes = streams["ships"]
    fixes = fixes[in_box(fixes, 7, 53, 15, 58)]
    ports = json.loads(
        (shared / "data" / "polygons-naturalearth" / "ne_10m_ports.geojson").read_text()
    )["features"]
    pairs = {0.999: set(), 1.001: set()}
    for port in ports:
        x, y = port["geometry"]["coordinates"][:2]
        near = fixes[in_box(fixes, x - 0.1, y - 0.1, x + 0.1, y + 0.1)]
        if len(near):
            east, north = metres(near, x, near["y"]), metres(near, near["x"], y)
            for factor, found in pairs.items():
                found |= set(
                    near["id"][(east <= 500 * factor) & (north <= 500 * factor)]
                )
    entered = changes("bbox-reef")
    assert pairs[0.999] <= set(entered[entered["sign"] == 1]["object"]) <= pairs[1.001]
    assert pairs[0.999]


@pytest.mark.spec("B17")
def test_taxis_near_a_passenger(told, streams):
    _, answer = told
    last = last_of(streams["taxis"])
    free = last[last["state"] == "free"]
    far = pd.Series(metres(free, -8.61, 41.145), free.index).sort_values()
    assert objects(answer("bbox-taxis")) == set(far[far <= 500].index[:5])


@pytest.mark.spec("B17")
def test_who_leaves_the_convoy(told):
    changes, _ = told
    found = changes("bbox-convoy")
    assert set(found["sign"]) == {-1}
    assert set(found["cause"]) == {"leave"}


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    "stem",
    [
        "gpac-both-moving",
        "place-window",
        "cql-q2",
        "cql-rows",
        "bbox-range",
        "bbox-reef",
        "bbox-convoy",
    ],
)
def test_verify_finds_the_same(fairway, stem):
    run, _ = fairway
    assert "holds" in run("verify", stem).stdout
