"""One codec for each type of columns.

Raw values are text, in the forms that ``values`` makes: numbers with all digits that their scale has, times as
``YYYY-MM-DD HH:MM:SS.fff``, zoned ones with `` +HH:MM`` behind, intervals as PostgreSQL writes them; bytes of RAW and
BLOB; numbers of BINARY_FLOAT and BINARY_DOUBLE.
"""
