"""Many short checks in one test: each test of pytest costs more than they do."""

import inspect


def each(name, values):
    """Call a test with every value of its argument ``name``, one after the other, instead of once for each value."""

    def decorate(test):
        def run(*own, **given):
            for value in values:
                test(*own, **given, **{name: value})

        parameters = [one for one in inspect.signature(test).parameters.values() if one.name != name]
        run.__signature__ = inspect.Signature(parameters)
        run.__name__, run.__doc__ = test.__name__, test.__doc__
        run.pytestmark = getattr(test, "pytestmark", [])
        return run

    return decorate
