"""Run programs and functions inside the machine for the host, by JSON lines over a virtio port.

Requests:  {"id", "start": argv, "user", "cwd", "env", "terminal": [rows, columns] | absent}
           {"id", "stdin": base64 | null} | {"id", "size": [rows, columns]}
           {"id", "signal": number, "group": bool} | {"power": "off"}
           {"id", "call": source, "name": function, "arguments": [...], "seconds"}
           {"id", "load": module names} | {"id", "wake": clock in ns, "seed": base64, "mounts": [[kind, what, where]]}
           {"id", "ping": true}
Events:    {"ready": release} | {"id", "pid"} | {"id", "out" | "err": base64} | {"id", "code": -N for signal N}
           {"id", "taken": bytes of stdin that the program has got or never will}
           {"id", "result"} | {"id", "os_error": [errno, message, file]} | {"id", "traceback"}

Standard library only. This process is the only child of PID 1. It sleeps while there is no request, so that the machine
is idle. Once modules are loaded, ``python -m jitter_workshop`` is a fork of this process and has them already. A new
import would take seconds in the emulator.
"""

import base64
import fcntl
import gc
import importlib
import json
import os
import random
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time
import traceback

PROGRAM = "jitter_workshop"
REHEARSAL_S = 60
MS_RDONLY, MS_BIND = 1, 4096
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
""" include/uapi/linux/random.h """
NINE = b"trans=virtio,version=9p2000.L,msize=500000,cache="


