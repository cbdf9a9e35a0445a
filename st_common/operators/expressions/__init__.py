"""What fixes must satisfy and what queries select, over whole columns and for many queries at once.

    speed > 5 AND kind = 'bus'      simple     columns against constants: compared here, found by an index
    ABS(load - 3) > 9               shaped     conditions that differ in constants alone: asked of DuckDB once for all
    anything else                   general    asked of DuckDB, as bits for all fixes or of pairs, whichever is less

readings   fixes as expressions see them: attributes, and what follows from the fix before (speed, heading)
screens    conditions beside regions: boxes met or not met, keys, filters that queries name
fields     the columns that a query selects, as JSON beside its changes
failures   what could not be judged is noted, with the query and the reason, and stops that query alone
"""
