"""Write a traced time as a Perfetto trace (``.pftrace``), for ui.perfetto.dev and Perfetto's trace processor.

The package ``perfetto`` provides the messages of the file: a clock, the tracks, and a begin and an end for each slice.
The arguments of a slice are its state, and the kind and name of its cause. So a query on the file can add up the time
of each cause. Names and arguments are written once, and then referred to by numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jitter_workshop.errors import HostError, SessionError
from jitter_workshop.evidence.scene import GROUPS, WORST, Label, Scene, Track

ENDING = ".pftrace"
PACKAGES = ("perfetto", "google")
"""If a module with one of these names is missing, the package ``perfetto`` is not installed. ``google`` belongs to
protobuf."""
_AT_ONCE = 50_000
"""The number of messages that are collected before they are converted to bytes together."""
_SEQUENCE = 1
_NEEDS, _CLEARED = 2, 1
"""Flags of a message. _NEEDS: the message refers to texts of earlier messages. _CLEARED: the message begins a new table
of texts."""


@dataclass(frozen=True, slots=True)
class FileClock:
    """Hold the clock of a file.

    ``monotonic``: True if the file's times are those of CLOCK_MONOTONIC, False for CLOCK_REALTIME. ``at_ns``: one
    moment by the file's clock. ``realtime_ns``: the same moment by CLOCK_REALTIME.
    """

    monotonic: bool
    at_ns: int
    realtime_ns: int


def messages() -> ModuleType:
    """Return the module with the messages of the package ``perfetto``. Raise HostError if this package is not
    installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise HostError("the package perfetto is not installed", "pip install 'jitter-workshop[perfetto]'") from error
    found: ModuleType = perfetto_trace_pb2
    return found


