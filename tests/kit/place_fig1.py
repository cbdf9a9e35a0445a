"""The example of the PLACE paper's Fig. 1: nine objects, five range queries, and the four changes between T0 and T1.

The paper gives the answers, not the coordinates; these were laid out so that the answers come out as printed. Between
T0 and T1 the objects p1 to p4 and the queries Q1, Q3 and Q5 move. A moved stationary query is replaced, which takes
its answer back and gives the new one: what is left of a pair after - and + is the paper's change.

     y
    10 |   Q1 T0  Q1 T1           Q2 (stays)      Q5 T0 and T1 (one up)
     8 |   [ p5 ] [    ]          [ p1 ]          [ p9 ]
     5 |
     3 |   Q3 T0 [ p6 p7 ]        Q4 (stays)
     1 |   Q3 T1    [ p7 p8 ]     [ p3  p4 ] -> p4 leaves
       +------------------------------------------------------ x
"""

from st_common.controls.rows import Register, Replace
from st_common.query.plan import Box, Plan
from tests.kit.control_rows import control
from tests.kit.oracle import Fix, Row

STREAM = "place"
T0_US = 1_000_000
T1_US = 6_000_000  # the paper's server looks every 5 seconds

OBJECTS_T0 = {
    "p1": (11.0, 8.0),
    "p2": (16.0, 5.0),
    "p3": (11.0, 2.0),
    "p4": (13.0, 2.0),
    "p5": (1.5, 8.0),
    "p6": (1.5, 2.0),
    "p7": (3.0, 2.0),
    "p8": (5.0, 2.0),
    "p9": (21.0, 8.0),
}
OBJECTS_T1 = {
    "p1": (12.0, 8.5),
    "p2": (17.0, 4.0),
    "p3": (11.5, 1.5),
    "p4": (15.0, 2.5),
}
"""Only who moves."""

QUERIES_T0 = {
    "q1": (1.0, 7.0, 3.0, 9.0),
    "q2": (10.0, 7.0, 13.0, 9.0),
    "q3": (1.0, 1.0, 4.0, 3.0),
    "q4": (10.0, 1.0, 14.0, 3.0),
    "q5": (20.0, 7.0, 22.0, 9.0),
}
QUERIES_T1 = {
    "q1": (4.0, 7.0, 6.0, 9.0),
    "q3": (2.5, 1.0, 5.5, 3.0),
    "q5": (20.0, 7.5, 22.0, 9.5),
}
"""Only what moves."""

ANSWER_T0 = {
    ("q1", "p5"),
    ("q2", "p1"),
    ("q3", "p6"),
    ("q3", "p7"),
    ("q4", "p3"),
    ("q4", "p4"),
    ("q5", "p9"),
}
CHANGES = {("q1", -1, "p5"), ("q3", -1, "p6"), ("q3", 1, "p8"), ("q4", -1, "p4")}
"""What the server reports at T1: (query, sign, object)."""

ANSWER_T1 = {("q2", "p1"), ("q3", "p7"), ("q3", "p8"), ("q4", "p3"), ("q5", "p9")}


def plan_of(corners: tuple[float, float, float, float]) -> Plan:
    """The plan of a rectangle (minx, miny, maxx, maxy) on the example's stream."""
    minx, miny, maxx, maxy = corners
    return Plan(stream=STREAM, inside=Box(minx=minx, miny=miny, maxx=maxx, maxy=maxy))


def rows() -> list[Row]:
    """The example as a log, positions from 0: the queries, all fixes at T0, what moves at T1, fixes before queries."""
    fixes = [(name, T0_US, at) for name, at in OBJECTS_T0.items()] + [
        (name, T1_US, at) for name, at in OBJECTS_T1.items()
    ]
    out: list[Row] = []
    for name, corners in QUERIES_T0.items():
        out.append(control(_row(Register, name, 1, corners), len(out)))
    for name, event_us, (x, y) in fixes:
        out.append(Fix(position=len(out), object=name, event_us=event_us, x=x, y=y))
    for name, corners in QUERIES_T1.items():
        out.append(control(_row(Replace, name, 2, corners), len(out)))
    return out


def first_of_t1() -> int:
    """The position of the first row of T1: everything before it is T0."""
    return len(QUERIES_T0) + len(OBJECTS_T0)


def _row(
    kind: type[Register | Replace],
    name: str,
    version: int,
    corners: tuple[float, float, float, float],
) -> Register | Replace:
    return kind(
        query=name,
        version=version,
        plan=plan_of(corners).to_json(),
        text=f"REGISTER QUERY {name} AS SELECT * FROM {STREAM} INSIDE {corners}",
        owner="place",
    )
