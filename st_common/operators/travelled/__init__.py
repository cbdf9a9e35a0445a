"""Windows along the way that objects have come (CQL-S): RANGE and SLIDE by space, by time, by rows.

`[RANGE BY 20 km RATTR SPACE, SLIDE BY 10 km SATTR SPACE]` over one object, whose fixes are a to e:

    fix                       a      b      c      d      e
    way it has come, km       0      8     13     21     34
    high: whole slides        -      -     10     20     30      the window's upper end
    low: high - range         -      -    -10      0     10
    fixes in the window                   a b  a b c    c d      those whose way is from low to high
    told                                +a +b     +c   +d -a -b

So an object that stands still moves no window, and a fix enters when the window slides over it, not when it comes.

What happens in a run, and where it stands:

    opening     a row for each fix that satisfies the query, with the way its object had come
    ways        how far objects have come after each event
    touches     which objects something happens to, at which ticks
    visits      pairs of a slot (a frame and an object) and a tick at which something may change
    bounds      where windows are at visits
    spells      from when to when rows are in results: found by bisection, for all ticks at once
    telling     rows of changes, groups over them
    closing     what of all this the state keeps
"""
