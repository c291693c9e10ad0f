"""Run a disposable virtual machine with a kernel of its own; the user needs no rights of root for it.

The types, from the bottom up, and the path of the data::

    check (room)                           is there enough memory and disk space for a machine?
    Shape (shape) ──► MachineOptions (qemu)
                                           what one machine is made of: hardware, kernel, boot parameters, disk
    UnpackedKernel (kernels) ──┐           a distribution's package, unpacked once into the cache (apt brings it)
    table (acpi)             ──┼► command_line
                               │           the arguments of QEMU; images makes the initrd and the ACPI table
    Programs (images)        ──┘           what the guest runs: this host's folders read-only, or a tree of its own
    Qemu (qemu)                            the process, its control stream, its monitor; it dies with its parent
    Base (base)                            an image with the workshop's files, from which a saved machine starts
    Machine (machine)                      a booted machine: start, run, signal, heat, by JSON lines (control stream)
    Resumable (saved)                      a machine that starts from a saved one, and can be reset to it
    probe (kvm)                            a measurement of KVM: is it faster than emulation?
    relay                                  connects this process's terminal or streams with a program in the guest
    running                                the machines of this user that run now, and their owners
    server.py (assets/practice)            the guest's end of the control stream

This package installs and changes nothing on the host. ``tests/lab`` runs the same machines for its tests.
"""
