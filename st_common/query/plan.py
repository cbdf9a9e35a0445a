"""What a query asks, apart from its text: the one thing that engines read."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Emit = Literal["changes", "every"]
Predicate = Literal["intersects", "dwithin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A closed rectangle in the stream's CRS; `minx <= maxx` and `miny <= maxy`."""

    minx: float
    miny: float
    maxx: float
    maxy: float

    @staticmethod
    def of_corners(x1: float, y1: float, x2: float, y2: float) -> "Box":
        """The box between two corners, given in either order; it may have no extent (GPAC, spec G4)."""
        return Box(minx=min(x1, x2), miny=min(y1, y2), maxx=max(x1, x2), maxy=max(y1, y2))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerJoin:
    """A join of a stream with a layer: a pair of object and feature is in the answer while the predicate holds.

    `distance_m` is of `dwithin` (metres, closed: distance <= d). `kinds` empty means features of every kind; they are
    kept sorted, each once.
    """

    layer: str
    predicate: Predicate
    distance_m: float = 0.0
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(sorted(set(self.kinds))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One continuous query: on one stream, inside a box, joined with a layer, or both."""

    stream: str
    inside: Box | None = None
    join: LayerJoin | None = None
    emit: Emit = "changes"

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values, for control rows and the table `queries`; `from_json` gives an equal plan back."""
        return {"v": 1, **asdict(self)}

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Plan":
        """The plan that `to_json` gave."""
        inside, join = value.get("inside"), value.get("join")
        return Plan(
            stream=value["stream"],
            inside=Box(**inside) if inside else None,
            join=LayerJoin(**{**join, "kinds": tuple(join["kinds"])}) if join else None,
            emit=value["emit"],
        )
