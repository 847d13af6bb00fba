"""Every control of the page does what it says, and the page is quick, quiet and usable without a mouse."""

import json
import statistics

import jax
import pytest

import lintra
from lintra import zoo
from lintra.explorer.page import page as fill_page
from lintra.zoo import tensors
from page_visit import Visit

CONTROLS = (
    "share",
    "theme",
    "layers",
    "noise",
    "sigma",
    "examples",
    "damped",
    "rescaled",
    "seed",
    "fresh",
    "after",
    "restore",
    "file",
)
PICTURES = ("scatter", "steps", "plane", "distance", "profile", "ablation")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_the_first_view_is_there_in_less_than_a_second(browser, page_file, visit):
    paints, views = [], []
    for _ in range(5):
        one = visit()
        page = one.page
        one.wait_for("performance.getEntriesByName('first-contentful-paint').length > 0")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        views.append(page.evaluate("performance.getEntriesByName('lintra-first-view')[0].startTime"))
        one.context.close()
    size = page_file.stat().st_size
    print(
        f"\npage {size / 1e6:.2f} MB; first paint {statistics.median(paints):.0f} ms, all views "
        f"{statistics.median(views):.0f} ms (medians of 5)"
    )
    assert size < 2_500_000
    assert min(paints) < 1000
    assert min(views) < 1000


def test_nothing_jumps_while_the_page_opens(visit):
    one = visit()
    one.wait_until_measured()
    moved = one.page.evaluate(
        """() => new Promise(done => new PerformanceObserver(list => done(
             list.getEntries().reduce((sum, entry) => sum + entry.value, 0)
           )).observe({type: "layout-shift", buffered: true}) || setTimeout(() => done(0), 300))"""
    )
    assert moved < 0.01


def test_all_views_are_drawn(visit):
    one = visit()
    for name in PICTURES:
        assert len(one.picture(name)) > 500, name
        assert one.page.get_attribute(f"#{name}", "aria-label")
    assert one.page.locator("#table button").count() == 210
    assert one.page.locator("#matrices svg").count() == 14


@pytest.mark.parametrize("family", ["gd++", "diag", "full"])
def test_family(visit, family):
    one = visit()
    one.page.check(f"input[name=family][value='{family}']", force=True)
    assert one.address()["model"] == f"{family}-7-uniform(0,5)"
    assert one.page.locator(".stack > .chosen").get_attribute("data-family") == family


def test_layers_prior_and_heads(visit):
    one = visit("#model=diag-4-uniform(0,5)")
    one.slide("layers", 12)
    assert one.address()["model"] == "diag-12-uniform(0,5)"
    assert one.page.locator("#omegas tbody tr").count() == 12
    one.page.check("#heads")
    assert one.address()["model"] == "diag-12-uniform(0,5)-h2"
    one.page.select_option("#noise", "choice(1,3,5)")
    assert one.address()["model"] == "diag-7-choice(1,3,5)"
    assert one.page.is_disabled("#heads")
    assert one.page.get_attribute("#layers", "max") == "7"


@pytest.mark.parametrize(
    ("control", "value", "name", "text"),
    [("sigma", 3.5, "sigma", "3.50"), ("examples", 40, "n", "40"), ("after", 2, "after", "2 of 7")],
)
def test_sliders(visit, control, value, name, text):
    one = visit()
    before = one.picture("scatter")
    one.slide(control, value)
    assert float(one.address()[name]) == value
    assert one.text(f"#{control}-value") == text
    assert one.picture("scatter") != before


def test_more_noise_only_scales_the_noise_and_more_examples_are_only_added(visit):
    one = visit("#n=5&sigma=0")

    def examples():
        titles = one.page.locator("#scatter circle title").all_text_contents()
        return [title.split(", label")[0] for title in titles]

    few = examples()
    one.slide("sigma", 4)
    assert examples() == few
    one.slide("examples", 9)
    assert examples()[:5] == few
    assert len(examples()) == 9


def test_seed_and_new_sequence(visit):
    one = visit()
    first = one.picture("scatter")
    one.page.click("#fresh")
    assert one.address()["seed"] == "7"
    assert one.picture("scatter") != first
    one.page.fill("#seed", "6")
    one.page.press("#seed", "Enter")
    assert one.picture("scatter") == first


def test_rescaling_matters_only_at_another_context_length(visit):
    one = visit()
    before = one.picture("steps")
    one.page.check("#rescaled")
    assert one.address()["rescaled"] == "1"
    assert one.picture("steps") == before
    one.slide("examples", 40)
    rescaled = one.picture("steps")
    one.page.uncheck("#rescaled")
    assert one.picture("steps") != rescaled


