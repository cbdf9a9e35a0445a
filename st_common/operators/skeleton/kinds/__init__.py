"""The kinds of queries that are judged at ticks: a new one is a module with four methods and a line here (SPEC G1).

Begin with `nearest`, then `moving_box`.
"""

from st_common.operators.skeleton.kinds.group import Group
from st_common.operators.skeleton.kinds.moving_box import MovingBoxes
from st_common.operators.skeleton.kinds.moving_circle import MovingCircles
from st_common.operators.skeleton.kinds.moving_combined import MovingCombined
from st_common.operators.skeleton.kinds.nearest import Nearest
from st_common.operators.skeleton.kinds.nearest_extent import NearestExtent
from st_common.operators.skeleton.kinds.reverse import Reverse
from st_common.operators.skeleton.world import Kind

KINDS: dict[str, Kind] = {
    "moving_box": MovingBoxes(),
    "moving_circle": MovingCircles(),
    "moving_combined": MovingCombined(),
    "nearest": Nearest(),
    "nearest_extent": NearestExtent(),
    "reverse": Reverse(),
    "group": Group(),
}
