"""Every error that Floodmark raises.

::

    FloodmarkError
    ├── ConfigError            an option is missing, unknown or has a wrong value
    ├── ConnectError           the source, or a schema registry, cannot be reached
    │   ├── LoginError         it refuses the login; a retry would not help
    │   └── NotReadyError      it responds, but accepts no connections for now
    ├── SourceStateError       the source is not in a state that capture needs
    │   ├── ConditionError     a signal's condition on rows is wrong or not allowed
    │   ├── SlotBusyError      another connection reads the replication slot
    │   ├── PrivilegeError     the account lacks a privilege
    │   ├── NoTableLeftError   every table of the query has failed
    │   ├── UnreadableLogError the server can't read its log at a position
    │   ├── ReadPointGoneError the server can't show a table as it was at a read point any more
    │   ├── StatementTimeoutError  a statement took longer than the stream may wait
    │   │   └── LockTimeoutError   another session held a lock all the time
    │   └── LogGoneError       the log that the checkpoint needs no longer exists
    │       └── ForkedLogError the source's log has another history than the checkpoint's
    ├── CheckpointError        the checkpoint belongs to another source or version
    ├── OffsetError            an offset of Debezium, or a position, can't be taken over
    ├── StateDirError          ``state.dir`` cannot be read or written
    │   └── DamagedFileError   a file in it is not what was written
    ├── SchemaChangeError      the table of typed rows was altered while the query runs
    ├── DecodeError            a log record does not follow the protocol
    ├── DdlError               a statement of the log that changes tables cannot be understood
    ├── SchemaHistoryError     the history of the tables' structures is missing or damaged
    ├── SignalError            a signal is not what its type needs
    ├── CaptureError           capture gave up after its retries
    ├── RegistryError          a schema registry refuses a schema, or lacks one
    └── TargetError            a target table cannot be written
        ├── TargetBusyError      it can't be written for now; trying again may help
        ├── TargetChangedError   others changed it in a way that the query can't go on from
        ├── TargetDamagedError   its files are not what they should be
        └── TargetUnfitError     it can't take the source table's rows, and others can go on without it
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
    """The source, or a schema registry, cannot be reached; trying again may help."""


class LoginError(ConnectError):
    """The source refuses the login, or the client refuses the source; trying again doesn't help."""


class NotReadyError(ConnectError):
    """The source responds but accepts no connections for now: it starts, stops, recovers, or has too many."""


class SourceStateError(FloodmarkError):
    """The source is not in a state that capture needs."""


class ConditionError(SourceStateError):
    """A signal's condition on the rows of a table is wrong, or contains something that is not allowed."""


class SlotBusyError(SourceStateError):
    """Another connection is reading the replication slot."""


class PrivilegeError(SourceStateError):
    """The account lacks a privilege that the operation needs."""


class NoTableLeftError(SourceStateError):
    """None of a query's tables can be read or decoded, so nothing would be delivered any more."""


class StatementTimeoutError(SourceStateError):
    """The source cancelled a statement that exceeded its time limit."""


class LockTimeoutError(StatementTimeoutError):
    """A statement timed out waiting for another session's lock; it can be tried again later."""


class LogGoneError(SourceStateError):
    """The source no longer has the log that the checkpoint needs."""


class UnreadableLogError(SourceStateError):
    """The server can't read its log at the requested position: the log is damaged, or is another one."""


class ReadPointGoneError(SourceStateError):
    """The server can't show a table as it was at a read point any more; another read point helps."""


class ForkedLogError(LogGoneError):
    """The source lost changes that the checkpoint has, so the checkpoint's position refers to another log.

    A new snapshot doesn't repair that: lost changes that were already delivered would stay in the target.
    """


class CheckpointError(FloodmarkError):
    """The checkpoint was written for another source or by an unknown version."""


class OffsetError(FloodmarkError):
    """An offset of Debezium, or a position that the user gives, can't be used: the query would not go on from it."""


class ComparisonError(FloodmarkError):
    """What is to be compared isn't of a form that can be."""


class StateDirError(FloodmarkError):
    """``state.dir`` cannot be created, read or written."""


class DamagedFileError(StateDirError):
    """A file in ``state.dir`` is not what was written: changed, cut off, or under another file's name."""


class SchemaChangeError(FloodmarkError):
    """The table of a query of typed rows has other columns than the query's rows."""


class DecodeError(FloodmarkError):
    """A log record does not follow the protocol."""


class DdlError(FloodmarkError):
    """A statement of the log that changes tables cannot be understood."""


class SchemaHistoryError(FloodmarkError):
    """The history of the tables' structures is missing or damaged."""


class SignalError(FloodmarkError):
    """A signal's type is not known, or its data is not what the type needs."""


class CaptureError(FloodmarkError):
    """Capture could not continue and used up its retries."""


class RegistryError(FloodmarkError):
    """A schema registry refuses a schema, lacks one that it should have, or is none."""


class TargetError(FloodmarkError):
    """A target table can't be written as it is."""


class TargetBusyError(TargetError):
    """A target can't be reached or written for now; trying again may help."""


class TargetChangedError(TargetError):
    """A target table was changed by others in a way that the query can't go on from."""


class TargetDamagedError(TargetError):
    """A target table's files are not what they should be."""


class TargetUnfitError(TargetError):
    """A target table can't take the rows of the source's, whatever the mirror's options are."""


def describe(error: BaseException) -> str:
    """Return an error as text, with the name of its type unless it is one of Floodmark's.

    What another library tells its developers after an empty line is left out: our text goes on after it.
    """
    if isinstance(error, FloodmarkError):
        return str(error)
    told, _, _ = str(error).partition("\n\n")
    return f"{type(error).__name__}: {told}"
