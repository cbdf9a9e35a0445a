"""The jobs and what each takes: read by their command lines, and to be read by forms, without Spark."""

from st_common.config.home import NAME_PATTERN
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

ENGINES = ("spark", "local")
PLACES = (
    Parameter("home", file, "the home folder; else FAIRWAY_HOME"),
    Parameter(
        "conf",
        file,
        "the folder of the settings; else FAIRWAY_CONF, HOME/conf or ./conf",
    ),
)
"""What all jobs take."""
_STREAM = Parameter("stream", named(), "only this stream; else all of the settings")
_GROUP = Parameter(
    "group",
    named(),
    "the group of streams and layers",
    default="default",
    title="Group of regions",
)

LOAD_LAYER = Program(
    "load_layer",
    "Replaces a layer by the features of a file, in one commit, and tells the streams and queries of its features.",
    (
        Parameter("layer", named(), "its name", is_word=True, is_required=True),
        Parameter(
            "file",
            file,
            "features: OpenStreetMap, GeoJSON, CSV, KML, .. (docs/cli.md)",
            is_word=True,
            is_required=True,
        ),
        _GROUP,
        Parameter("kinds", names, "kinds of conf/layers.toml; none: all", default=()),
        Parameter(
            "attribution",
            text,
            "whose data it is; none: OpenStreetMap's where the ids of features are its own",
        ),
        Parameter(
            "table",
            text,
            "which table of a file, or which file of an archive; none: it has one",
        ),
        Parameter(
            "id",
            text,
            "column or property; none: what the format has, else the place in the file",
            title="Column of ids",
        ),
        Parameter(
            "source-crs",
            matching("EPSG:[0-9]{1,6}"),
            "of its coordinates, as EPSG:25832; none: as the file says",
            title="System of the file",
        ),
        Parameter("x", text, "of CSV; none: it is found", title="Column of longitudes"),
        Parameter("y", text, "of CSV; none: it is found", title="Column of latitudes"),
        Parameter(
            "place",
            text,
            "of CSV, as WKT, EWKT or WKB; none: it is found",
            title="Column of geometries",
        ),
        Parameter(
            "lat-lon",
            flag,
            "the file has latitude where longitude should stand",
            title="Latitude first",
        ),
        Parameter(
            "engine",
            one_of(*ENGINES),
            "what reads the file and writes the table",
            default="spark",
        ),
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
            default="default",
            is_word=True,
        ),
        Parameter(
            "strategy",
            one_of("sample", "elements", "thresholds"),
            "how regions are found: from a sample, the first elements, or those that there are",
            default="sample",
        ),
        Parameter(
            "upper",
            number(above=0),
            "what holds more is split, by thresholds and by --rebalance; none: as the group was made",
            title="Upper threshold",
        ),
        Parameter(
            "lower",
            number(least=0),
            "what holds less is merged; none: a quarter of the upper one",
            title="Lower threshold",
        ),
        Parameter("unit", one_of("rows", "mb"), "of both thresholds", default="rows"),
        Parameter(
            "share",
            number(above=0, most=1),
            "of the data, for sample; none: .002, and at least 300 rows per region",
        ),
        Parameter(
            "first",
            whole(least=1),
            "of the stream, for elements",
            title="First n",
            unit="elements",
            default=10_000,
        ),
        Parameter("regions", whole(least=1, most=10_000), "how many", default=40),
        Parameter(
            "source",
            matching("[^-].*"),
            "stream:NAME, layer:NAME or a file, several with commas; none: the logs of the group's streams",
        ),
        Parameter(
            "tree",
            one_of("kdtree", "quadtree"),
            "of Sedona's, that parts a sample on Spark",
            default="kdtree",
        ),
        Parameter(
            "engine",
            one_of(*ENGINES),
            "what reads the sources and splits space; local splits at medians",
            default="spark",
        ),
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
            "take out rows that are older than their table's retention",
            default=True,
        ),
        Parameter(
            "levels",
            flag,
            "instead: bring `latest` up to date and take the snapshots that are due",
        ),
        Parameter("stream", named(), "with --levels: only this stream"),
        Parameter(
            "engine",
            one_of(*ENGINES),
            "what keeps the tables that no stream appends to; the others are kept without Spark",
            default="spark",
        ),
    ),
)

REPROCESS = Program(
    "reprocess",
    "Processes the days that an interval touches again, of one stream, or of all for which they are closed.",
    (
        _STREAM,
        Parameter("from", instant, "the beginning", is_required=True),
        Parameter("to", instant, "the end, not in it", is_required=True),
        Parameter(
            "engine",
            one_of(*ENGINES),
            "what folds a day; none: the one that a stream runs on",
        ),
    ),
)

REPORT_QUALITY = Program(
    "report_quality",
    "Checks one day, or every closed day that was not checked, and writes a report and the results of each.",
    (
        Parameter("day", day, "a closed day (UTC); none: all that were not checked"),
        Parameter(
            "engine",
            one_of(*ENGINES),
            "what reads and judges the rows, and writes the results",
            default="spark",
        ),
    ),
)

RUN_STREAM = Program(
    "run_stream",
    "Runs a stream with the engine that is asked for, or else the one of its settings, until it is asked to stop.",
    (
        Parameter("stream", named(), "its name", is_word=True, is_required=True),
        Parameter("engine", one_of(*ENGINES), "what runs it; none: its settings say"),
        Parameter("until-idle", flag, "end when the log holds nothing more"),
    ),
)

SUPERVISE = Program(
    "supervise",
    "Compares the streams and deliveries that should run with what runs, acts, and says what was done.",
    (
        Parameter(
            "reset",
            matching(f"(deliveries/)?{NAME_PATTERN}"),
            "a stream, or deliveries/NAME, that was given up: it may start at once",
            title="Start again",
        ),
        Parameter(
            "every",
            number(above=0),
            "tick again and again, so far apart, until SIGTERM",
            unit="seconds",
        ),
        Parameter("beat", file, "with --every: touched after each tick that went well"),
    ),
    module="st_common.processes.supervise",
)
DELIVER = Program(
    "deliver",
    "Hands the changes of a stream to its receiver, a stream or what the settings name, from where it ended before.",
    (
        Parameter(
            "delivery", text, "the delivery's name", is_word=True, is_required=True
        ),
        Parameter("until-idle", flag, "end when all that is committed is delivered"),
    ),
    module="st_common.processes.deliver",
)
REPORT_STREAMS = Program(
    "report_streams",
    "Writes for each stream that has fixes the page of its last hours, as `fairway streams report` does.",
    (
        Parameter("stream", named(), "only this stream; none: all that have fixes"),
        Parameter(
            "hours",
            number(above=0, most=24 * 366),
            "how long before its newest fix a page begins",
            unit="hours",
            default=24.0,
        ),
    ),
    module="st_common.processes.report_streams",
)

JOBS = (LOAD_LAYER, PARTITION, MAINTAIN, REPROCESS, REPORT_QUALITY, RUN_STREAM)
