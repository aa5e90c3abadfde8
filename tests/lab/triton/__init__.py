"""The lab's Triton: a real server without a GPU, models of known behaviour, and a load with known counts.

- ``wheel``: fetches the server and lays it out.
- ``repository``: model repositories made from ``models/``.
- ``options``: a server's command line.
- ``api``: what the tests ask a server for.
- ``host``: a server on this machine. ``machine``: a server as a unit of a lab machine.
- ``load``: the load source, also as a command.
- ``capture``: makes the captured answers in ``tests/data/triton`` anew.
"""
