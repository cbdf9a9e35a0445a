"""The tasks and what each takes: read by jobs, commands, forms of DAGs and HTTP, without Spark.

A command takes what its job takes, and what only people at a terminal need, which it declares itself.
"""

from collections.abc import Mapping
from dataclasses import replace

from st_common.config.home import DEFAULT_GROUP, NAME_PATTERN
from st_common.config.parameters import Parameter, Program
from st_common.config.values import (
    day,
    file,
    flag,
    instant,
    matching,
    named,
    names,
    number,
    one_of,
    text,
    whole,
)

_FOLDER = replace(file, word="DIR")
_COLUMN = replace(text, word="COLUMN")
PLACES = (
    Parameter("home", _FOLDER, "the home folder; else FAIRWAY_HOME"),
    Parameter("conf", _FOLDER, "the settings; else FAIRWAY_CONF, HOME/conf, ./conf"),
)
"""What all jobs take."""
ENGINE = Parameter(
    "engine",
    one_of("spark", "local"),
    "what does the work: tasks on Spark, or this process alone",
    default="spark",
)
OF_COMMANDS: Mapping[str, str] = {"engine": "local"}
"""What commands take in place of a job's default: whoever types one is seldom at a cluster."""
_SYSTEM = matching("EPSG:[0-9]{1,6}", "a system such as EPSG:25832", word="EPSG:N")
_SYSTEM_OR_PLANE = matching(
    "planar|EPSG:[0-9]{1,6}", "planar, or a system such as EPSG:25832", word="EPSG:N"
)
_STREAM = Parameter(
    "stream", named(), "the name of a stream", is_word=True, is_required=True
)
_STREAMS = replace(names, schema={"type": "array", "items": named().schema})
_LAYER = Parameter(
    "layer", named(), "the name of a layer", is_word=True, is_required=True
)

LOAD_LAYER = Program(
    "load_layer",
    "Replaces a layer by the features of a file, in one commit, and tells the streams and queries of its features.",
    (
        _LAYER,
        Parameter(
            "file",
            file,
            "features: OpenStreetMap (.osm.pbf, .osm, ..), GeoJSON, CSV, KML, Shapefile, GeoPackage, FlatGeobuf, "
            "GeoParquet, GPX, TopoJSON or a GTFS feed; also .gz and .zip",
            is_word=True,
            is_required=True,
        ),
        Parameter(
            "group",
            named(),
            "the group whose regions the layer is spread over",
            default=DEFAULT_GROUP,
            title="Group of regions",
        ),
        Parameter(
            "kinds", names, "only these kinds of conf/layers.toml; else all", default=()
        ),
        Parameter(
            "attribution",
            text,
            "whose data it is, as the page says it; else OpenStreetMap's where the ids of features are its own",
        ),
        Parameter(
            "table",
            text,
            "which table of a file, or which file of an archive, if there are several",
        ),
        Parameter(
            "id",
            _COLUMN,
            "the column or property whose values are the ids of features; else their places: #1, #2, ..",
            title="Column of ids",
        ),
        Parameter(
            "crs",
            _SYSTEM_OR_PLANE,
            "convert coordinates into this system; planar: they are no degrees, and stay as they are; else that of "
            "the group's streams",
            title="System of the layer",
        ),
        Parameter(
            "source-crs",
            _SYSTEM,
            "in which system the file's coordinates are, where it does not say it",
            title="System of the file",
        ),
        Parameter(
            "x",
            _COLUMN,
            "of CSV: the column of longitudes, or of x; else it is found by its values and its name",
            title="Column of longitudes",
        ),
        Parameter(
            "y",
            _COLUMN,
            "of CSV: the column of latitudes, or of y; else it is found likewise",
            title="Column of latitudes",
        ),
        Parameter(
            "place",
            _COLUMN,
            "of CSV: the column that holds geometries, as WKT, EWKT or WKB; else it is found",
            title="Column of geometries",
        ),
        Parameter(
            "lat-lon",
            flag,
            "the file has latitude first, where longitude should stand",
            title="Latitude first",
        ),
        ENGINE,
    ),
)

PARTITION = Program(
    "partition",
    "Divides space into regions of like load, stores them as the group's next version, and brings its layers to them.",
    (
        Parameter(
            "group",
            named(),
            "the group of streams and layers",
            title="Group of regions",
            default=DEFAULT_GROUP,
            is_word=True,
        ),
        Parameter(
            "strategy",
            one_of("sample", "elements", "thresholds"),
            "how regions are found: by a sample of the data, the first elements of a stream, or thresholds, by which "
            "those that there are are split and merged",
            default="sample",
        ),
        Parameter(
            "upper",
            number(above=0),
            "for thresholds, and with rebalance: a region that holds more is split; else as the group's regions were "
            "made",
            title="Upper threshold",
        ),
        Parameter(
            "lower",
            number(least=0),
            "siblings that hold less together are merged; else a quarter of the upper threshold",
            title="Lower threshold",
        ),
        Parameter("unit", one_of("rows", "mb"), "of both thresholds", default="rows"),
        Parameter(
            "share",
            number(above=0, most=1),
            "of the data, for sample; else 0.002, and at least 300 rows per region",
        ),
        Parameter(
            "first",
            whole(least=1),
            "how many elements of the stream, for elements",
            title="First n",
            unit="elements",
            default=10_000,
        ),
        Parameter(
            "regions", whole(least=1, most=10_000), "how many regions", default=40
        ),
        Parameter(
            "source",
            matching("[^-].*"),
            "what is divided: stream:NAME, layer:NAME or a file, several with commas for regions of like load of all "
            "of them; else the logs of the group's streams",
        ),
        Parameter(
            "workers",
            whole(least=1),
            "over so many workers the second deviation is taken",
            default=2,
        ),
        Parameter(
            "tree",
            one_of("kdtree", "quadtree"),
            "of Sedona's, that parts a sample on Spark; without it space is split at medians",
            default="kdtree",
        ),
        ENGINE,
        Parameter(
            "rebalance",
            flag,
            "instead, without group: keep all groups that have thresholds between them",
        ),
    ),
)

