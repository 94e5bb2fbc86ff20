"""The explorer in a real Chromium: it asks nobody but the daemon, and shows what that answers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import axe_core_python
import bcrypt
import pytest
from harness.daemon import Daemon, site
from harness.waiting import until
from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

SAME_FOR_ALL_CORES = "pages show what the API answers"

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
PASSWORD = "correct horse"
PROBLEMS = "/services?columns=host_name,description,state&state[ne]=0&sort=host_name,description"


@pytest.fixture(scope="module")
def served(embedded, tmp_path_factory):
    """A daemon with a core and a site that is away, and a user with a password."""
    folder = tmp_path_factory.mktemp("explorer")
    passwords = folder / "htpasswd"
    passwords.write_text(f"admin:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    daemon = Daemon(
        folder,
        [site("s1", embedded), site("gone", "unix:/nowhere/live")],
        sections={"auth": {"htpasswd_file": str(passwords)}},
    )
    daemon.start(connected={"s1"})
    with daemon.client() as client:
        until(lambda: all(client.values("/sites", "last_error", id="gone")), "a site is away")
    yield daemon
    daemon.stop()


MOVE = """
    const before = location.hash, first = document.querySelector("#views button");
    if (!first) return false;  // the page is being loaded
    first.click();
    for (const id of ["status", "answer"]) document.getElementById(id).replaceChildren();
    document.getElementById("format").value = "json";
    location.hash = arguments[0];
    return location.hash !== before"""
TEXTS = """
    return [...document.querySelectorAll(arguments[0])].map(
        (one) => one.matches("option") || one.checkVisibility() ? one.innerText.trim() : "")"""
ROWS = """
    return [...document.querySelectorAll("#answer tbody tr")].map(
        (row) => [...row.querySelectorAll("td:not(.links)")].map((cell) => cell.innerText.trim()))"""


class Page:
    """One browser with a profile of its own, and what the tests want of it."""

    def __init__(self, daemon, folder):
        self.daemon = daemon
        self.home = f"http://127.0.0.1:{daemon.port}"
        self.user = None
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        logs = {"browser": "ALL", "performance": "ALL"}
        options.set_capability("goog:loggingPrefs", logs)
        driver = Service(shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options=options, service=driver)
        self.browser.set_script_timeout(120)  # axe on a busy machine

    def open(self, path):
        """Load a page anew, with a key where it has none."""
        self.browser.get("about:blank")
        self.browser.get(self.home + path)

    def show(self, place):
        """Bring the explorer to a place by its address, without what was answered and chosen before."""
        explorer = f"{self.home}/mon/docs/#"
        here = self.browser.current_url.startswith(explorer)
        if not (here and self.browser.execute_script(MOVE, place)):
            self.open(f"/mon/docs/#{place}")

    def ask(self, query, status):
        """Show the answer to a query, whose ``#status`` has this text."""
        self.show(query)
        self.wait_text("#status", status)

    def forget(self):
        """Be nobody again."""
        self.browser.get(f"{self.home}/mon/docs/style.css")
        self.browser.delete_all_cookies()
        self.browser.execute_script("sessionStorage.clear()")
        self.user = None

    def log_in(self):
        """Be the administrator, unless a test before has left it so."""
        if self.user is None:
            self.forget()
            self.open(f"/mon/#key={self.daemon.key}&user=admin")
            self.find("#sites td")
            self.user = "admin"

    def find(self, selector):
        return self.wait(lambda: self.browser.find_elements(By.CSS_SELECTOR, selector))[0]

    def texts(self, selector):
        """What is seen of each element, in one call to the browser."""
        return self.browser.execute_script(TEXTS, selector)

    def wait(self, ask, seconds=120):
        """What ``ask`` gives as soon as it is true."""
        ignored = (StaleElementReferenceException, ElementNotInteractableException)
        try:
            return WebDriverWait(self.browser, seconds, 0.1, ignored).until(lambda _: ask())
        except TimeoutException:
            text = self.browser.find_element(By.TAG_NAME, "body").text
            raise AssertionError(f"{self.browser.current_url}\n{text}") from None

    def wait_text(self, selector, text):
        self.wait(lambda: any(text in one for one in self.texts(selector)))

    def keys(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def tab(served, tmp_path_factory):
    missing = [one for one in ("chromium", "chromedriver") if not shutil.which(one)]
    if missing:
        message = f"{' and '.join(missing)}: not installed, see tests/install-cores.sh"
        assert not os.environ.get("MONREST_CI"), message
        pytest.skip(message)
    page = Page(served, tmp_path_factory.mktemp("chromium"))
    yield page
    page.browser.quit()


@pytest.fixture
def page(tab):
    """The browser of the administrator."""
    tab.log_in()
    return tab


@pytest.fixture(autouse=True)
def _nothing_is_refused(tab):
    """No test makes a browser refuse something, or a script fail; errors of the API are no such."""
    yield
    said = [one["message"] for one in tab.browser.get_log("browser") if one["level"] == "SEVERE"]
    assert [one for one in said if "responded with a status" not in one] == []


def test_the_page_shows_the_sites_to_who_may_know(tab):
    tab.forget()
    tab.open("/")
    tab.wait_text("#sites", "Log in with the explorer")
    assert tab.texts("h1") == ["One REST API for all your monitoring"]
    tab.log_in()
    tab.wait_text("#sites td", "GONE")
    assert tab.texts("#sites .pill") == ["up", "down"]
    assert tab.texts("#sites td")[-1]
    assert "key=" not in tab.browser.current_url
    tab.find("dd a").click()
    tab.wait_text("#status", "rows")


def test_a_login_with_a_password(tab):
    tab.forget()
    tab.open("/mon/docs/")
    tab.find("dialog[open] #name").send_keys("admin")
    tab.find("#password").send_keys("wrong", Keys.ENTER)
    tab.wait_text("#login-problem", "login failed")
    tab.find("#password").clear()
    tab.find("#password").send_keys(PASSWORD, Keys.ENTER)
    tab.wait_text("#account", "admin · log out")
    tab.wait_text("#status", "rows")
    assert PASSWORD not in tab.browser.execute_script("return JSON.stringify(sessionStorage)")
    tab.find("#account").click()
    tab.wait_text("dialog[open] h2", "Who are you?")
    assert tab.browser.get_cookies() == []


def test_a_login_with_a_key(tab):
    tab.forget()
    tab.open("/mon/docs/")
    tab.find("dialog[open] #key").send_keys("0" * 64 + "_1")
    tab.keys(Keys.ENTER)
    tab.wait_text("#login-problem", "wrong authentication key")
    tab.find("#key").clear()
    tab.find("#key").send_keys(tab.daemon.key)
    tab.find("#key-user").send_keys("olga", Keys.ENTER)
    tab.wait_text("#account", "olga")


def rows_shown(page):
    """The cells of the table, row by row."""
    return page.browser.execute_script(ROWS)


def test_a_query_without_a_mouse(page, served):
    page.open("/mon/docs/")
    page.wait_text("#status", "rows")
    focus = "document.getElementById(arguments[0]).focus()"
    page.browser.execute_script(focus, "collection")
    page.keys("/services")
    page.wait_text("#columns", "description")
    page.browser.execute_script(focus, "column")
    page.keys(*[Keys.BACKSPACE] * 5, "host_name", Keys.ENTER, "description,state", Keys.ENTER)
    page.browser.execute_script(focus, "add-filter")
    page.keys(Keys.ENTER, "state", Keys.TAB, "≠", Keys.TAB, "0")
    page.browser.execute_script(focus, "add-sort")
    page.keys(Keys.ENTER, "description", Keys.TAB, "desc")
    chord = ActionChains(page.browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER)
    chord.key_up(Keys.CONTROL).perform()
    asked = "columns=host_name,description,state&state[ne]=0&sort=-description&limit=50"
    page.wait(lambda: page.browser.current_url.endswith(f"#/services?{asked}"))
    with served.client() as client:
        rows = client.rows(f"/services?{asked}")
    words = ["OK", "WARNING", "CRITICAL", "UNKNOWN"]
    expected = [[row["host_name"], row["description"], words[row["state"]]] for row in rows]
    assert len(expected) > 1
    page.wait(lambda: rows_shown(page) == expected)
    page.browser.execute_script("document.querySelector('#answer th button').focus()")
    page.keys(Keys.SPACE)
    page.wait(lambda: rows_shown(page) == sorted(expected, key=lambda row: row[0]))
    assert page.find("#answer th").get_attribute("aria-sort") == "ascending"


def test_what_a_column_is_completed_with(page):
    page.ask("/hosts", "rows")
    options = page.browser.execute_script(
        "return [...document.querySelectorAll('#column-names option')].map((o) => [o.value, o.label])"
    )
    assert {"name", "latency", "peer_name"} <= {name for name, _ in options}
    assert dict(options)["latency"].startswith("number · s · ")


def test_an_address_is_a_query_and_a_site_that_is_away_is_named(page):
    page.show(PROBLEMS)
    page.wait_text("#answer .notice.warn", "The site gone is down.")
    names = [text.split()[0] for text in page.texts("#columns li")]
    assert names == ["host_name", "description", "state"]
    assert len(rows_shown(page)) > 1
    page.show("/hosts?columns=name&backends=gone")
    page.wait_text("#answer .notice.bad", "502 · no backend available")


def test_an_error_says_what_was_expected(page):
    page.show("/hosts?q=state%20%3E%3E%201")
    page.wait_text("#answer .notice.bad", "400 · ")
    assert page.find("#answer .notice p").text
    page.show("/hosts?columns=name,nope&limit=1")
    page.wait_text("#answer .notice.warn", "no row has a column nope")


def test_other_views_and_formats(page, served):
    page.ask("/hosts?columns=name,state&name=web01", "1 row")
    page.find("#views button:nth-child(2)").click()
    assert json.loads(page.find("#answer pre").text) == [{"name": "web01", "state": 0}]
    page.find("#format").send_keys("CSV", Keys.ENTER)
    page.find("#run").click()
    page.wait_text("#answer pre", "#name;state\nweb01;0")
    assert page.find("#download").get_attribute("download") == "answer.csv"


def test_the_same_request_elsewhere_gives_the_same_answer(page, served):
    page.show(f"{PROBLEMS}&q=host_name ~ 'web|db'")
    page.wait_text("#status", "rows")
    with served.client() as client:
        rows = client.rows(f"{PROBLEMS}&q=host_name%20~%20'web|db'".replace(" ", "%20"))
    given = {}
    for number, language in enumerate(("curl", "monrest", "Python"), 1):
        page.find(f"#languages button:nth-child({number})").click()
        given[language] = page.find("#snippet").text
    assert not [text for text in given.values() if served.key in text]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "MONREST_KEY": served.key, "PATH": path}
    command = given["monrest"].replace("MONREST_KEY=…", f"MONREST_KEY={served.key}")
    assert "from monrest.client import Client" in given["Python"]
    script = given["Python"].replace("print(answer)", "import json\nprint(json.dumps(answer))")
    for run in (
        ["sh", "-c", given["curl"]],
        ["sh", "-c", command],
        [sys.executable, "-c", script],
    ):
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
        assert json.loads(done.stdout) == rows, (run, done)


