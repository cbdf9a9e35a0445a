"""Coordinate reference systems by their EPSG numbers: degrees, or planes that count in some unit of length."""

import re
from functools import cache

WGS84 = 4326


SRID = re.compile(r"\s*SRID\s*=\s*(\d{1,9})\s*;\s*", re.IGNORECASE)


def without_srid(wkt: str, epsg: int) -> str:
    """A geometry of PostGIS as WKT: without the system that stands in front of it.

        SRID=4326;POINT (24.9 60.2), in a stream of 4326   ->   POINT (24.9 60.2)

    Args:
        wkt: the text; one without a system stays as it is.
        epsg: the number of the system that it has to be in; 0: of a plane that is none, so that no number is wrong.

    Raises:
        ValueError: it is in another system; the message names both.
    """
    said = SRID.match(wkt)
    if said is None:
        return wkt
    if epsg and int(said[1]) != epsg:
        raise ValueError(
            f"SRID={said[1]} is another system than the stream's EPSG:{epsg}"
        )
    return wkt[said.end() :]


@cache
def unit_of_crs(epsg: int) -> float | None:
    """How many metres a unit of a projected system is; None for degrees.

        4326 (WGS 84) -> None    25832 (UTM 32N) -> 1.0    2263 (New York, US survey feet) -> 0.30480060960121924

    Args:
        epsg: the number of the system.

    Raises:
        ValueError: there is no such system, or it is neither geographic nor projected in one unit.
    """
    if epsg == WGS84:
        return None
    import pyproj  # slow to import, and seldom needed

    try:
        system = pyproj.CRS.from_epsg(epsg)
    except pyproj.exceptions.CRSError:
        raise ValueError(f"there is no EPSG:{epsg}") from None
    if system.is_geographic:
        return None
    units = {float(axis.unit_conversion_factor) for axis in system.axis_info[:2]}
    if not system.is_projected or len(units) != 1:
        raise ValueError(f"EPSG:{epsg} is no projected system")
    return units.pop()
