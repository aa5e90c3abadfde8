from pathlib import Path

import pytest

from console.domain.facts.ufw import UfwRule, read_rule

RULES = Path(__file__).parents[2] / "data" / "facts" / "user.rules"


def test_rules_that_ufw_wrote() -> None:
    mark = "### tuple ### "
    lines = [
        line.removeprefix(mark) for line in RULES.read_text(encoding="utf-8").splitlines() if line.startswith(mark)
    ]
    ssh, ports, deny, limit, app, route = (read_rule(line) for line in lines)
    assert ssh == UfwRule("allow", "tcp", "22", "0.0.0.0/0", "any", "0.0.0.0/0", "in", raw=lines[0])
    assert ports is not None
    assert (ports.port, ports.source, ports.comment) == ("8000:8002", "10.0.0.0/8", "tritons ports")
    assert deny is not None
    assert (deny.action, deny.direction, deny.interface) == ("deny", "in", "host0")
    assert limit is not None
    assert (limit.action, limit.logged, limit.port) == ("limit", "log", "2222")
    assert app is not None
    assert (app.app, app.source_app, app.port) == ("SSH", None, "22")
    assert route is not None
    assert (route.routed, route.to) == (True, "172.17.0.2")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "allow",
        "allow tcp 22 0.0.0.0/0 any 0.0.0.0/0",
        "permit tcp 22 0.0.0.0/0 any 0.0.0.0/0 in",
        "a b c d e f g h i",
    ],
)
def test_what_is_no_rule_is_none(line: str) -> None:
    assert read_rule(line) is None


def test_a_hostile_comment_is_printable() -> None:
    rule = read_rule("allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in comment=" + b"\x1b[2J".hex())
    assert rule is not None
    assert rule.comment == "\\x1b[2J"
    rule = read_rule("allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in comment=xyz")
    assert rule is not None
    assert rule.comment == "xyz"