SERVICES = "columns=host_name,description,state&limit=50"


def test_a_service_that_was_never_checked_is_pending(page, served):
    with served.client() as client:
        (row, *_) = client.rows("/services?has_been_checked=0&columns=host_name,description,state")
    assert row["state"] == 0
    page.show(f"/services?{SERVICES}&description={row['description']}")
    page.wait(lambda: [row["host_name"], row["description"], "PENDING"] in rows_shown(page))
    assert [row["host_name"], row["description"], "OK"] not in rows_shown(page)
    page.find("#views button:nth-child(2)").click()
    shown = json.loads(page.find("#answer pre").text)
    assert row in shown, "JSON and download have no column that nobody chose"
    page.find("#views button:nth-child(1)").click()
    page.show("/services?limit=1000")
    page.wait_text("#answer .pill", "PENDING")


def test_from_a_host_to_its_services_alerts_and_commands_and_back(page):
    page.ask("/hosts?columns=name,state&name=web01", "1 row")
    for collection in ("/services", "/alerts"):
        page.find(f"#answer td.links a[href^='#{collection}?']").click()
        page.wait(lambda there=f"#{collection}?": there in page.browser.current_url)
        page.wait(lambda: page.texts("#answer th")[0] in ("host_name", "time"))
        assert page.find("#collection").get_attribute("value") == collection
        assert all("web01" in row for row in rows_shown(page))
        page.browser.back()
        page.wait(lambda: rows_shown(page) == [["web01", "UP"]])
    page.find("#answer td.links a[href^='#endpoints']").click()
    page.find("#chapter-commands-hosts summary").click()
    found = page.find("#chapter-commands-hosts details[open] [data-where=path]")
    assert found.get_attribute("value") == "web01"
    page.ask(f"/services?{SERVICES}&host_name=web01&description=ping", "1 row")
    page.find("#answer td a[href^='#/hosts']").click()
    page.wait(lambda: [row[0] for row in rows_shown(page)] == ["web01"])


