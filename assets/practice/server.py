"""Inside the machine: runs what the host asks for over a virtio port, JSON lines both ways.

Requests:  {"id", "start": argv, "user", "cwd", "env", "terminal": [rows, columns] | absent}
           {"id", "stdin": base64 | null} | {"id", "size": [rows, columns]}
           {"id", "signal": number, "group": bool} | {"power": "off"}
           {"id", "call": source, "name": function, "arguments": [...], "seconds"}
Events:    {"ready": release} | {"id", "pid"} | {"id", "out" | "err": base64} | {"id", "code": -N for signal N}
           {"id", "taken": bytes of stdin that the program has got or never will}
           {"id", "result"} | {"id", "os_error": [errno, message, file]} | {"id", "traceback"}

Standard library only; it is PID 1's only child and is asleep while no request waits, so that the machine is idle.
"""

import base64
import fcntl
import json
import os
import selectors
import signal
import struct
import subprocess
import termios
import traceback


def port(name):
    """The open virtio port that the host calls by this name."""
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
    """A pipe's number, taken out of its object, which would close it."""
    pipe = getattr(process, name)
    number = os.dup(pipe.fileno())
    pipe.close()
    setattr(process, name, None)
    os.set_inheritable(number, False)
    return number


def resize(terminal, size):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


class Input:
    """A program's stdin. What its pipe or terminal does not take yet waits here, so that the server never does."""

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


class Server:
    def __init__(self):
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
                key.data()

    def watch(self, descriptor, events, call):
        """Call this when a descriptor is ready; no events: no longer."""
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
        elif "call" in request:
            self.call(request)
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
        if "terminal" in request:
            terminal, inside = os.openpty()
            resize(terminal, request["terminal"])
            take = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
            ends = dict.fromkeys(("stdin", "stdout", "stderr"), inside)
            try:
                process = subprocess.Popen(request["start"], preexec_fn=take, **ends, **own)
            except OSError:
                os.close(terminal)
                raise
            finally:
                os.close(inside)
            process.terminal = terminal
            process.input = Input(self, ident, os.dup(terminal))
            process.outputs = {"out": terminal}
        else:
            ends = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(request["start"], bufsize=0, **ends, **own)
            process.input = Input(self, ident, taken(process, "stdin"))
            process.outputs = {"out": taken(process, "stdout"), "err": taken(process, "stderr")}
        self.processes[ident] = process
        process.ended = os.pidfd_open(process.pid)
        for name, pipe in process.outputs.items():
            os.set_blocking(pipe, False)
            self.watch(pipe, selectors.EVENT_READ, lambda n=name: self.output(process, ident, n))
        self.watch(process.ended, selectors.EVENT_READ, lambda: self.exited(ident))
        self.tell(id=ident, pid=process.pid)

    def output(self, process, ident, name):
        """Tell what a program has written; return False if there is nothing now."""
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
        """Return what it had written is told first; a grandchild that keeps a pipe open is not waited for."""
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
        """Run a function in a fork: what it does to its own process ends with it."""
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


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Server().serve()
