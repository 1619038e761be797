#!/bin/sh
# What the tests use of the system: a browser and a PostgreSQL server. Installs what is missing where it may (Debian, as
# root); elsewhere says loudly which tests will be skipped. Never fails: the tests themselves decide.
postgres=$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)
[ -n "$postgres" ] || postgres=$(command -v initdb)
browser=$(command -v chromium || command -v google-chrome || command -v chromium-browser)

wanted=
[ -n "$browser" ] || wanted="$wanted chromium"
[ -n "$postgres" ] || wanted="$wanted postgresql"
[ -n "$wanted" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "Installing for the tests:$wanted"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted; } \
        > /dev/null 2>&1 && exit 0
fi
echo "*********************************************************************************************************" >&2
echo "*  NOT INSTALLED:$wanted" >&2
echo "*  The tests that need it are SKIPPED. Install it (on Debian: apt-get install$wanted) to run them." >&2
echo "*********************************************************************************************************" >&2