def test_a_url_in_a_table_is_a_link(page, served):
    url = "https://wiki.example.org/disk?a=1&b=2"
    with served.client() as client:
        path = "/services/web01/ping/cmd/process_service_check_result"
        form = {"plugin_state": "0", "plugin_output": url, "wait": "1"}
        assert client.post_form(path, form).status == 200
    page.show("/services?columns=plugin_output&host_name=web01&description=ping")
    link = page.find("#answer a[target=_blank]")
    assert (link.text, link.get_attribute("href"), link.get_attribute("rel")) == (
        url,
        url,
        "noreferrer",
    )


CHOOSE = """
    const select = document.getElementById("collection");
    select.value = arguments[0];
    select.dispatchEvent(new Event("change"));
    document.getElementById("limit").value = "10";
    document.getElementById("run").click()"""
ANSWERED = """
    return !document.getElementById("run").disabled
        && !document.getElementById("status").innerText.includes("asking")"""
HEIGHTS = """
    return [...document.querySelectorAll("#answer tbody tr")].map(
        (row) => row.getBoundingClientRect().height)"""


def test_every_collection_begins_with_few_columns_and_its_name_in_rows_of_one_line(page):
    page.ask("/services?limit=5", "5 rows")
    assert page.texts("#answer th")[:2] == ["host_name", "description"]
    assert max(page.browser.execute_script(HEIGHTS)) < 45
    names = set()
    for path in page.texts("#collection option"):
        page.browser.execute_script(CHOOSE, path)
        page.wait(lambda: page.browser.execute_script(ANSWERED))
        assert page.texts("#stale") == [""], path
        columns = [text.split()[0] for text in page.texts("#columns li")]
        assert len(columns) <= 7, path
        names.update(columns[:1])
        assert not [one for one in page.texts("#answer .notice") if "no row has" in one], path
        tall = [one for one in page.browser.execute_script(HEIGHTS) if one > 45]
        assert tall == [], path
    assert names <= {
        "name", "host_name", "host", "time", "id", "file", "path", "username", "peer_name", "target",
        "cache_version", "nr", "comment", ":FILE", "key", "hostname", "description", "peer_key",
        "node_id",
    }  # fmt: skip


