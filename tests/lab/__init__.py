"""The lab machine: stock kernels in QEMU's software emulation, with all that a plain virtual machine lacks.

A guest boots in a few seconds without KVM and without root. It has governors, idle states, a thermal zone that the
host heats, isolation at boot and at run time, interrupts that move and interrupts that refuse, SMT, and on demand two
NUMA nodes, the real-time kernel, a disk that outlives reboots and power cuts. State, refusals and counters in it are
the real kernel's; **latencies mean nothing** (emulation stalls for milliseconds).

Fixtures (``conftest.py``)::

    def test_governor(lab):                     # stock kernel, booted once, shared by the session: leave it as it was
        with lab.unchanged():                   # fails if the watched tree differs at the end
            lab.write("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance")
            ...
        lab.read("/proc/cmdline")               # str; a refused read or write raises the guest's OSError (errno kept)
        done = lab.run(["lscpu"], user="learner")     # .code .stdout .stderr; check=True: a code other than 0 raises
        done = lab.workshop("status", "--json")       # the verb in the guest; .json() is its object
        agent = lab.start([lab.python, "-I", "-S", f"{PROJECT}/jitter_workshop/agent/__main__.py"])
        agent.send(b"{...}\\n"); agent.wait_for(b"}"); agent.signal(9); agent.wait()
        lab.call(function, 1, 2)                # a self-contained function runs in a fork in the guest, JSON in and out
        lab.copy_out("/tmp/recorded", tmp_path) # a tree of the guest

    def test_rt(lab_rt): ...                    # the same with the real-time kernel
    def test_boot(lab_factory):
        machine = lab_factory(append="isolcpus=2-3 nohz_full=2-3", disk=True, numa=True, cgroup="v1", kernel="rt")
        machine.reboot(append="...")            # orderly; /etc, /var, /boot and /home stay with disk=True
        machine.power_cut(); machine.boot()     # only what the guest had synced is sure to be there
        machine.run(["/lab/power-cut"])         # the same from inside, at exactly that instant (raises PowerLost)
        machine.heat(97)                        # degrees Celsius of the thermal zone; heat(0): by the P-states again

    def test_machine(lab_shape):
        machine = lab_shape(SHAPES["v1"], disk=False)      # one of the machines of ``shapes``, of this test's own

The project is at ``PROJECT`` (read-only) and at its own path on this host. Users: root, learner (1000), other (1001);
sudo is there where this host has it, and lets no user in until a test writes a rule to ``/etc/sudoers.d``.
``tests/README.md`` says what to install. Mark a file with ``pytestmark = pytest.mark.lab``, and what need not run each
time also with ``pytest.mark.soak``.
"""
