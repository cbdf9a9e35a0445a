"""What each operator means, written down once, by brute force over plain columns.

Nothing here knows an engine: no step, no kernel, no index of ours, only plans, NumPy, shapely and pyproj (an import
contract sees to it). The oracle of the laws, `fairway verify`, tests and benches all ask these functions; what they add
is when: which fixes are there, and at what time an answer is judged.

    metric       distances, doubts             ranges       INSIDE
    shapes       how far from shapes           nearest      KNN, REVERSE, GROUP
    columns      fixes, features, SQL          pair_join    JOIN with itself
    members      a plan below the rest         layer_join   JOIN with a layer
    staying      VALID UNTIL                   steps        USING, COMPARE WITH
    window       WINDOW                        fence        DETECT
    aggregate    the values of groups          crossing     CROSS
    travelled    ways, AVGSPD                  sliding      [RANGE .., SLIDE ..]
    sessions     [SESSION ..]
    position_filter           which fixes are filtered
"""