def test_times_are_relative_and_exact_in_their_title(page, served):
    with served.client() as client:
        (row,) = client.rows("/hosts?columns=name,last_check&name=web01")
    page.ask("/hosts?columns=name,last_check&name=web01", "1 row")
    cell = page.find("#answer td.time")
    assert cell.text == "now" or cell.text.endswith(" ago")
    when, _, seconds = cell.get_attribute("title").partition(" · ")
    assert int(seconds) >= row["last_check"]
    local = """const date = new Date(arguments[0] * 1000);
        return [date.getFullYear(), date.getHours(), date.getMinutes(), date.getSeconds()]"""
    year, hour, minute, second = page.browser.execute_script(local, int(seconds))
    assert when.startswith(f"{year}-")
    assert when.endswith(f" {hour:02}:{minute:02}:{second:02}")


def test_states_of_alerts_are_words(page, served):
    asked = "/alerts?columns=time,type,host_name,service_description,state&sort=-time&limit=50"
    with served.client() as client:
        rows = client.rows(asked)
    words = {
        "HOST ALERT": ["UP", "DOWN", "UNREACHABLE"],
        "SERVICE ALERT": ["OK", "WARNING", "CRITICAL", "UNKNOWN"],
    }
    expected = [words[row["type"]][row["state"]] for row in rows if row["type"] in words]
    assert len(set(expected)) > 1
    page.show(asked)
    page.wait_text("#status", "row")
    shown = [row[4] for row in rows_shown(page) if row[1] in words]
    assert shown == expected
    page.show("/alerts?columns=host_name,state&type=SERVICE%20ALERT&limit=5")
    page.wait(lambda: {row[1] for row in rows_shown(page)} & set(words["SERVICE ALERT"]))


