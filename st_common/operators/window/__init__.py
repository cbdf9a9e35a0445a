"""Windows of time and of count (PLACE): fixes that qualified count until they are old, or until newer ones came.

`WINDOW 10 s` over fixes that satisfy the query at 1 s and at 7 s, of one object:

    tick (each second)     1      7     12     18
    fixes in the window    1    1, 7     7      -       a fix is 10 s old and still in at 11; it is too old at 12
    COUNT(*)               1      2      1      0
    the object             +                    -       in as long as one of its fixes is

They tell of the past: an object that is gone or silent stays until its fixes are old.
"""