def test_damping_matters_only_outside_of_the_range_of_training(visit):
    one = visit()
    assert one.page.is_checked("#damped")
    assert one.text("#damping") == "Not damped: inside the range of training."
    assert "damped" not in one.text("#status")
    before = one.picture("steps")
    one.page.uncheck("#damped")
    assert one.address()["damped"] == "0"
    assert one.text("#damping") == "As printed: damping is off."
    assert one.picture("steps") == before
    one.slide("examples", 60)
    printed = one.picture("steps")
    one.page.check("#damped")
    assert "damped" not in one.address()
    assert one.picture("steps") != printed
    assert one.text("#status").endswith(", damped.")


def test_the_page_says_by_how_much_a_context_is_damped(visit):
    one = visit("#model=full-7-uniform(0,5)&n=60")
    divisors = one.page.evaluate("lintra.shown().divisors")
    layers = [f"{r:.2f} in layer {layer}" for layer, r in enumerate(divisors["layers"], start=1) if r > 1.001]
    assert len(layers) > 1
    assert one.text("#damping") == (
        "Damped: outside the range of training. "
        f"The Gram matrix is divided by {divisors['context']:.2f} before layer 1. "
        f"Steps are divided by {', '.join(layers)}."
    )
    titles = one.page.locator("#steps title").all_text_contents()
    assert [title.split(" in layer")[0] for title in layers] == [
        title.split("step divided by ")[1] for title in titles if "step divided" in title
    ]


def test_damped_and_printed_losses_are_told_apart(visit):
    one = visit()
    assert "n = 20, damped. In Python: 8,192, as printed." in one.text("#profile-note")
    assert "n = 20, damped." in one.text("#ablation-note")
    assert "Loss on the prior, as printed" in one.text("#tiles")
    one.page.uncheck("#damped")
    assert "n = 20, as printed. In Python: 8,192, as printed." in one.text("#profile-note")
    assert "n = 20, as printed." in one.text("#ablation-note")


def test_damping_changes_the_losses_that_are_measured(visit):
    one = visit("#model=full-4-uniform(0,5)&n=100")
    one.wait_for("lintra.profile().done > 100")
    damped = one.page.evaluate("lintra.profile().loss")
    one.page.uncheck("#damped")
    one.wait_for("lintra.profile().done > 100")
    printed = one.page.evaluate("lintra.profile().loss")
    assert max(damped) < 1
    assert max(printed) > 1e6


def test_the_profile_says_where_its_lines_are_from(visit):
    one = visit()
    assert "In Python: 8,192" in one.text("#profile-note")
    one.slide("examples", 30)
    one.wait_for("lintra.profile().done > 20")
    assert "n = 30" in one.text("#profile-note")
    assert "measured here as well" in one.text("#profile-note")


def test_switching_an_omega_off_raises_the_loss_and_back_on_restores_it(visit):
    one = visit("#model=diag-4-uniform(0,5)")
    one.wait_until_measured()
    switch = one.page.locator("[data-omega='2yx']")
    assert switch.get_attribute("aria-pressed") == "true"
    walked = one.picture("plane")
    switch.click()
    assert switch.get_attribute("aria-pressed") == "false"
    assert one.address()["off"] == "2yx"
    assert one.picture("plane") != walked
    one.wait_for("document.getElementById('ablation-note').textContent.includes('over 512')")
    assert "1 ω is off" in one.text("#ablation-note")
    one.page.click("#restore")
    assert "off" not in one.address()
    assert one.picture("plane") == walked


@pytest.mark.parametrize("name", ["gd++-3-uniform(0,5)", "full-3-uniform(0,5)"])
def test_every_switch(visit, name):
    one = visit(f"#model={name}")
    switches = one.page.locator(".switch")
    for index in range(switches.count()):
        switches.nth(index).click()
    expected = [switches.nth(index).get_attribute("data-omega") for index in range(switches.count())]
    assert one.address()["off"].split(",") == expected
    assert len(expected) == (5 if name.startswith("gd") else 10)


def test_table_1(visit):
    one = visit()
    cell = "[data-model='full-7-choice(1,3)']"
    for shade, text in (("paper", "0.010"), ("lintra", None), ("floor", None)):
        one.page.check(f"input[name=shade][value={shade}]", force=True)
        assert one.address()["table"] == shade
        assert text is None or one.text(cell).startswith("0.01")
    assert one.text(cell).endswith("×")
    one.page.click(cell)
    assert one.address()["model"] == "full-7-choice(1,3)"
    assert one.page.get_attribute(cell, "aria-current") == "true"
    assert one.page.is_checked("input[value=full]")
    one.page.go_back()
    assert one.address()["model"] == "full-7-uniform(0,5)"
    assert one.page.input_value("#noise") == "uniform(0,5)"


