"""The values of columns in the forms that codecs take, from what SQL_REDO says."""
