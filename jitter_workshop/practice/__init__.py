"""Run a disposable machine with a kernel of its own, without rights: kernel, image, shape, QEMU, and what runs inside.

The types, from the bottom up, and the path of the data::

    Shape (shape)     ──► Options (qemu)   what one machine is made of: hardware, kernel, boot parameters, disk
    Kernel (kernels)  ──┐                  a distribution's package, unpacked once into the cache (apt brings it)
    table (acpi)      ──┼► command_line    the arguments of QEMU; images makes the initrd and the ACPI table
    Programs (images) ──┘                  what the guest runs: this host's folders read-only, or a tree of its own
    Qemu (qemu)                            the process, its control stream, its monitor; it dies with its parent
    Base (base)                            the files of the first picture, an image that a saved machine starts from
    Machine (machine)                      booted: start, run, signals, temperature; JSON lines over the control stream
    Resumable (saved)                      a machine that continues from its first boot, and can go back to it
    probe (kvm)                            a clock says if KVM is of use
    relay, running                         this process's terminal or streams, inside; whose machines run now
    server.py (assets/practice)            the other end of that stream, inside the guest

Nothing here is installed on the host or changes it. ``tests/lab`` drives the same machines and adds what
only tests do.
"""
