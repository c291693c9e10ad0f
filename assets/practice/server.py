"""Inside the machine: runs what the host asks for over a virtio port, JSON lines both ways.

Requests:  {"id", "start": argv, "user", "cwd", "env"} | {"id", "stdin": base64 | null}
           {"id", "signal": number, "group": bool} | {"power": "off"}
           {"id", "call": source, "name": function, "arguments": [...], "seconds"}
Events:    {"ready": release} | {"id", "pid"} | {"id", "out" | "err": base64} | {"id", "code": -N for signal N}
           {"id", "result"} | {"id", "os_error": [errno, message, file]} | {"id", "traceback"}

Standard library only; it is PID 1's only child and is asleep while no request waits, so that the machine is idle.
"""

import base64
import fcntl
import json
import os
import selectors
import signal
import subprocess
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
            elif request.get("stdin") is None:
                process.stdin.close()
            else:
                process.stdin.write(base64.b64decode(request["stdin"]))

    def start(self, request):
        rights = {}
        if request.get("user", "root") != "root":
            with open("/etc/passwd") as users:
                entry = next(line.split(":") for line in users if line.startswith(request["user"] + ":"))
            rights = {"user": int(entry[2]), "group": int(entry[3]), "extra_groups": [int(entry[3])]}
        process = subprocess.Popen(
            request["start"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=request["cwd"],
            env=request["env"],
            start_new_session=True,
            **rights,
        )
        ident = request["id"]
        self.processes[ident] = process
        process.ended = os.pidfd_open(process.pid)
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_NONBLOCK)
            self.selector.register(pipe, selectors.EVENT_READ, lambda n=name, p=pipe: self.output(ident, n, p))
        self.selector.register(process.ended, selectors.EVENT_READ, lambda: self.exited(ident))
        self.tell(id=ident, pid=process.pid)

    def output(self, ident, name, pipe):
        try:
            data = os.read(pipe.fileno(), 65536)
        except BlockingIOError:
            return
        if data:
            self.tell(id=ident, **{name: base64.b64encode(data).decode("ascii")})
        else:
            self.selector.unregister(pipe)
            pipe.close()

    def exited(self, ident):
        """Return what it had written is told first; a grandchild that keeps a pipe open is not waited for."""
        process = self.processes.pop(ident)
        code = process.wait()
        self.selector.unregister(process.ended)
        os.close(process.ended)
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            while not pipe.closed:
                try:
                    data = os.read(pipe.fileno(), 65536)
                except BlockingIOError:
                    data = b""
                if not data:
                    self.selector.unregister(pipe)
                    pipe.close()
                else:
                    self.tell(id=ident, **{name: base64.b64encode(data).decode("ascii")})
        if not process.stdin.closed:
            process.stdin.close()
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