def test_a_model_that_explodes_as_printed_is_marked_and_shown_damped(visit):
    one = visit()
    one.page.check("input[name=shade][value=lintra]", force=True)
    card = zoo.card("diag-3-choice(1,3)")
    cell = "[data-model='diag-3-choice(1,3)']"
    assert one.text(cell) == f"{card['damped']['adjusted_loss']:.4f}†"
    title = one.page.get_attribute(cell, "title")
    counts = f"as printed it explodes on {card['printed_num_exploded']} of {card['gate_sequences']:,} sequences"
    assert counts in title
    one.page.click(cell)
    assert "Loss on the prior, damped" in one.text("#tiles")
    assert "†" not in one.text("[data-model='full-7-uniform(0,5)']")


def test_arrow_keys_move_in_the_table(visit):
    one = visit()
    one.page.focus("[data-model='full-4-uniform(0,5)']")
    for key, expected in (
        ("ArrowRight", "full-4-uniform(0,6)"),
        ("ArrowUp", "diag-4-uniform(0,6)"),
        ("ArrowLeft", "diag-4-uniform(0,5)"),
        ("ArrowDown", "full-4-uniform(0,5)"),
    ):
        one.page.keyboard.press(key)
        assert one.page.evaluate("document.activeElement.dataset.model") == expected
    one.page.keyboard.press("ArrowUp")
    one.page.keyboard.press("Enter")
    assert one.address()["model"] == "diag-4-uniform(0,5)"


def test_an_address_gives_the_same_view_again(visit):
    one = visit(
        "#model=diag-5-choice(1,3)&sigma=1.25&n=25&seed=9&after=3&off=2xy,3yy&table=paper&rescaled=1&damped=0"
    )
    other = visit("#" + one.page.evaluate("location.hash.slice(1)"))
    assert one.address() == other.address()
    assert one.address()["off"] == "2xy,3yy"
    assert one.address()["damped"] == "0"
    for name in ("scatter", "steps", "plane", "distance"):
        assert one.picture(name) == other.picture(name)


@pytest.mark.parametrize("address", ["#model=nothing&sigma=much&n=-3&seed=1e99&after=99&off=9zz", "#%", "#&&=="])
def test_an_address_that_makes_no_sense_gives_a_sensible_page(visit, address):
    one = visit(address)
    assert one.address()["model"] == "full-7-uniform(0,5)"
    assert "NaN" not in one.text("main")


def test_copying_the_address(visit):
    one = visit(permissions=["clipboard-read", "clipboard-write"])
    one.page.click("#share")
    one.wait_for("document.getElementById('status').textContent.includes('copied')")


def test_dark_and_light(visit):
    one = visit(color_scheme="dark")

    def ground():
        return one.page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark = ground()
    one.page.click("#theme")
    assert ground() != dark
    assert one.page.get_attribute("#theme", "aria-pressed") == "false"
    one.page.reload()
    assert ground() != dark
    one.page.click("#theme")
    assert ground() == dark


def test_an_own_model_file(visit, tmp_path):
    name = "full-3-uniform(0,5)"
    lintra.save(zoo.load(name), tmp_path / "mine.safetensors", noise="uniform(0,5)", card={"note": "größer ☃"})
    one, of_zoo = visit("#sigma=1"), visit(f"#model={name}&sigma=1")
    one.page.set_input_files("#file", tmp_path / "mine.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.startsWith('Opened')")
    assert "mine.safetensors" in one.text("#opened")
    assert one.picture("steps") == of_zoo.picture("steps")
    one.page.click("#opened-close")
    assert one.page.is_hidden("#opened")
    assert one.picture("steps") != of_zoo.picture("steps")


def test_losses_are_measured_again_for_another_file_of_the_same_name(visit, tmp_path):
    one, losses = visit(), []
    for num_layers in (1, 2):
        lintra.save(zoo.load(f"diag-{num_layers}-uniform(0,5)"), tmp_path / "model.safetensors")
        one.page.set_input_files("#file", tmp_path / "model.safetensors")
        one.wait_for(f"document.getElementById('file-message').textContent.includes('{num_layers} layers')")
        one.wait_for("lintra.profile().done > 50")
        losses.append(one.page.evaluate("lintra.profile().loss[0]"))
    assert losses[0] > 1.5 * losses[1]


def test_an_own_model_of_another_size(visit, tmp_path):
    model = lintra.Diagonal.random(2, dim=4, num_examples=12, num_heads=2, key=jax.random.key(0))
    lintra.save(model, tmp_path / "small.safetensors", noise="choice(1:0.2,3:0.8)")
    one = visit()
    one.page.set_input_files("#file", tmp_path / "small.safetensors")
    one.wait_for("document.getElementById('file-message').textContent.includes('d = 4')")
    one.wait_until_measured()
    assert one.text("#after-value") == "2 of 2"
    assert_cannot_be_damped(one)
    one.page.click("#opened-close")
    assert one.page.is_checked("#damped")
    assert one.page.get_attribute("#damped-label", "title") == ""


