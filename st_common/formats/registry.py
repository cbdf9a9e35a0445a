"""The formats of records that there are, each in a module of its own."""

from collections.abc import Mapping
from types import MappingProxyType

from st_common.errors import ConfigError
from st_common.formats.ais import Ais
from st_common.formats.csv import Csv, Tsv
from st_common.formats.format import Format
from st_common.formats.geojson import GeoJson
from st_common.formats.gpx import Gpx
from st_common.formats.gtfs_rt import GtfsRt
from st_common.formats.ndjson import Ndjson
from st_common.formats.opensky import OpenSky
from st_common.formats.parquet import Parquet
from st_common.formats.sbs1 import Sbs1

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "csv": Csv(),
        "tsv": Tsv(),
        "ndjson": Ndjson(),
        "gpx": Gpx(),
        "gtfs-rt": GtfsRt(),
        "ais": Ais(),
        "sbs1": Sbs1(),
        "geojson": GeoJson(),
        "opensky": OpenSky(),
        "parquet": Parquet(),
    }
)
"""All formats, by the name that settings give them."""


def names_of_formats() -> str:
    """The names of all formats, for people: "csv, tsv, ndjson or gpx"."""
    *others, last = FORMATS
    return f"{', '.join(others)} or {last}"


def format_of(name: str) -> Format:
    """The format of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in FORMATS:
        raise ConfigError(
            f"no format {name!r} is known", hint=f"format is {names_of_formats()}"
        )
    return FORMATS[name]
