"""Run a disposable virtual machine with its own kernel, in which you may change everything.

You need no rights of root to start the machine.

  practice               open the workshop inside, in this terminal (--plain: line by line)
  practice -- CMD…       run a command inside as root; its output and its exit code are returned
  practice list          show the shapes of machines, and whether this host can run each (also: --list)
  practice fetch         get the kernel once, then boot the machine once and save it. apt downloads Debian's kernel
                         package, but does not install it. With --kernel FILE and --modules DIR, use a kernel of your
                         own; with --shape rt, get the real-time kernel
  practice reset         take this user's machines back to their state after boot, within seconds. The workshop or
                         shell in their terminals starts again (--shape: only machines of one shape)
  practice stop          end this user's machines (--shape: only machines of one shape)
  practice scenarios     list the scenarios: faults to mend in a machine (--folder: your own scenarios)
  practice scenario ID   boot a machine with this fault, and open a shell inside; "check" in it says what is mended.
                         --seed N: the same values again; --try: run the scenario's own solution, and report

A machine boots once and is saved in the cache (about 200 MB for each shape, and 70 MB that all shapes share). Later
starts continue from the saved state, until the kernel, QEMU or this program changes. QEMU uses KVM if a measurement
finds KVM faster than emulation ('practice list' shows the result). On an emulated machine, the kernel, its settings,
its counts and its refusals of writes are real. Measured times mean nothing there. A machine has at most the memory that
'practice list' shows. It sees /usr, the Python environment and this program, all read-only, and has no network. With
--network, the machine has a network card with the address 10.0.2.15. A gateway inside QEMU, 10.0.2.2, answers pings. No
packet leaves QEMU. A machine ends with the command that opened it. Files below /root/kept, such as the sessions of the
workshop, stay on this host in the state folder (~/.local/state/jitter-workshop/practice/SHAPE).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitter_workshop.commands.common.base import PROGRAM, add_json, print_notice, print_result, require_live_host
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.text import ID, SENTENCE, clean, many

if TYPE_CHECKING:
    from jitter_workshop.practice.kvm import KvmProbe
    from jitter_workshop.practice.shape import Shape

ACTIONS = ("list", "fetch", "reset", "stop", "scenarios", "scenario")
SCENARIO_COMMANDS = ("task", "check", "hint")
"""The commands of a scenario's shell: they work only inside its machine."""


def add_arguments(parser: Any) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=(*ACTIONS, *SCENARIO_COMMANDS),
        metavar="ACTION",
        help=f"{', '.join(ACTIONS)}; without ACTION the workshop opens inside the machine",
    )
    parser.add_argument("scenario", nargs="?", metavar="ID", default="", help="with scenario: the id of the scenario")
    parser.add_argument("--list", action="store_true", help="the same as the action 'list'")
    parser.add_argument("--shape", metavar="NAME", default="", help="the machine's shape (default: laptop)")
    parser.add_argument(
        "--network",
        action="store_true",
        help="give the machine a network card whose packets stay inside QEMU (default: none)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="open the workshop as lines of text instead of full screen"
    )
    parser.add_argument(
        "--kernel", metavar="FILE", type=Path, help="with fetch: the image of your own kernel, vmlinuz or vmlinux"
    )
    parser.add_argument(
        "--modules", metavar="DIR", type=Path, help="with fetch: the kernel's folder of modules, below /lib/modules"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=int,
        help="with scenario: the seed of the random values (default: a random seed)",
    )
    parser.add_argument(
        "--try",
        dest="unattended",
        action="store_true",
        help="with scenario: run the checks, then the scenario's own solution, then the checks again",
    )
    parser.add_argument(
        "--folder", metavar="DIR", type=Path, help="with scenarios or scenario: a folder with your own scenarios"
    )
    add_json(parser)
    parser.takes_command = True


def run(args: argparse.Namespace) -> int:
    """Run the action of ``practice``, and return its exit code. For a command in the machine, return the command's
    code, or 128 + N if signal N ended it."""
    require_live_host(args)
    action = args.action or ("list" if args.list else "")
    command = getattr(args, "command", [])
    if command and action:
        raise UsageError(f"'practice {action}' takes no command", f"see '{PROGRAM} practice --help'")
    if (args.kernel or args.modules) and action != "fetch":
        raise UsageError("--kernel and --modules are for 'practice fetch'", f"see '{PROGRAM} practice --help'")
    if args.json and not action:
        raise UsageError("--json is for an action, such as 'practice list'", f"see '{PROGRAM} practice --help'")
    if args.network and action:
        raise UsageError(f"'practice {action}' takes no --network", f"see '{PROGRAM} practice --help'")
    if action in ("scenarios", "scenario", *SCENARIO_COMMANDS):
        from jitter_workshop.commands.common import scenario

        return scenario.run(args)
    if args.scenario or args.folder or args.unattended or args.seed is not None:
        raise UsageError("scenarios and their options are for 'practice scenario'", f"see '{PROGRAM} practice --help'")
    if action == "list":
        return _list(args)
    if action == "fetch":
        return _fetch(args, _shape(args.shape))
    shape = _shape(args.shape)
    if action == "stop":
        return _stop(args, shape)
    if action == "reset":
        return _reset(args, shape)
    return _open(shape, command, args)


def _shape(name: str) -> Shape:
    from jitter_workshop.practice.shape import DEFAULT, IMPOSSIBLE, SHAPES

    wanted = name or DEFAULT
    if wanted in SHAPES:
        return SHAPES[wanted]
    built = ", ".join(SHAPES)
    if wanted in IMPOSSIBLE:
        raise HostError(IMPOSSIBLE[wanted], f"the shapes are {built}")
    raise UsageError(f"there is no shape '{clean(wanted, ID)}'", f"there are {built}")