MAINTAIN = Program(
    "maintain",
    "Compacts every table, purges what is older than its retention, deletes what no reader can want any more.",
    (
        Parameter(
            "purge",
            flag,
            "take out rows that are older than their data contract, or their stream, says",
            default=True,
        ),
        Parameter(
            "levels",
            flag,
            "instead: bring `latest` up to date and take the snapshots that are due",
        ),
        Parameter("stream", named(), "with levels: only this stream; else all"),
        ENGINE,
    ),
)

REPROCESS = Program(
    "reprocess",
    "Processes the days again that are due, or that an interval touches, of one stream, or of all.",
    (
        Parameter("stream", named(), "only this stream; else all", is_word=True),
        Parameter(
            "from",
            instant,
            "the beginning; without from and to the days that are due: closed ones that were not processed yet, or of "
            "which more is known since",
        ),
        Parameter("to", instant, "the end, not in it"),
        Parameter(
            "engine", ENGINE.type, "what folds a day; else what the stream runs on"
        ),
        Parameter("plan", flag, "say what would be processed, and process nothing"),
        Parameter(
            "wait",
            number(least=0),
            "so long the archive is waited for, where it has not passed a day that the engine has",
            unit="seconds",
            default=0,
        ),
    ),
    moved={"--stream": "a word without an option"},
)

REPORT_QUALITY = Program(
    "report_quality",
    "Checks one day, or every closed day that was not checked, and writes a report and the results of each.",
    (
        Parameter("day", day, "this day (UTC); else all that are due and unchecked"),
        ENGINE,
    ),
)

RUN_STREAM = Program(
    "run_stream",
    "Runs a stream with the engine that is asked for, or else the one of its settings, until it is asked to stop.",
    (
        _STREAM,
        Parameter("engine", ENGINE.type, "what runs it; else what its settings say"),
        Parameter("until-idle", flag, "end when the log's end is reached"),
    ),
)

SUPERVISE = Program(
    "supervise",
    "Compares the streams and deliveries that should run with what runs, acts, and says what was done.",
    (
        Parameter(
            "retry",
            matching(f"(deliveries/)?{NAME_PATTERN}", "a stream, or deliveries/NAME"),
            "what was given up, and may start at once",
            title="Start again",
        ),
        Parameter(
            "every",
            number(above=0),
            "again and again, so far apart, until it is asked to stop; else once",
            unit="seconds",
        ),
        Parameter("beat", file, "with every: touched after each time that went well"),
        Parameter("look", flag, "say what is to be done, and leave it to be done"),
    ),
    module="st_common.processes.supervise",
    moved={"--reset": "--retry"},
)
DELIVER = Program(
    "deliver",
    "Hands the changes of a stream to its receiver, a stream or what the settings name, from where it ended before.",
    (
        Parameter(
            "delivery",
            text,
            "the name of a delivery in conf/deliveries.toml",
            is_word=True,
            is_required=True,
        ),
        Parameter("until-idle", flag, "end when all that is committed is delivered"),
    ),
    module="st_common.processes.deliver",
)
REPORT_STREAMS = Program(
    "report_streams",
    "Writes for each stream that has fixes the page of its last hours, as `fairway streams report` does.",
    (
        Parameter("stream", _STREAMS, "only these streams; else all", default=()),
        Parameter(
            "hours",
            number(above=0, most=24 * 366),
            "how long before its end a page begins, or at the first fix; else a day for a page of each stream, an "
            "hour for one that is named",
            unit="hours",
        ),
        Parameter("from", instant, "from when on, in place of hours"),
        Parameter("to", instant, "up to when; else up to the newest fix"),
    ),
    module="st_common.processes.report_streams",
)

JOIN_LAYER = Program(
    "join_layer",
    "Finds each stored fix of a stream with each feature of a layer that it lies in or is near to.",
    (
        _STREAM,
        _LAYER,
        Parameter(
            "within",
            number(least=0),
            "how far a fix may be from a feature, in a plane in its unit; else it lies in one, or on its border",
            unit="metres",
        ),
        Parameter("kinds", names, "only features of these kinds; else all", default=()),
        Parameter("from", day, "the first day of the fixes (UTC)"),
        Parameter("to", day, "the end, not in it (UTC)"),
        ENGINE,
    ),
)
BACKTEST = Program(
    "backtest",
    "Shows what queries would have told on the last days, and what differs from older versions of them.",
    (
        Parameter("stream", named(), "the stream that they are on", is_required=True),
        Parameter("days", whole(least=1), "so many closed days", default=30),
        Parameter(
            "against", file, "older versions of the queries, which are compared by name"
        ),
        Parameter(
            "cores", whole(least=1), "so many processes fold the days", default=1
        ),
        ENGINE,
    ),
)

JOBS = (LOAD_LAYER, PARTITION, MAINTAIN, REPROCESS, REPORT_QUALITY, RUN_STREAM)