def assert_cannot_be_damped(one):
    assert one.page.is_disabled("#damped")
    assert not one.page.is_checked("#damped")
    reason = "This model has no damping thresholds, so it runs as printed."
    assert one.page.get_attribute("#damped-label", "title") == reason
    assert one.text("#damping") == "As printed: this model has no damping thresholds."


def bad_files():
    def intact(folder):
        lintra.save(zoo.load("diag-2-uniform(0,5)"), folder / "model.safetensors", noise="uniform(0,5)")
        return (folder / "model.safetensors").read_bytes()

    def altered(folder):
        content = bytearray(intact(folder))
        content[-3] ^= 1
        return bytes(content)

    def foreign(folder):
        tensors.write_tensors(folder / "x", {}, {"format": "lintra-zoo-1"})
        return (folder / "x").read_bytes()

    return {
        "empty": (lambda folder: b"", "not an intact safetensors file"),
        "cut": (lambda folder: intact(folder)[:-8], "cut off"),
        "text": (lambda folder: b"hello, I am not a model at all", "not an intact safetensors file"),
        "altered": (altered, "checksum"),
        "foreign": (foreign, "lintra-zoo-1"),
    }


@pytest.mark.parametrize("kind", ["empty", "cut", "text", "altered", "foreign"])
def test_a_bad_file_gets_a_sentence_and_changes_nothing(visit, tmp_path, kind):
    make, expected = bad_files()[kind]
    (tmp_path / "bad.safetensors").write_bytes(make(tmp_path))
    one = visit()
    before = one.picture("steps")
    one.page.set_input_files("#file", tmp_path / "bad.safetensors")
    one.wait_for("document.getElementById('file-message').textContent !== ''")
    assert expected in one.text("#file-message")
    assert one.text("#file-message").endswith(".")
    assert one.picture("steps") == before


def test_the_keyboard_reaches_every_control(visit):
    one = visit("#model=diag-2-uniform(0,5)")
    reached = []
    for _ in range(60):
        one.page.keyboard.press("Tab")
        reached.append(
            one.page.evaluate(
                "(e => e.id || e.dataset.omega || (e.dataset.model && 'table') || e.name)(document.activeElement)"
            )
        )
    assert reached[0] == "skip"
    omegas = {"1xx", "1xy", "1yx", "1yy", "2yx", "2yy"}
    assert {*CONTROLS, *omegas, "heads", "family", "shade", "table"} <= set(reached)
    one.page.focus("input[name=family][value=diag]")
    one.page.keyboard.press("ArrowRight")
    assert one.address()["model"] == "full-2-uniform(0,5)"
    one.page.focus("#sigma")
    one.page.keyboard.press("ArrowRight")
    assert one.address()["sigma"] == "2.55"
    one.page.focus("[data-omega='1yx']")
    one.page.keyboard.press("Space")
    assert one.address()["off"] == "1yx"


def test_the_skip_link(visit):
    one = visit()
    one.page.keyboard.press("Tab")
    one.page.keyboard.press("Enter")
    assert one.page.evaluate("document.activeElement.id") == "views"


def test_everything_has_a_name_for_a_screen_reader(visit):
    nameless = visit().page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, svg[role=img]")].filter(e =>
             !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize(
    ("name", "options"), [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)]
)
def test_a_picture_of_the_page_which_scrolls_in_one_direction_only(visit, name, options, pytestconfig):
    folder = pytestconfig.rootpath / "build" / "page"
    folder.mkdir(parents=True, exist_ok=True)
    one = visit(**options)
    one.wait_until_measured()
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    one.page.screenshot(path=folder / f"{name}.png", full_page=True)
    print(f"\n{folder / name}.png", json.dumps(one.address()))


def test_a_zoo_of_ones_own_without_curves_and_thresholds(browser, tmp_path):
    name = "diag-2-choice(1,3)"
    model = zoo.load(name).store_damping(None)
    zoo.write(tmp_path / "mine.safetensors", {name: (model, {"noise": "choice(1,3)"})})
    (tmp_path / "page.html").write_text(fill_page(zoo.Zoo(tmp_path / "mine.safetensors"), {}), encoding="utf-8")
    one = Visit(browser, tmp_path / "page.html")
    one.wait_until_measured()
    one.page.select_option("#noise", "choice(1,3)")
    one.slide("examples", 8)
    assert one.address()["model"] == name
    assert one.page.locator("#table button").count() == 1
    assert_cannot_be_damped(one)
    one.context.close()
    assert one.messages == []