def port(name):
    """Open the virtio port that has this name on the host, and return its descriptor."""
    ports = "/sys/class/virtio-ports"
    for device in os.listdir(ports):
        try:
            with open(f"{ports}/{device}/name") as file:
                if file.read().strip() == name:
                    return os.open(f"/dev/{device}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
    raise SystemExit(f"no virtio port {name}")


def taken(process, name):
    """Return a copy of a pipe's descriptor, and close the pipe's own object, which would close it later."""
    pipe = getattr(process, name)
    number = os.dup(pipe.fileno())
    pipe.close()
    setattr(process, name, None)
    os.set_inheritable(number, False)
    return number


def resize(terminal, size):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


class Input:
    """Feed a program's stdin. Bytes that its pipe or terminal cannot hold yet wait here, and the server goes on."""

    def __init__(self, server, ident, descriptor):
        self.server, self.ident, self.descriptor = server, ident, descriptor
        self.waiting = bytearray()
        self.ends = False
        os.set_blocking(descriptor, False)

    def put(self, data):
        self.waiting += data
        self.flush()

    def end(self):
        self.ends = True
        self.flush()

    def flush(self):
        if self.descriptor is None:
            self.server.tell(id=self.ident, taken=len(self.waiting))
            self.waiting.clear()
            return
        taken = 0
        try:
            while self.waiting:
                count = os.write(self.descriptor, self.waiting[:65536])
                del self.waiting[:count]
                taken += count
        except BlockingIOError:
            pass
        except OSError:  # the program has closed it
            taken += len(self.waiting)
            self.waiting.clear()
            self.ends = True
        if taken:
            self.server.tell(id=self.ident, taken=taken)
        if self.waiting:
            self.server.watch(self.descriptor, selectors.EVENT_WRITE, self.flush)
        else:
            self.server.watch(self.descriptor, 0, None)
            if self.ends:
                self.close()

    def close(self):
        if self.descriptor is not None:
            self.server.watch(self.descriptor, 0, None)
            os.close(self.descriptor)
            self.descriptor = None


def mount(kind, what, where):
    """Mount a share of the host read-only (ro), or to be written (rw), or a folder at a second place (bind)."""
    import ctypes

    os.makedirs(where, exist_ok=True)
    flags = {"ro": MS_RDONLY, "rw": 0, "bind": MS_BIND}[kind]
    data = None if kind == "bind" else NINE + (b"loose" if kind == "ro" else b"mmap")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(what.encode(), where.encode(), b"none" if kind == "bind" else b"9p", flags, data):
        raise OSError(ctypes.get_errno(), "cannot be mounted", where)


def wake(clock, seed, mounts):
    """Give this copy of a saved machine a time and a random seed of its own, and mount the host's folders."""
    time.clock_settime_ns(time.CLOCK_REALTIME, clock)
    with open("/dev/random", "wb", 0) as pool:
        fcntl.ioctl(pool, RNDADDENTROPY, struct.pack("ii", 8 * len(seed), len(seed)) + seed)
        fcntl.ioctl(pool, RNDRESEEDCRNG)
    for kind, what, where in mounts:
        mount(kind, what, where)


def load(names):
    """Import the named modules. Return the modules that cannot be imported: name → reason."""
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    if not failed:
        rehearse()
    # A fork copies each page whose reference counts change; what is here now stays.
    gc.collect()
    gc.freeze()
    return failed


def rehearse():
    """Let the program do in advance what each fork would do. A failure costs later starts time, and is only printed."""

    def late(number, frame):
        raise TimeoutError("the rehearsal does not end")

    before = signal.signal(signal.SIGALRM, late)
    # Again and again: what ends a program that hangs may hang, too.
    signal.setitimer(signal.ITIMER_REAL, REHEARSAL_S, 5)
    try:
        importlib.import_module(f"{PROGRAM}.commands.workshop").load_before_fork()
    except Exception:
        traceback.print_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Forked(BaseException):
    """Signal, in a fork of the server that becomes a program, that the server's calls have to end."""


class Fork:
    """Run a program as a fork of this process. The server uses it like a subprocess.Popen."""

    def __init__(self, argv, stdin, stdout, stderr, cwd, env, terminal):
        self.pid = os.fork()
        if self.pid:
            return
        try:
            self.become(argv, (stdin, stdout, stderr), cwd, env, terminal)
        except BaseException:
            traceback.print_exc()
            os._exit(126)
        raise Forked

    def become(self, argv, streams, cwd, env, terminal):
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, 4096)
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            buffering = 1 if mode == "w" and os.isatty(number) else -1
            errors = "backslashreplace" if number == 2 else None
            setattr(sys, name, os.fdopen(number, mode, buffering, errors=errors))
        sys.argv = [argv[2], *argv[3:]]
        random.seed()
        # The shares lie above the folders whose lists the importer has.
        importlib.invalidate_caches()

    def wait(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Server:
    def __init__(self):
        self.loaded = False
        self.port = port("lab.control")
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.port, selectors.EVENT_READ, self.requests)
        self.processes = {}
        self.buffer = b""
        self.going = True

    def tell(self, **event):
        data = memoryview(json.dumps(event).encode() + b"\n")
        while data:
            data = data[os.write(self.port, data[:32768]) :]

    def serve(self):
        self.tell(ready=os.uname().release)
        while self.going:
            for key, _ in self.selector.select():
                # An earlier call of this round may have closed the descriptor.
                if self.selector.get_map().get(key.fileobj) is key:
                    key.data()

    def watch(self, descriptor, events, call):
        """Call ``call`` whenever the descriptor is ready for ``events``; 0: stop watching the descriptor."""
        if descriptor in self.selector.get_map():
            self.selector.unregister(descriptor)
        if events:
            self.selector.register(descriptor, events, call)

    def requests(self):
        self.buffer += os.read(self.port, 65536)
        while b"\n" in self.buffer:
            line, _, self.buffer = self.buffer.partition(b"\n")
            request = json.loads(line)
            try:
                self.answer(request)
            except OSError as error:
                self.tell(id=request["id"], os_error=[error.errno, error.strerror, str(error.filename or "")])

    def answer(self, request):
        if "power" in request:
            self.going = False
        elif "start" in request:
            self.start(request)
        elif "ping" in request:
            self.tell(id=request["id"], result=None)
        elif "call" in request:
            self.call(request)
        elif "load" in request:
            failed = load(request["load"])
            self.loaded = PROGRAM not in failed
            self.tell(id=request["id"], result=failed)
        elif "wake" in request:
            wake(request["wake"], base64.b64decode(request["seed"]), request["mounts"])
            self.tell(id=request["id"], result=None)
        elif request["id"] in self.processes:
            process = self.processes[request["id"]]
            if "signal" in request:
                send = os.killpg if request.get("group") else os.kill
                send(process.pid, request["signal"])
            elif "size" in request:
                resize(process.terminal, request["size"])
            elif request.get("stdin") is None:
                process.input.end()
            else:
                process.input.put(base64.b64decode(request["stdin"]))

    def start(self, request):
        rights = {}
        if request.get("user", "root") != "root":
            with open("/etc/passwd") as users:
                entry = next(line.split(":") for line in users if line.startswith(request["user"] + ":"))
            rights = {"user": int(entry[2]), "group": int(entry[3]), "extra_groups": [int(entry[3])]}
        ident = request["id"]
        own = dict(cwd=request["cwd"], env=request["env"], start_new_session=True, **rights)
        argv = request["start"]
        forks = self.loaded and not rights and argv[:3] == [sys.executable, "-m", PROGRAM]
        if "terminal" in request:
            terminal, inside = os.openpty()
            resize(terminal, request["terminal"])
            take = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
            ends = dict.fromkeys(("stdin", "stdout", "stderr"), inside)
            try:
                if forks:
                    process = Fork(argv, inside, inside, inside, own["cwd"], own["env"], terminal=True)
                else:
                    process = subprocess.Popen(argv, preexec_fn=take, **ends, **own)
            except OSError:
                os.close(terminal)
                os.close(inside)
                raise
            os.close(inside)
            process.terminal = terminal
            process.input = Input(self, ident, os.dup(terminal))
            process.outputs = {"out": terminal}
        else:
            process, stdin, outputs = self.piped(argv, own, forks)
            process.input = Input(self, ident, stdin)
            process.outputs = outputs
        self.processes[ident] = process
        process.ended = os.pidfd_open(process.pid)
        for name, pipe in process.outputs.items():
            os.set_blocking(pipe, False)
            self.watch(pipe, selectors.EVENT_READ, lambda n=name: self.output(process, ident, n))
        self.watch(process.ended, selectors.EVENT_READ, lambda: self.exited(ident))
        self.tell(id=ident, pid=process.pid)

    def piped(self, argv, own, forks):
        """Start a program with pipes. Return it, its stdin's descriptor, and its outputs' descriptors by name."""
        if not forks:
            ends = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(argv, bufsize=0, **ends, **own)
            return process, taken(process, "stdin"), {"out": taken(process, "stdout"), "err": taken(process, "stderr")}
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        process = Fork(argv, *theirs, own["cwd"], own["env"], terminal=False)
        for descriptor in theirs:
            os.close(descriptor)
        return process, pipes[0][1], {"out": pipes[1][0], "err": pipes[2][0]}

    def output(self, process, ident, name):
        """Send the host the next output of a program. Return False if there is no output now."""
        try:
            data = os.read(process.outputs[name], 65536)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that no program has open any more
            data = b""
        if data:
            self.tell(id=ident, **{name: base64.b64encode(data).decode("ascii")})
            return True
        self.close(process, name)
        return False

    def close(self, process, name):
        pipe = process.outputs.pop(name)
        self.watch(pipe, 0, None)
        os.close(pipe)

    def exited(self, ident):
        """Send the rest of an ended program's output, then its exit code. Do not wait for its children's output."""
        process = self.processes.pop(ident)
        code = process.wait()
        self.watch(process.ended, 0, None)
        os.close(process.ended)
        for name in list(process.outputs):
            while self.output(process, ident, name):
                pass
            if name in process.outputs:
                self.close(process, name)
        process.input.close()
        self.tell(id=ident, code=code)

    def call(self, request):
        """Run a function in a fork, so that its changes to the process are gone at its end, and send the result."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(int(request.get("seconds", 60)))
            try:
                names = {}
                exec(compile(request["call"], "<lab call>", "exec"), names)
                answer = {"result": names[request["name"]](*request["arguments"])}
            except OSError as error:
                answer = {"os_error": [error.errno, error.strerror, str(error.filename or "")]}
            except BaseException:
                answer = {"traceback": traceback.format_exc()}
            with os.fdopen(writer, "w") as pipe:
                json.dump(answer, pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        answer = json.loads(text) if text else {"traceback": f"the call ended with wait status {status}"}
        self.tell(id=request["id"], **answer)


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    server = Server()
    try:
        server.serve()
    except Forked:
        return True
    return False


if __name__ == "__main__" and main():
    sys.exit(importlib.import_module(f"{PROGRAM}.cli").main())