def test_the_back_button_shows_the_query_before(page):
    page.show("/hosts?columns=name&name=web01")
    page.wait(lambda: rows_shown(page) == [["web01"]])
    page.find("#columns button").click()
    page.find("#column").send_keys("alias", Keys.ENTER)
    page.find("#run").click()
    page.wait(lambda: page.texts("#answer th") == ["alias"])
    page.browser.back()
    page.wait(lambda: rows_shown(page) == [["web01"]])
    assert page.texts("#columns li")[0].startswith("name")
    page.browser.forward()
    page.wait(lambda: page.texts("#answer th") == ["alias"])
    page.find("#tab-endpoints").click()
    page.find("details.operation")
    page.browser.back()
    page.wait(lambda: page.texts("#answer th") == ["alias"])
    assert page.find("#panel-query").is_displayed()


def test_a_pasted_address_is_shown_at_once(page):
    page.show("/hosts?columns=name&name=web01")
    page.wait(lambda: rows_shown(page) == [["web01"]])
    page.browser.get(f"{page.home}/mon/docs/#/hosts?columns=name&name[regex]=^web0[12]%24")
    page.wait(lambda: rows_shown(page) == [["web01"], ["web02"]])
    page.browser.get(f"{page.home}/mon/docs/#endpoints/get_sites")
    page.find("#endpoint-get_sites form")
    page.browser.get(f"{page.home}/mon/docs/#/nosuch?limit=1")
    page.wait_text("#answer .notice.bad", "/nosuch: choose one of the list")
    page.browser.get(f"{page.home}/mon/docs/#key={page.daemon.key}&user=olga")
    page.wait_text("#account", "olga")
    assert "key=" not in page.browser.current_url
    page.forget()


def test_an_answer_to_another_question_is_marked(page):
    page.show("/hosts?columns=name&name=web01")
    page.wait(lambda: rows_shown(page) == [["web01"]])
    page.find("#collection").send_keys("/contacts")
    page.wait_text("#stale", "The question has changed")
    assert "stale" in page.find("#answer").get_attribute("class")
    page.find("#run").click()
    page.wait(lambda: page.texts("#answer th")[:1] == ["name"] and page.texts("#stale") == [""])
    assert "stale" not in page.find("#answer").get_attribute("class")
    page.find("#limit").send_keys("0")
    page.wait_text("#stale", "The question has changed")
    page.find("#limit").send_keys(Keys.BACKSPACE)
    page.wait(lambda: page.texts("#stale") == [""])


def opened(page, path):
    """Open the form of an endpoint by its address, and give its selector."""
    page.show(f"endpoints/{path}")
    name = path.split("?")[0]
    page.find(f"#endpoint-{name} form")
    return f"#endpoint-{name}"


def test_an_endpoint_is_found_tried_and_shown_as_a_table(page, served):
    page.show("endpoints")
    page.find(".search input").send_keys("/services/totals")
    page.wait_text(".search .hint", "One endpoint.")
    form = "#endpoint-get_services_totals"
    page.find(f"{form} summary").click()
    page.find(f"{form} button[type=submit]").click()
    page.wait_text(f"{form} summary", "As JSON: one object")
    with served.client() as client:
        totals = client.rows("/services/totals")
    names = page.texts(f"{form} form tbody tr td:first-child")
    values = page.texts(f"{form} form tbody tr td:last-child")
    assert dict(zip(names, values, strict=True)) == {
        name: str(value) for name, value in totals.items()
    }
    assert served.key not in page.find("#endpoints").text
    assert page.browser.current_url.endswith("#endpoints/get_services_totals")
    page.find(".search input").clear()
    page.find(".search input").send_keys("no such thing")
    page.wait_text(".search .hint", "0 endpoints.")
    page.browser.refresh()


