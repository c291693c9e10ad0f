"""Read a Perfetto file with the package's own messages: the names are put back, and begins and ends become slices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jitter_workshop.report.formats.perfetto import messages

ROOT = 1
TABLES = ("event_names", "debug_annotation_names", "debug_annotation_string_values")


@dataclass
class Shown:
    """A slice, or a mark if ``end`` is None."""

    start: int
    end: int | None
    name: str
    args: dict[str, Any]
    depth: int
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def ns(self) -> int:
        return (self.end or self.start) - self.start


@dataclass
class ShownTrack:
    name: str
    parent: int
    order: int
    slices: list[Shown] = field(default_factory=list)
    marks: list[Shown] = field(default_factory=list)


@dataclass
class Read:
    clocks: dict[int, int]
    primary: int
    tracks: dict[int, ShownTrack]

    def group(self, name: str) -> list[ShownTrack]:
        """The tracks of a group; the group itself, if it has events of its own; [] if the file has no such group."""
        found = [uuid for uuid, one in self.tracks.items() if one.name == name and one.parent == ROOT]
        return [
            self.tracks[uuid] for group in found for uuid in self.tracks if group in (uuid, self.tracks[uuid].parent)
        ]

    def slices(self, group: str) -> list[Shown]:
        return [one for track in self.group(group) for one in track.slices]

    def marks(self, group: str) -> list[Shown]:
        return [one for track in self.group(group) for one in track.marks]

    def sums(self, group: str, *states: str) -> Counter[tuple[str, str]]:
        """The time of each cause in a group's slices of these states."""
        found: Counter[tuple[str, str]] = Counter()
        for one in self.slices(group):
            if one.args["state"] in states:
                found[one.args["kind"], one.args["cause"]] += one.ns
        return found

    def flows(self) -> tuple[Counter[int], Counter[int]]:
        """The flows that begin, and those that end."""
        every = [one for track in self.tracks.values() for one in (*track.slices, *track.marks)]
        return Counter(n for one in every for n in one.begins), Counter(n for one in every for n in one.ends)

    def texts(self) -> list[str]:
        found = [track.name for track in self.tracks.values()]
        for track in self.tracks.values():
            for one in (*track.slices, *track.marks):
                found += [one.name, *(value for value in one.args.values() if isinstance(value, str))]
        return found


def read(content: bytes) -> Read:
    """Read a file, and check what a reader relies on: one sequence, words before their use, ends that fit begins."""
    proto = messages()
    trace = proto.Trace.FromString(content)
    words: dict[tuple[str, int], str] = {}
    tracks: dict[int, ShownTrack] = {}
    stacks: dict[int, list[Shown]] = {}
    first, second, *_ = trace.packet
    clocks = {one.clock_id: one.timestamp for one in first.clock_snapshot.clocks}
    primary = first.clock_snapshot.primary_trace_clock
    assert second.trace_packet_defaults.timestamp_clock_id == primary
    assert second.sequence_flags & proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        for table in TABLES:
            for one in getattr(packet.interned_data, table):
                words[table, one.iid] = one.str.decode() if table == TABLES[2] else one.name
        if packet.HasField("track_descriptor"):
            said = packet.track_descriptor
            assert said.uuid not in tracks
            assert not said.parent_uuid or said.parent_uuid in tracks
            tracks[said.uuid] = ShownTrack(said.name, said.parent_uuid, said.sibling_order_rank)
        if packet.HasField("track_event"):
            _event(packet, words, tracks, stacks, proto.TrackEvent)
    assert not any(stacks.values())
    return Read(clocks, primary, tracks)


def _event(
    packet: Any, words: dict[tuple[str, int], str], tracks: dict[int, ShownTrack], stacks: Any, kinds: Any
) -> None:
    event, at = packet.track_event, packet.timestamp
    track, stack = tracks[event.track_uuid], stacks.setdefault(event.track_uuid, [])
    if event.type == kinds.TYPE_SLICE_END:
        ended = stack.pop()
        assert at >= ended.start
        ended.end = at
        return
    args = {}
    for one in event.debug_annotations:
        text = one.HasField("string_value_iid")
        args[words[TABLES[1], one.name_iid]] = words[TABLES[2], one.string_value_iid] if text else one.int_value
    name = words[TABLES[0], event.name_iid]
    shown = Shown(at, None, name, args, len(stack), tuple(event.flow_ids), tuple(event.terminating_flow_ids))
    if event.type == kinds.TYPE_INSTANT:
        track.marks.append(shown)
    else:
        assert event.type == kinds.TYPE_SLICE_BEGIN
        stack.append(shown)
        track.slices.append(shown)
