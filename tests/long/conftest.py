"""Long sweeps: left out unless they are asked for by ``pytest -m long``."""


def pytest_configure(config):
    config.addinivalue_line("markers", "long: a sweep of many minutes, left out unless asked for by -m long")


def pytest_collection_modifyitems(config, items):
    if "long" in config.getoption("markexpr"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
