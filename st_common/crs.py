"""Coordinate reference systems by their EPSG numbers: degrees, or planes that count in some unit of length."""

from functools import cache

WGS84 = 4326


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
