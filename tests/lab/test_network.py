from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.network import claim_network

pytestmark = pytest.mark.lab


def test_runs_at_the_same_time_have_networks_of_their_own() -> None:
    first, second = claim_network(), claim_network()
    try:
        assert first.number != second.number
        assert first.gateway != second.gateway
        assert Path("/sys/class/net", first.bridge).exists()
    finally:
        first.close()
        second.close()
    assert not Path("/sys/class/net", first.bridge).exists()


def test_addresses_are_given_out_once_and_again_only_after_all_others() -> None:
    network = claim_network()
    try:
        given = [network.take_addresses() for _ in range(241)]
        assert len(set(given)) == 241
        with pytest.raises(RuntimeError, match="241 droplets"):
            network.take_addresses()
        network.give_back(given[5][0])
        assert network.take_addresses() == given[5]
    finally:
        network.close()
