"""The lab's Triton: a real server without a GPU, models of known behaviour, and a load with known counts.

- ``wheel``: fetches the server and lays it out.
- ``repository``: model repositories made from ``models/``.
- ``options``: a server's command line.
- ``api``: what the tests ask a server for.
- ``unit``: a server as a systemd unit of a lab droplet.
- ``host``: a server on this machine, for what captures without a droplet.
- ``load``: the load source. ``background``: the light load of ``make lab``.
- ``capture``: makes the captured answers in ``tests/data/triton`` anew.
"""
