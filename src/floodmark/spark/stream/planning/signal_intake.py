"""Takes the signals of all channels, and applies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from floodmark.config.common import CommonOptions
from floodmark.signals.files import signal_channels
from floodmark.signals.records import ExecuteSnapshot, Signal, in_order_of_time
from floodmark.snapshots.control import SignalControl
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.offsets import Offset


@dataclass(frozen=True)
class Heeded:
    """What a micro-batch's signals lead to.

    Attributes:
        incremental: the incremental snapshots; None: there is nothing to remember of them.
        blocking: the blocking snapshots that wait, with those that were requested now.
        receipts: of the polled signals that were taken.
    """

    incremental: IncrementalState | None
    blocking: tuple[ExecuteSnapshot, ...]
    receipts: tuple[str, ...] = field(default=())


class SignalIntake:
    """Reads the channels and applies what they hold.

    Args:
        options: the source's options.
        owner: the name of the source's directory below ``state.dir``.
        captured: what capture has received, with the signals in it.
        control: carries signals out.
    """

    def __init__(self, options: CommonOptions, owner: str, captured: CapturedLog, control: SignalControl) -> None:
        self._channels = signal_channels(options, owner)
        self._captured = captured
        self._control = control

    def heed_polled(self, start: Offset, end: str, state: IncrementalState) -> Heeded:
        """Apply the signals of a micro-batch's log and of all channels that are due.

        Args:
            start: where the micro-batch begins.
            end: where its log ends.
            state: the incremental snapshots, which are changed.
        """
        polled = self._poll(bool(self._captured.signals(start.log, end)))
        return self.heed(start, end, state, polled)

    def heed(self, start: Offset, end: str, state: IncrementalState, polled: Sequence[Sequence[Signal]] = ()) -> Heeded:
        """Apply the signals of a micro-batch's log, and those that were polled; see ``heed_polled``."""
        signals = in_order_of_time([*polled, self._captured.signals(start.log, end)])
        blocking = self._control.apply(state, signals, end, len(start.blocking))
        receipts = tuple(signal.receipt for found in polled for signal in found)
        return Heeded(None if state.empty else state, (*start.blocking, *blocking), receipts)

    def _poll(self, others: bool) -> list[list[Signal]]:
        """Return the signals that wait in each channel.

        Args:
            others: whether the log holds signals. Then, or if a channel has any, all channels are polled at once,
                since one that isn't due yet may hold an older signal.
        """
        found = [channel.poll() for channel in self._channels]
        if not others and not any(found):
            return found
        for channel in self._channels:
            channel.read_at_once()
        return [channel.poll() for channel in self._channels]

    def acknowledge(self, start: Offset) -> tuple[str, ...]:
        """Acknowledge the signals that an offset took; return the receipts that must still be remembered."""
        kept = {receipt for channel in self._channels for receipt in channel.acknowledge(start.taken)}
        return tuple(receipt for receipt in start.taken if receipt in kept)

    def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            channel.close()
