"""The explorer: its wiring equals the reference's, and the page works in a real browser."""

import numpy as np
import pytest
from webpage import PAGE, javascript, needs_browser, needs_node

from mse_ref import apply_route, digits_touched, qrotate, receptive_field, schedule, zorder

SIDES = [2, 4, 8, 16, 32]


@needs_node
def test_every_permutation_of_the_page_is_the_references():
    ours = javascript(
        "given.map(n => { const k = M.digitsOf(n);"
        " return {z: M.zorder(n), right: M.qrotate(k), left: M.qrotate(k, -1), units: M.schedule(k),"
        " digits: M.schedule(k).map((_, i) => M.digitTouched(k, 2 * i + 1))}; })",
        SIDES,
    )
    for n, page in zip(SIDES, ours, strict=True):
        k = n.bit_length() - 1
        np.testing.assert_array_equal(page["z"], zorder(n))
        np.testing.assert_array_equal(page["right"], qrotate(k))
        np.testing.assert_array_equal(page["left"], qrotate(k, -1))
        assert [(layer["unit"], layer["steps"]) for layer in page["units"]] == list(map(tuple, schedule(k)))
        assert page["digits"] == digits_touched(k)


@needs_node
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_the_cone_of_a_slot_is_the_references_receptive_field_both_ways(n):
    k = n.bit_length() - 1
    last = 2 * k - 1
    slots = range(0, 4**k, max(1, 4**k // 16))
    # backwards from every layer, and forwards from the inputs
    cones = javascript(
        "given.slots.map(p => ({"
        " back: M.schedule(given.k).map((_, i) => [...M.cone(given.k, 2 * i + 1, p)[0]]),"
        " on: M.schedule(given.k).map((_, i) => [...M.cone(given.k, 0, p)[2 * i + 1]])}))",
        {"k": k, "slots": list(slots)},
    )
    for layer in range(1, last + 1):
        field = receptive_field(k, layer)
        for slot, cone in zip(slots, cones, strict=True):
            assert sorted(cone["back"][layer - 1]) == np.flatnonzero(field[slot]).tolist()
            assert sorted(cone["on"][layer - 1]) == np.flatnonzero(field[:, slot]).tolist()


@needs_node
def test_the_cone_joins_what_a_middle_slot_has_seen_to_what_it_will_reach():
    cone = javascript("M.cone(3, 5, 17).map(slots => slots.length ?? slots.size)")
    assert cone == [64, 16, 16, 4, 4, 1, 1, 4, 4, 16]


@needs_node
@pytest.mark.parametrize("n", SIDES)
def test_routes_of_the_page_work_in_the_references_network(n):
    rng = np.random.default_rng(n)
    wanted = [rng.permutation(n * n), np.arange(n * n)[::-1], np.arange(n * n), np.roll(np.arange(n * n), 1)]
    routed = javascript("given.map(p => M.route(p))", [p.tolist() for p in wanted])
    for permutation, settings in zip(wanted, routed, strict=True):
        local = np.array(settings).reshape(len(settings), n * n // 4, 4)  # [layer, group, output]: slot read
        local = local - 4 * np.arange(n * n // 4)[None, :, None]
        np.testing.assert_array_equal(np.sort(local, axis=-1), np.broadcast_to(np.arange(4), local.shape))
        np.testing.assert_array_equal(apply_route(local, np.arange(n * n)), permutation)


@needs_node
@pytest.mark.parametrize("n", [2, 8, 32])
def test_the_named_permutations_do_what_their_names_say(n):
    matrix = np.arange(n * n).reshape(n, n)
    got = javascript(
        "Object.fromEntries([...Object.keys(M.named), 'random'].map(name => {"
        " const p = M.toSlots(M.namedPermutation(name, given), given);"
        " const states = M.carry(M.route(p), M.zorder(given));"
        " const out = []; M.zorder(given).forEach((cell, slot) => { out[cell] = states[states.length - 1][slot]; });"
        " return [name, out]; }))",
        n,
    )
    want = {
        "none": matrix,
        "transpose": matrix.T,
        "rotate left": np.rot90(matrix),
        "flip sideways": matrix[:, ::-1],
        "turn around": matrix[::-1, ::-1],
        "roll right": np.roll(matrix, 1, axis=1),
    }
    for name, expected in want.items():
        np.testing.assert_array_equal(np.reshape(got[name], (n, n)), expected, err_msg=name)
    assert sorted(got["random"]) == list(range(n * n))
    assert sorted(got["reverse bits"]) == list(range(n * n))


@needs_node
@pytest.mark.parametrize(
    "text,message",
    [
        ("0 1 2", "a 2×2 matrix needs 4 numbers, 0 to 3; got 3"),
        ("0 1 2 2", "each cell is used once, but 2 comes twice"),
        ("0 1 2 4", "entries are whole numbers from 0 to 3; got 4"),
        ("0 1 2 x", 'only whole numbers are understood; got "x"'),
        ("0 1 2 -3", 'only whole numbers are understood; got "-3"'),
    ],
)
def test_a_wrong_permutation_is_refused_by_name(text, message):
    said = javascript("(() => { try { M.parsePermutation(given, 2); } catch (e) { return e.message; } })()", text)
    assert said == message


def test_the_page_is_small_and_asks_nobody_for_anything():
    files = [path for path in PAGE.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        loads = [line for line in path.read_text().splitlines() if "http" in line and "href=" not in line]
        assert not [line for line in loads if "www.w3.org" not in line], path.name


def settled(tab) -> None:
    """Wait until what was asked for has been painted."""
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def click_cell(tab, row: int, column: int, n: int) -> None:
    size = tab.locator("#main").bounding_box()["width"] / n
    tab.locator("#main").click(position={"x": (column + 0.5) * size, "y": (row + 0.5) * size})


def colours(tab, canvas: str, n: int) -> list[list[int]]:
    """The colour of every drawn cell, in reading order, taken near its corner, where no number stands."""
    settled(tab)
    return tab.evaluate(
        "([id, n]) => { const canvas = document.getElementById(id), size = canvas.width / n;"
        " const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        " return Array.from({length: n * n}, (_, i) => {"
        "   const [x, y] = [i % n, Math.floor(i / n)].map(place => Math.floor((place + .25) * size));"
        "   return [...all.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)]; }); }",
        [canvas, n],
    )


@needs_browser
def test_stepping_moves_the_matrix_as_the_reference_shuffles_it(page):
    page.get_by_label("4", exact=True).check()
    page.click("#next")  # switch, set straight
    page.click("#next")  # shuffle
    assert page.evaluate("explorer.items[explorer.step]") == qrotate(2).tolist()
    assert "Step 2 of 5: QShuffle" in page.inner_text("#caption")
    assert page.locator("[aria-current=step]").inner_text() == "shuffle"
    # the picture too: each cell has the colour of the quadrant its item came from
    quadrants = [[0xBB, 0xDD, 0xF5], [0xF5, 0xD9, 0x99], [0x99, 0xD8, 0xC7], [0xEB, 0xC9, 0xDC]]
    shown = np.array(colours(page, "main", 4))[zorder(4)]
    np.testing.assert_array_equal(shown, [quadrants[item // 4] for item in qrotate(2)])


@needs_browser
def test_a_clicked_cell_shows_the_receptive_field_of_the_reference(page):
    n, k = 8, 3
    for _ in range(3):  # after the second switch layer
        page.click("#next")
    click_cell(page, 2, 5, n)
    slot = int(np.flatnonzero(zorder(n) == 2 * n + 5)[0])
    seen = set(zorder(n)[receptive_field(k, 2)[slot]])
    assert "has seen 16 of 64 inputs and will reach 64 of 64 outputs" in page.inner_text("#caption")
    blue, pale = [0xBB, 0xDD, 0xF5], [0xEF, 0xED, 0xEA]
    assert colours(page, "inputs", n) == [blue if cell in seen else pale for cell in range(n * n)]


@needs_browser
def test_a_typed_permutation_is_routed_and_a_wrong_one_is_explained(page):
    page.get_by_label("2", exact=True).check()
    page.select_option("#preset", "own")
    page.fill("#permutation", "3 1 2 2")
    page.click("text=Route it")
    assert page.inner_text("#problem") == "each cell is used once, but 2 comes twice"
    page.fill("#permutation", "3 1\n2 0")
    page.click("text=Route it")
    assert page.inner_text("#problem") == ""
    page.click("#end")
    assert page.evaluate("explorer.items[explorer.step]") == [3, 1, 2, 0]


@needs_browser
def test_the_keyboard_alone_steps_marks_and_changes_the_view(page):
    page.focus("#main")
    page.keyboard.press("ArrowRight")  # marks the first cell
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "cell (row 1, column 1)" in page.inner_text("#caption")
    page.keyboard.press(".")
    assert page.evaluate("explorer.step") == 1
    page.keyboard.press(",")
    assert page.evaluate("explorer.step") == 0
    page.keyboard.press("v")
    assert page.evaluate("explorer.view") == "place"
    page.keyboard.press("v")
    assert page.evaluate("explorer.view") == "line"
    page.keyboard.press("Escape")
    assert page.evaluate("explorer.item") is None


@needs_browser
def test_a_random_permutation_stays_until_another_one_is_chosen(page):
    page.select_option("#preset", "random")
    drawn = page.evaluate("explorer.items.at(-1).join()")
    page.get_by_label("Z-order line", exact=True).check()
    assert page.evaluate("explorer.items.at(-1).join()") == drawn
    page.select_option("#preset", "own")  # offers what is on the screen
    page.click("#own button")
    assert page.evaluate("explorer.preset") == "own" and page.evaluate("explorer.items.at(-1).join()") == drawn
    page.select_option("#preset", "random")
    assert page.evaluate("explorer.items.at(-1).join()") != drawn


@needs_browser
def test_a_wish_that_is_no_preset_is_ignored(browser):
    tab = browser.new_page()
    tab.goto(f"{(PAGE / 'index.html').as_uri()}#preset=constructor&view=toString")
    assert tab.evaluate("explorer.preset + explorer.view") == "nonematrix"
    tab.close()


@needs_browser
def test_every_size_and_view_paints_in_both_themes(page):
    painted = set()
    for view in ("Matrix", "Matrix, in place", "Z-order line"):
        page.get_by_label(view, exact=True).check()
        for n in (4, 32):
            page.get_by_label(str(n), exact=True).check()
            page.select_option("#preset", "transpose")
            for _ in range(2):
                page.click("#theme")
                settled(page)
                painted.add(page.evaluate("document.getElementById('main').toDataURL()"))
    assert len(painted) == 2 * 3 * 2


@needs_browser
def test_a_finger_on_a_phone_marks_a_cell_and_nothing_sticks_out(browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce")
    phone = context.new_page()
    phone.goto((PAGE / "index.html").as_uri() + "#n=4&demo=1")
    phone.wait_for_function("document.body.dataset.network")
    phone.locator("#main").tap(position={"x": 10, "y": 10})
    assert "cell (row 0, column 0)" in phone.inner_text("#caption")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
