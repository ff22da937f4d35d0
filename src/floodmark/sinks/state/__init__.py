"""What queries remember of their targets, in files of ``state.dir``."""
