"""The functions that expressions may call: each gives one value for one row, the same at every evaluation."""

from types import MappingProxyType

AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "AVGSPD", "TRAVELLED", "ODOMETER"),
    *("STDDEV", "VAR", "MEDIAN", "QUANTILE"),
    *("FIRST", "LAST", "COLLECT"),
)
STAMPS = "STAMPS"
_MANY = 100

FUNCTIONS = MappingProxyType(
    {
        # texts
        "CONCAT": (1, _MANY),
        "CONTAINS": (2, 2),
        "ENDS_WITH": (2, 2),
        "LENGTH": (1, 1),
        "LOWER": (1, 1),
        "LTRIM": (1, 2),
        "REGEXP_MATCHES": (2, 2),
        "RTRIM": (1, 2),
        "STARTS_WITH": (2, 2),
        "SUBSTR": (2, 3),
        "SUBSTRING": (2, 3),
        "TRIM": (1, 2),
        "UPPER": (1, 1),
        # numbers
        "ABS": (1, 1),
        "ACOS": (1, 1),
        "ASIN": (1, 1),
        "ATAN": (1, 1),
        "ATAN2": (2, 2),
        "CEIL": (1, 1),
        "COS": (1, 1),
        "DEGREES": (1, 1),
        "EXP": (1, 1),
        "FLOOR": (1, 1),
        "GREATEST": (1, _MANY),
        "ISFINITE": (1, 1),
        "ISNAN": (1, 1),
        "LEAST": (1, _MANY),
        "LN": (1, 1),
        "LOG10": (1, 1),
        "MOD": (2, 2),
        "PI": (0, 0),
        "POWER": (2, 2),
        "RADIANS": (1, 1),
        "ROUND": (1, 2),
        "SIGN": (1, 1),
        "SIN": (1, 1),
        "SQRT": (1, 1),
        "TAN": (1, 1),
        "TRUNC": (1, 1),
        # what is missing
        "COALESCE": (1, _MANY),
        "IFNULL": (2, 2),
        "NULLIF": (2, 2),
        # times, in UTC
        "DATE_TRUNC": (2, 2),
        "DAY": (1, 1),
        "DAYOFWEEK": (1, 1),
        "EPOCH": (1, 1),
        "HOUR": (1, 1),
        "ISODOW": (1, 1),
        "MINUTE": (1, 1),
        "MONTH": (1, 1),
        "SECOND": (1, 1),
        "STRFTIME": (2, 2),
        "YEAR": (1, 1),
        # cells of a place, which is that of the fix where none is said (see `cells`)
        "GRID_CELL": (1, 3),
        "H3_CELL": (1, 3),
    }
)
"""How many arguments each takes, at least and at most; what they do is as in DuckDB."""