class Writer:
    """Write scenes to one Perfetto file. ``title``: a text that tells what the scenes show; it is written into the
    file. Raise HostError if the package ``perfetto`` is not installed."""

    def __init__(self, clock: FileClock, title: str) -> None:
        self._proto = messages()
        self._types = self._proto.TrackEvent
        self._trace = self._proto.Trace()
        self._done: list[bytes] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._uuids: dict[int, int] = {}
        self._groups: dict[str, int] = {}
        self._given = 0
        self._tracks: dict[int, Track] = {}
        self._begin(clock)
        self._root = self._described(title, 0, 0)

    def _begin(self, clock: FileClock) -> None:
        proto = self._proto
        kind = proto.BUILTIN_CLOCK_MONOTONIC if clock.monotonic else proto.BUILTIN_CLOCK_REALTIME
        first = proto.TracePacket(trusted_packet_sequence_id=_SEQUENCE, timestamp=clock.at_ns, timestamp_clock_id=kind)
        first.clock_snapshot.primary_trace_clock = kind
        first.clock_snapshot.clocks.add(clock_id=kind, timestamp=clock.at_ns)
        if clock.monotonic:
            realtime = proto.BUILTIN_CLOCK_REALTIME
            first.clock_snapshot.clocks.add(clock_id=realtime, timestamp=clock.realtime_ns)
        self._trace.packet.append(first)
        defaults = self._packet()
        defaults.sequence_flags = _CLEARED | _NEEDS
        defaults.trace_packet_defaults.timestamp_clock_id = kind
        self._trace.packet.append(defaults)

    def _packet(self) -> Any:
        return self._proto.TracePacket(trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_NEEDS)

    def add(self, scene: Scene) -> None:
        """Write the slices and moments of a scene, and remove them from the scene. The scene can then be filled and
        added again. Raise SessionError for times that no clock can have."""
        try:
            for track in sorted(scene.tracks.values(), key=lambda one: (GROUPS.index(one.group), one.order)):
                self._slices(track)
                self._moments(track)
        except ValueError as error:
            raise SessionError("the trace has times that no clock can have", "measure again with --evidence") from error

    def whole(self) -> bytes:
        """Return the bytes of the whole file."""
        self._flush()
        return b"".join(self._done)

    def _flush(self) -> None:
        self._done.append(self._trace.SerializeToString())
        self._trace = self._proto.Trace()

    def _uuid(self, track: Track) -> int:
        """Return the number of a track in the file. At the first call for a track, also write the track's description.
        At the first track of a group, write the group's description, too.
        """
        known = self._uuids.get(id(track))
        if known is not None:
            return known
        self._tracks[id(track)] = track  # so that no other track gets the same id
        group = self._groups.get(track.group)
        if group is None:
            group = self._groups[track.group] = self._described(track.group, self._root, GROUPS.index(track.group))
        found = group if track.group == WORST else self._described(track.name, group, track.order)
        self._uuids[id(track)] = found
        return found

    def _described(self, name: str, parent: int, order: int) -> int:
        self._given += 1
        packet = self._packet()
        said = packet.track_descriptor
        said.uuid, said.name, said.sibling_order_rank = self._given, name, order
        said.sibling_merge_behavior = said.SIBLING_MERGE_BEHAVIOR_NONE
        said.child_ordering = said.EXPLICIT
        if parent:
            said.parent_uuid = parent
        self._trace.packet.append(packet)
        return self._given

    def _event(self, kind: int, uuid: int, label: Label | None) -> Any:
        """Return a message for an event of the track ``uuid``. ``kind``: the type of the event. ``label``: its name and
        arguments, None for an event without a name."""
        packet = self._packet()
        event = packet.track_event
        event.type, event.track_uuid = kind, uuid
        if label is not None:
            event.name_iid = self._number("event_names", label.name)
            for key, value in label.more:
                one = event.debug_annotations.add(name_iid=self._number("debug_annotation_names", key))
                if isinstance(value, int):
                    one.int_value = value
                else:
                    one.string_value_iid = self._number("debug_annotation_string_values", value)
        return packet

    def _number(self, table: str, text: str) -> int:
        """Return the number of a text in one of the file's tables of texts. Write the text into the table if it is
        new."""
        number = self._numbers.get((table, text))
        if number is None:
            number = self._numbers[table, text] = len(self._numbers) + 1
            packet = self._packet()
            new = getattr(packet.interned_data, table).add(iid=number)
            if table == "debug_annotation_string_values":
                new.str = text.encode()
            else:
                new.name = text
            self._trace.packet.append(packet)
        return number

    def _slices(self, track: Track) -> None:
        slices, track.slices = track.slices, []
        if not slices:
            return
        uuid = self._uuid(track)
        begins: dict[int, Any] = {}
        ends = self._event(self._types.TYPE_SLICE_END, uuid, None)
        packets = self._trace.packet
        open_until: list[int] = []
        for start, end, label, flow in slices:
            while open_until and open_until[-1] <= start:
                ends.timestamp = open_until.pop()
                packets.append(ends)
            # Equal labels are the same object, and comparing objects takes a fraction of the time.
            begin = begins.get(id(label))
            if begin is None:
                begin = begins[id(label)] = self._event(self._types.TYPE_SLICE_BEGIN, uuid, label)
            begin.timestamp = start
            if flow:
                begin.track_event.terminating_flow_ids.append(flow)
                packets.append(begin)
                del begin.track_event.terminating_flow_ids[:]
            else:
                packets.append(begin)
            open_until.append(end)
            if len(packets) > _AT_ONCE:
                self._flush()
                packets = self._trace.packet
        while open_until:
            ends.timestamp = open_until.pop()
            packets.append(ends)

    def _moments(self, track: Track) -> None:
        moments, track.moments = track.moments, []
        if not moments:
            return
        uuid = self._uuid(track)
        made: dict[Label, Any] = {}
        for at, label, flow in moments:
            mark = made.get(label)
            if mark is None:
                mark = made[label] = self._event(self._types.TYPE_INSTANT, uuid, label)
            mark.timestamp = at
            if flow:
                mark.track_event.flow_ids.append(flow)
            self._trace.packet.append(mark)
            if flow:
                del mark.track_event.flow_ids[:]