def _open(shape: Shape, command: list[str], args: argparse.Namespace) -> int:
    from jitter_workshop.commands.common.guest import run_inside, terminal_words
    from jitter_workshop.practice import relay

    terminal = relay.on_terminal()
    if not command and not terminal:
        raise HostError("the workshop in a machine needs a terminal", f"without one: {PROGRAM} practice -- CMD…")
    argv = command or ["-m", "jitter_workshop", *(["--plain"] if args.plain else [])]
    code = run_inside(shape, argv, terminal_words(), terminal, own=not command, network=args.network)
    return 128 - code if code < 0 else code


def _list(args: argparse.Namespace) -> int:
    from jitter_workshop.practice import kernels, kvm, qemu, running, saved
    from jitter_workshop.practice.shape import SHAPES

    cache = kernels.kernel_cache_dir()
    rows: list[dict[str, Any]] = []
    for shape in SHAPES.values():
        why, release = "", None
        try:
            release = kernels.find_kernel(shape.kernel, cache).release
            qemu.refuse_if_no_qemu(qemu.MachineOptions.of(shape), cache)
        except kernels.NotHere as reason:
            why = reason.sentence()
        rows.append(
            {
                "name": shape.name,
                "cpus": shape.hardware.cpus,
                "memory_mib": shape.hardware.memory_mib,
                "kernel": release,
                "flavour": shape.kernel,
                "ready": not why,
                "why": why,
                "sentence": shape.sentence,
            }
        )
    going = [{"shape": one.shape, "pid": one.pid} for one in running.owners_of_machines(cache)]
    lines = [f"{row['name']:<8} {row['sentence']} {row['memory_mib']} MiB" for row in rows]
    answer, used = kvm.probe_kvm(), saved.used_mib(cache)
    lines += ["", f"Machines run in KVM: {answer.why}." if answer.usable else _emulated(answer)]
    lines += list(dict.fromkeys(map(_kernel_line, rows)))
    lines += [f"Saved machines take {used} MiB in {cache}."] if used else []
    lines += [f"Running: {one['shape']} (pid {one['pid']})." for one in going]
    payload = {
        "shapes": rows,
        "accelerator": "kvm" if answer.usable else "tcg",
        "why": answer.why,
        "kvm_turn_ns": answer.turn_ns,
        "kvm_exit_us": answer.exit_us,
        "saved_mib": used,
        "running": going,
    }
    print_result(args, payload, "\n".join(lines) + "\n")
    return 0


def _kernel_line(row: dict[str, Any]) -> str:
    """Return a line on the kernel of a shape: its release, or the reason why a machine of this shape cannot start."""
    if not row["ready"]:
        return f"Not ready ({row['flavour']}): {clean(row['why'], SENTENCE)}."
    return f"Kernel ({row['flavour']}): {clean(row['kernel'])}."


def _emulated(answer: KvmProbe) -> str:
    return f"Machines are emulated, so their times mean nothing: {answer.why}."


def _fetch(args: argparse.Namespace, shape: Shape) -> int:
    from jitter_workshop.commands.common.guest import save_booted_machine
    from jitter_workshop.practice import kernels

    if bool(args.kernel) != bool(args.modules):
        raise UsageError("--kernel and --modules belong together", "name both")
    cache, flavour = kernels.kernel_cache_dir(), shape.kernel
    if args.kernel:
        kernel = kernels.add_kernel(args.kernel, args.modules, flavour, cache)
    else:
        print_notice(f"Getting Debian's package {kernels.SOURCES[flavour].package} (70 MB) into {cache}.")
        kernel = kernels.fetch(flavour, cache)
    kernels.verify_kernel(kernel)
    save_booted_machine(shape)
    payload = {"kernel": kernel.release, "folder": str(kernel.folder), "modules": len(kernel.modules)}
    text = f"Kernel {clean(kernel.release)} with {many(len(kernel.modules), 'module')} is in {kernel.folder}.\n"
    print_result(args, payload, text)
    return 0


def _reset(args: argparse.Namespace, shape: Shape) -> int:
    import time

    from jitter_workshop.practice import kernels, running

    began = time.monotonic()
    done, others = running.ask_for_reset(kernels.kernel_cache_dir(), shape.name if args.shape else "")
    took = round(time.monotonic() - began, 2)
    payload = {"reset": [one.pid for one in done], "others": [one.pid for one in others], "seconds": took}
    lines = [f"Reset in {took:.1f} s: {one.shape} (pid {one.pid})." for one in done]
    why_not = "because this machine runs a command without a terminal"
    lines += [f"Not reset, {why_not}: {one.shape} (pid {one.pid})." for one in others]
    print_result(args, payload, "\n".join(lines or ["No machine is running."]) + "\n")
    return 1 if others else 0


def _stop(args: argparse.Namespace, shape: Shape) -> int:
    from jitter_workshop.practice import kernels, running

    ended, going = running.stop(kernels.kernel_cache_dir(), shape.name if args.shape else "")
    payload = {"stopped": [one.pid for one in ended], "running": [one.pid for one in going]}
    lines = [f"Stopped: {one.shape} (pid {one.pid})." for one in ended]
    lines += [f"Still running: {one.shape} (pid {one.pid})." for one in going]
    print_result(args, payload, "\n".join(lines or ["No machine is running."]) + "\n")
    return 1 if going else 0
