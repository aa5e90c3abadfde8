"""The machine: processes, cgroups, containers, units, sockets, counters."""