def test_all_endpoints_have_addresses_and_a_link_opens_one(page, served):
    page.show("endpoints")
    page.find("details.operation")
    with served.client() as client:
        paths = client.get("/openapi.json").json["paths"]
    ids = {f"endpoint-{one['operationId']}" for item in paths.values() for one in item.values()}
    shown = "return [...document.querySelectorAll('details.operation')].map((one) => one.id)"
    assert set(page.browser.execute_script(shown)) == ids
    page.browser.execute_script("location.hash = '#endpoints/commands-hosts'")
    top = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    page.wait(lambda: 0 <= page.browser.execute_script(top, "chapter-commands-hosts") < 200)
    form = opened(page, "get_hosts_name?name=web01")
    assert page.find(f"{form} [name=name]").get_attribute("value") == "web01"
    assert 0 <= page.browser.execute_script(top, "endpoint-get_hosts_name") < 200
    page.find(f"{form} [name=columns]").send_keys("name,alias", Keys.ENTER)
    page.wait_text(f"{form} form td", "web01")


def test_the_form_of_a_command_has_a_field_for_each_argument(page, served):
    form = opened(page, "post_hosts_name_cmd_schedule_host_downtime?name=web01")
    with served.client() as client:
        document = client.get("/openapi.json").json
    operation = document["paths"]["/hosts/{name}/cmd/schedule_host_downtime"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    fields = page.browser.find_elements(By.CSS_SELECTOR, f"{form} [data-where=body]")
    assert {one.get_attribute("name") for one in fields} == set(schema["properties"])
    assert {one.tag_name for one in fields} == {"input", "select"}
    assert '"string"' not in page.find(f"{form} form").text
    page.find(f"{form} [name=end_time]").send_keys("+2h")
    page.find(f"{form} [name=fixed]").send_keys("yes")
    page.find(f"{form} button[type=submit]").click()
    valid = "return document.querySelector(arguments[0]).checkValidity()"
    comment = f"{form} [name=comment_data]"
    assert not page.browser.execute_script(valid, comment), "a browser asks for what is required"
    page.find(f"{form} [name=wait]").send_keys("1")
    page.find(comment).send_keys("house moves", Keys.ENTER)
    page.wait_text(f"{form} form td", "successfully submitted")
    with served.client() as client:
        (found,) = client.rows(
            "/downtimes?host_name=web01&comment=house%20moves&service_description="
        )
        assert (found["fixed"], found["end_time"] - found["start_time"]) == (1, 7200)
        assert client.json("DELETE", f"/downtimes/{found['id']}").status == 200


def test_what_is_no_json_is_not_sent(page):
    form = opened(page, "post_mon_panorama")
    page.find(f"{form} [name=tab]").send_keys("{no")
    page.find(f"{form} button[type=submit]").click()
    page.wait_text(f"{form} .notice.bad", "tab: expected JSON")


@pytest.fixture
def phone(page):
    """The window of a phone."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield size
    page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


NEXT_FRAME = """
    const done = arguments[0];
    requestAnimationFrame(() => requestAnimationFrame(() => done()))"""


@pytest.fixture
def themes(page):
    """Gives each theme in turn, which the system then has."""

    def prefer(value):
        feature = {"name": "prefers-color-scheme", "value": value}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        page.browser.execute_async_script(NEXT_FRAME)
        return value

    yield lambda: map(prefer, ("light", "dark"))
    page.browser.execute_script("localStorage.clear()")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_phone_and_the_dark(page, phone, themes):
    for path, ready in (("/mon/", "#sites td"), ("/mon/docs/", "#answer td")):
        page.open(path)
        page.find(ready)
        grounds = set()
        for theme in themes():
            width = page.browser.execute_script("return document.documentElement.scrollWidth")
            assert width <= phone["width"], (theme, path)
            ground = "return getComputedStyle(document.body).backgroundColor"
            grounds.add(page.browser.execute_script(ground))
        assert len(grounds) == 2, path
    page.find("#theme").click()
    page.find("#theme").click()
    page.wait_text("#theme", "light")
    assert page.find("html").get_attribute("data-theme") == "light"


def test_run_shows_the_answer_on_a_phone(page, phone):
    page.open("/mon/docs/")
    page.wait_text("#status", "rows")
    place = """const { top, bottom } =
        document.querySelector("#answer tbody tr").getBoundingClientRect(); return [top, bottom]"""
    assert page.browser.execute_script(place)[0] > phone["height"], "it is below the form"
    page.find("#run").click()

    def seen():
        top, bottom = page.browser.execute_script(place)
        return top > 0 and bottom < phone["height"]

    page.wait(seen)


AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
SERIOUS = """const done = arguments[arguments.length - 1];
    axe.run(document, arguments[0]).then(({ violations }) => done(violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .map(({ id, nodes }) => `${id}: ${nodes[0].failureSummary} ${nodes[0].html}`)))"""
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
"""A theme has its own colours, and the rest in common."""


def test_no_page_has_a_serious_fault_of_accessibility(page, themes):
    """By axe: contrast, names of fields and buttons, roles, headings."""
    command = "post_hosts_name_cmd_schedule_host_downtime"
    for path, ready in (
        ("/mon/", "#sites td"),
        ("/mon/docs/book/", "h1"),
        ("/mon/docs/#/services?limit=5", "#answer td"),
        ("/mon/docs/#/alerts?columns=time,type,host_name,state&limit=5", "#answer td"),
        ("/mon/docs/#/hosts?columns=nope&limit=1", "#answer .notice.warn"),
        (f"/mon/docs/#endpoints/{command}", f"#endpoint-{command}[open] form"),
    ):
        page.open(path)
        page.find(ready)
        if "endpoints" in path:
            page.find(".search input").send_keys("host_downtime")
        page.browser.execute_script(AXE)
        for theme in themes():
            faults = page.browser.execute_async_script(SERIOUS, RULES[theme])
            assert faults == [], (theme, path)


def test_the_book_is_a_click_away(page):
    for path in ("/mon/", "/mon/docs/"):
        page.open(path)
        page.find("a[href$='book/']").click()
        page.wait(lambda: page.browser.current_url.endswith("/mon/docs/book/"))
        page.find("h1")
    page.open("/mon/docs/book")
    page.wait(lambda: page.browser.current_url.endswith("/mon/docs/book/"))


def test_no_request_leaves_the_machine(page):
    """All that the browser has asked for in this module, by its own log."""
    messages = [json.loads(one["message"]) for one in page.browser.get_log("performance")]
    events = [one["message"] for one in messages]
    asked = [
        one["params"]["request"]["url"]
        for one in events
        if one["method"] == "Network.requestWillBeSent"
    ]
    assert len(asked) > 50
    # The browser's own pages are parts of it.
    own = (f"{page.home}/", "about:", "blob:", "chrome:", "chrome-untrusted:", "data:")
    assert {one for one in asked if not one.startswith(own)} == set()


def test_a_page_that_is_live(page, served):
    page.ask("/services?columns=state,plugin_output&host_name=web01&description=ping", "1 row")
    page.find("#live").click()
    assert page.find("#live").get_attribute("aria-pressed") == "true"
    with served.client() as client:
        for output in ("lost 1 of 5", "lost 2 of 5"):
            done = client.post_form(
                "/services/web01/ping/cmd/process_service_check_result",
                {
                    "plugin_state": "2" if "1" in output else "0",
                    "plugin_output": output,
                    "wait": "1",
                },
            )
            assert done.status == 200, done
            page.wait_text("#answer td", output)
    page.find("#live").click()
    assert page.find("#live").get_attribute("aria-pressed") == "false"
    page.find("#live").click()
    page.browser.execute_script("document.getElementById('backends').value = 'nosuch'")
    page.find("#backends").send_keys("1\t")
    page.wait_text("#answer", "nosuch1")
    page.wait(lambda: page.find("#live").get_attribute("aria-pressed") == "false")
    offered = page.texts("#collection option")
    assert "/services" in offered
    assert "/events" not in offered, "a stream has no rows to show"
