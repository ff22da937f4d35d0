"""Every error that Floodmark raises.

::

    FloodmarkError
    ├── ConfigError            an option is missing, unknown or has a wrong value
    ├── ConnectError           the source cannot be reached or refuses the login
    ├── SourceStateError       the source is not in a state that capture needs
    │   ├── SlotBusyError      somebody else reads the replication slot
    │   └── LogGoneError       the log that the checkpoint needs no longer exists
    ├── CheckpointError        the checkpoint belongs to another source or version
    ├── StateDirError          ``state.dir`` cannot be read or written
    ├── DecodeError            a log record is not what the protocol says
    ├── DdlError               a statement of the log that changes tables cannot be understood
    ├── SchemaHistoryError     the history of the tables' structures is missing or damaged
    ├── SignalError            a signal is not what its type needs
    └── CaptureError           capture gave up after its retries
"""

from __future__ import annotations


class FloodmarkError(Exception):
    """Base of all errors raised on purpose.

    Args:
        what: what happened, and where.
        cure: what the user can do about it; one sentence or a list of ways out.
    """

    def __init__(self, what: str, cure: str = "") -> None:
        super().__init__(f"{what} {cure}".strip())
        self.what = what
        self.cure = cure

    def __reduce__(self) -> tuple[type[FloodmarkError], tuple[str, str]]:
        return type(self), (self.what, self.cure)


class ConfigError(FloodmarkError):
    """An option is missing, unknown or has a value that is not allowed."""


class ConnectError(FloodmarkError):
    """The source cannot be reached or refuses the login."""


class SourceStateError(FloodmarkError):
    """The source is not in a state that capture needs."""


class SlotBusyError(SourceStateError):
    """Another connection is reading the replication slot."""


class LogGoneError(SourceStateError):
    """The source no longer has the log that the checkpoint needs."""


class CheckpointError(FloodmarkError):
    """The checkpoint was written for another source or by an unknown version."""


class StateDirError(FloodmarkError):
    """``state.dir`` cannot be created, read or written."""


class DecodeError(FloodmarkError):
    """A log record is not what the protocol says it should be."""


class DdlError(FloodmarkError):
    """A statement of the log that changes tables cannot be understood."""


class SchemaHistoryError(FloodmarkError):
    """The history of the tables' structures is missing or damaged."""


class SignalError(FloodmarkError):
    """A signal's type is not known, or its data is not what the type needs."""


class CaptureError(FloodmarkError):
    """Capture could not go on and used up its retries."""


def describe(error: BaseException) -> str:
    """Return an error as a line of text: those raised on purpose speak for themselves."""
    return str(error) if isinstance(error, FloodmarkError) else f"{type(error).__name__}: {error}"
