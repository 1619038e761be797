"""Who may come in, from where, and what every answer carries."""

from functools import partial

import pytest
from web_support import BASE, PORT, TestClient, service, upload, with_token

from whosin.errors import InputError
from whosin.web.access import Access, Password, same
from whosin.web.guard import PAGE_POLICY, REPORT_POLICY
from whosin.web.settings import Binding, Login

EVERYWHERE = [
    "/",
    "/explain",
    "/explain/answer",
    "/calibrate",
    "/audit",
    "/audit/history",
    "/compare",
    "/static/app.js",
    "/static/htmx.min.js",
    "/static/page.css",
    "/style/base.css",
    "/openapi.json",
    "/api/explain",
    "/api/audits",
    "/no/such/page",
]
SECRET = "correct horse battery"


@pytest.mark.parametrize("path", EVERYWHERE)
def test_nothing_is_handed_out_without_the_token(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert len(answer.content) < 2500
    known = service(stranger).access
    assert not any(secret in answer.text for secret in (known.token, known.session, known.csrf))
    if path.startswith("/api"):
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"])
def test_no_method_passes_without_the_token(stranger, method):
    assert stranger.request(method, "/api/audits").status_code == 401


@pytest.mark.parametrize(
    "wrong", ["", "x", "Bearer", "Bearer x", "Basic {token}", "Bearer {token}x", "{token}", "Bearer {session}"]
)
def test_a_wrong_header_does_not_pass(stranger, wrong):
    known = service(stranger).access
    header = wrong.format(token=known.token, session=known.session)
    assert stranger.get("/api/audits", headers={"Authorization": header}).status_code == 401


def test_the_address_is_exchanged_for_a_cookie_and_cleaned(stranger):
    token = service(stranger).access.token
    answer = stranger.get(f"/explain?epsilon=2&token={token}&prior=0.1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/explain?epsilon=2&prior=0.1"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token.lower() not in cookie
    assert stranger.get("/explain").status_code == 200
    assert stranger.get("/static/app.js").status_code == 200


def test_the_cleaned_address_leads_nowhere_else(stranger):
    token = service(stranger).access.token
    for path in (
        f"//evil.example/?token={token}",
        f"/%5cevil.example/?token={token}",
        f"///evil.example?token={token}",
    ):
        location = stranger.get(BASE + path).headers["location"]
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


def test_a_wrong_token_in_the_address_gives_no_cookie(stranger):
    answer = stranger.get("/?token=wrong")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("cookie", ["wrong", "{token}", "{csrf}", ""])
def test_a_wrong_cookie_does_not_pass(stranger, cookie):
    known = service(stranger).access
    value = cookie.format(token=known.token, csrf=known.csrf)
    assert stranger.get("/explain", headers={"Cookie": f"whosin-{PORT}={value}"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1.evil.example", "192.168.1.5", "", "[::2]:80"]
)
def test_other_host_names_are_refused(reader, host):
    answer = reader.get("/api/audits", headers={"Host": host})
    assert answer.status_code == 421
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("host", ["localhost", f"localhost:{PORT}", f"127.0.0.1:{PORT}", f"[::1]:{PORT}", "LOCALHOST"])
def test_own_host_names_are_taken(reader, host):
    assert reader.get("/api/audits", headers={"Host": host}).status_code == 200


def test_all_addresses_but_no_foreign_names_where_others_may_come(start):
    client = with_token(start(names=("here.example",), any_address=True))
    for host, status in (("10.0.0.7:80", 200), ("here.example", 200), ("evil.example", 421), ("localhost", 421)):
        assert client.get("/api/audits", headers={"Host": host}).status_code == status


def test_a_proxy_with_tls_may_stand_in_front_of_a_remote_server_only(start):
    for remote, status in ((True, 404), (False, 403)):
        client = with_token(start(folder=f"remote-{remote}", any_address=remote))
        answer = client.delete(f"/api/audits/{'a' * 32}", headers={"Origin": BASE.replace("http", "https")})
        assert answer.status_code == status


def come_in(client):
    client.get(f"/?token={service(client).access.token}")
    return {"X-CSRF-Token": service(client).access.csrf}


def test_a_change_by_cookie_takes_the_token_of_the_page(start, scores):
    stranger = start()
    good = come_in(stranger)
    for headers in ({}, {"X-CSRF-Token": "wrong"}, {"X-CSRF-Token": service(stranger).access.token}):
        for path in ("/audit", "/api/audits"):
            answer = stranger.post(path, files={"scores": ("s.csv", scores)}, headers=headers)
            assert answer.status_code == 403
    assert service(stranger).history.count() == 0
    assert stranger.post("/audit", files={"scores": ("s.csv", scores)}, headers=good).status_code == 202


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": f"https://127.0.0.1:{PORT}"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site", "Origin": BASE},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_change_from_elsewhere_is_refused_whatever_it_knows(stranger, scores, headers):
    good = come_in(stranger)
    bearer = {"Authorization": f"Bearer {service(stranger).access.token}"}
    for more in (good, bearer):
        answer = stranger.post("/api/audits", files={"scores": ("s.csv", scores)}, headers={**headers, **more})
        assert answer.status_code == 403
        assert list(answer.json()) == ["error"]
    assert stranger.post("/login", data={"secret": service(stranger).access.token}, headers=headers).status_code == 403


def test_a_change_from_our_own_pages_passes(start, scores):
    stranger = start()
    good = come_in(stranger)
    for more in (
        {"Origin": BASE},
        {"Origin": BASE, "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    ):
        answer = stranger.post("/audit", files={"scores": ("s.csv", scores)}, headers={**good, **more})
        assert answer.status_code == 202


@pytest.mark.parametrize("path", [*EVERYWHERE, "/login"])
@pytest.mark.parametrize("known", [True, False])
def test_every_answer_carries_the_headers(stranger, path, known):
    if known:
        with_token(stranger)
    headers = stranger.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_policies():
    assert "script-src 'self'" in PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert "script-src 'none'" in REPORT_POLICY
    assert "sandbox" in REPORT_POLICY.split("; ")
    assert REPORT_POLICY.count("unsafe-inline") == 1


def test_refusals_carry_the_headers_too(stranger):
    for answer in (
        stranger.get("/x", headers={"Host": "evil"}),
        stranger.post("/x", headers={"Origin": "http://evil"}),
    ):
        assert answer.status_code in (421, 403)
        assert answer.headers["content-security-policy"] == PAGE_POLICY


def test_the_login_page_reloads_only_for_whoever_came_by_a_link(stranger):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert 'http-equiv="refresh"' in stranger.get("/explain", headers=link).text
    assert 'http-equiv="refresh"' not in stranger.get("/explain", headers={**link, "Sec-Fetch-Site": "none"}).text
    assert 'http-equiv="refresh"' not in stranger.get("/explain").text


def test_a_password_lets_in_and_the_address_no_longer_does(start):
    client = start(password=Password.of(SECRET))
    assert client.get(f"/?token={service(client).access.token}").status_code == 401
    assert client.post("/login", data={"secret": "wrong wrong wrong"}).status_code == 401
    assert client.get("/explain").status_code == 401
    answer = client.post("/login", data={"secret": SECRET})
    assert answer.status_code == 303
    assert client.get("/explain").status_code == 200


def test_wrong_passwords_are_slowed_down_and_oversized_ones_not_read(start):
    client = start(password=Password.of(SECRET))
    refused = client.post("/login", content=b"secret=" + b"x" * 100_000)
    assert (refused.status_code, refused.headers["connection"]) == (413, "close")
    answers = [client.post("/login", data={"secret": "wrong"}).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert client.post("/login", data={"secret": SECRET}).status_code == 429


def test_a_flood_of_wrong_tokens_locks_nobody_out(stranger):
    for _ in range(30):
        assert stranger.get("/?token=wrong").status_code == 401
    assert stranger.get(f"/?token={service(stranger).access.token}").status_code == 303


def test_passwords():
    known = Password.of(SECRET)
    assert known.matches(SECRET)
    assert not known.matches(SECRET + " ")
    assert SECRET not in repr(known)
    assert known.digest != Password.of(SECRET).digest
    with pytest.raises(InputError, match="at least 12 characters, got 5"):
        Password.of("short")


def test_secrets_are_long_and_new_each_time():
    one, other = Access(), Access()
    found = {one.token, one.session, one.csrf, other.token, other.session, other.csrf}
    assert len(found) == 6
    assert min(map(len, found)) >= 40


def test_comparisons_take_constant_time(monkeypatch):
    """Every secret goes through hmac.compare_digest, and strange text breaks nothing."""
    import hmac

    seen = []
    real = hmac.compare_digest
    monkeypatch.setattr("whosin.web.access.hmac.compare_digest", lambda a, b: seen.append(1) or real(a, b))
    access = Access(Password.of(SECRET))
    secrets = (access.token, access.session, access.csrf)
    for check in (*(partial(same, secret=secret) for secret in secrets), access.password.matches):
        assert not check("é\udc80\x00")
    assert len(seen) == 4


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])
def test_other_addresses_take_allow_remote(host):
    with pytest.raises(InputError, match="--allow-remote and a password"):
        Binding(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_addresses_of_this_machine(host):
    assert Binding(host).is_loopback


def test_names_take_allow_remote():
    with pytest.raises(InputError, match="--name goes with --allow-remote"):
        Binding(names=("x",))


def test_uploading_takes_the_token_before_a_byte_is_kept(stranger, scores):
    assert upload(stranger, {"scores": scores}).status_code == 401
    assert list(service(stranger).folders.keys()) == []


LOGIN = Login("X-Forwarded-User", ("10.0.0.5", "fd00::/64"))
WHO = {"X-Forwarded-User": "ada@example.org"}


def coming_from(client, address, **headers):
    """A visitor of the same server whose connection comes from this address."""
    return TestClient(client.app, base_url=BASE, client=(address, 4711), headers=headers, follow_redirects=False)


@pytest.mark.parametrize("address", ["10.0.0.5", "fd00::7", "::ffff:10.0.0.5"])
def test_whoever_the_proxy_names_is_in(start, scores, address):
    client = start(login=LOGIN)
    visitor = coming_from(client, address, **WHO)
    assert visitor.get("/explain").status_code == 200
    assert "set-cookie" not in visitor.get("/explain").headers
    # a change still takes the token of the page, and comes from the page
    assert upload(visitor, {"scores": scores}).status_code == 403
    visitor.headers["x-csrf-token"] = service(client).access.csrf
    assert upload(visitor, {"scores": scores}).status_code == 202
    visitor.headers["origin"] = "https://evil.example"
    assert upload(visitor, {"scores": scores}).status_code == 403


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("10.0.0.6", WHO),
        ("127.0.0.1", WHO),
        ("fd00:0:0:1::7", WHO),
        ("testclient", WHO),
        ("10.0.0.5", {}),
        ("10.0.0.5", {"X-Forwarded-User": " "}),
        ("10.0.0.5", {"X-Forwarded-Email": "ada@example.org"}),
        ("10.0.0.6", {**WHO, "X-Forwarded-For": "10.0.0.5", "Forwarded": "for=10.0.0.5"}),
    ],
)
def test_nobody_else_can_claim_a_login(start, address, headers):
    answer = coming_from(start(login=LOGIN), address, **headers).get("/api/audits")
    assert answer.status_code == 401
    assert "login" in answer.json()["error"]


def test_two_logins_are_none(start):
    visitor = coming_from(start(login=LOGIN), "10.0.0.5")
    twice = [("X-Forwarded-User", "ada"), ("X-Forwarded-User", "eve")]
    assert visitor.get("/api/audits", headers=twice).status_code == 401


def test_without_a_login_the_header_means_nothing(start):
    assert coming_from(start(), "10.0.0.5", **WHO).get("/api/audits").status_code == 401


def test_behind_a_login_the_token_opens_the_api_and_no_address(start):
    client = start(login=LOGIN)
    token = service(client).access.token
    assert client.get(f"/explain?token={token}").status_code == 401
    assert client.get("/api/audits", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_everybody_learns_that_the_server_is_alive_and_nothing_else(stranger):
    answer = stranger.get("/health")
    assert (answer.status_code, answer.text) == (200, "ok")
    assert stranger.post("/health").status_code == 405
    assert stranger.get("/health", headers={"Host": "evil.example"}).status_code == 421
    assert stranger.get("/health/").status_code == 401


@pytest.mark.parametrize(
    ("header", "proxies", "says"),
    [
        ("X User", ("10.0.0.5",), "--login-header must be"),
        ("", ("10.0.0.5",), "--login-header must be"),
        ("X-User", (), "needs --behind-proxy"),
        ("X-User", ("0.0.0.0/0",), "everybody"),
        ("X-User", ("::/0",), "everybody"),
        ("X-User", ("proxy.example",), "must be an address"),
        ("X-User", ("10.0.0.5/8",), "must be an address"),
    ],
)
def test_logins_that_would_let_in_others_are_refused(header, proxies, says):
    with pytest.raises(InputError, match=says):
        Login(header, proxies)
