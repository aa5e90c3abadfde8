"""The lab: real droplets for the tests, booted in half a second on this machine (root, Debian, x86-64).

A test marked ``lab`` uses these fixtures (``fixtures.py``):

- ``lab_machine``, ``lab_trixie``: one droplet of each release for the whole session;
- ``fresh_machine("bookworm", docker=True, ...)``: a droplet for one test; the arguments are ``Machine``'s;
- ``proxy(machine, delay=0.05)``: a line to it that can be slow, stalled or cut.

Where things are:

- ``machine.py``: ``Machine``, a droplet; ``prepare.py``: what its root holds at first; ``users.py``: its accounts;
- ``root.py``: the cached roots, in layers; a later need (cloud-init, say) is one more layer there;
- ``nspawn.py``, ``cgroup.py``, ``network.py``, ``disk.py``: container, control groups, network, power cuts;
- ``proxy.py``: the line; ``triton/``: the server, its models and load; ``nvml/``: the GPUs;
- ``setup.py``, ``up.py``: ``make lab-setup``, ``make lab``.
"""
