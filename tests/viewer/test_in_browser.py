"""The page in a real browser, with real clicks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lucid
from tests.viewer.conftest import Browser
from tests.viewer.models import loss_of_gpt, training_step_of_gpt


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    loss, args = loss_of_gpt(1)
    return lucid.view(loss, *args, path=tmp_path_factory.mktemp("pages") / "gpt.html").path


def selected(browser: Browser, pane: str) -> list[str]:
    return browser.texts(f"{pane} .selected")


def line_of(text: str) -> str:
    lines = (Path(__file__).parent / "models.py").read_text().splitlines()
    return next(str(i) for i, line in enumerate(lines, 1) if text in line)


def test_clicking_an_equation_marks_its_line_its_kernel_and_its_assembly(
    browser: Browser, gpt: Path
) -> None:
    browser.open(gpt)
    browser.click("#stage-body .line", "erfc")
    (marked,) = browser.all("#source .selected")
    assert marked.get_attribute("data-line") == line_of("self.mlp(self.norm2(x))")
    assert any("GELU" in text or "erfc" in text for text in selected(browser, "#graph"))
    browser.click("[data-tab=kernels]")
    (instruction,) = selected(browser, "#instruction-list")
    assert "erfc" in instruction
    assert browser.one("#kernel-body").get_attribute("class").endswith("marked")
    assert "def kernel" in browser.one("#kernel-body").text
    browser.click("[data-form=llvm]")
    assert "define" in browser.one("#kernel-body").text
    browser.click("[data-form=assembly]")
    assert "ret" in browser.one("#kernel-body").text
    assert "erfc" in browser.one("#status").text
    assert browser.errors() == []


def marked_lines(browser: Browser) -> list[str]:
    return [text.strip() for text in browser.texts("#kernel-body .selected .text")]


def test_a_line_of_a_listing_leads_to_its_equation_and_source_line_and_back(
    browser: Browser, gpt: Path
) -> None:
    browser.open(gpt)
    browser.click("[data-tab=kernels]")
    browser.click("#instruction-list .instruction", "erfc")
    browser.click("#kernel-body .line", "erfc(")
    assert any("erfc(" in line for line in marked_lines(browser))
    assert not any(line.startswith("def kernel") for line in marked_lines(browser))
    assert "models.py:" + line_of("self.mlp(self.norm2(x))") in browser.one("#status").text
    (source,) = browser.all("#source .selected")
    assert source.get_attribute("data-line") == line_of("self.mlp(self.norm2(x))")
    assert any("erfc" in text or "GELU" in text for text in selected(browser, "#graph"))
    browser.click("[data-tab=stages]")
    equations = selected(browser, "#stage-body")  # those whose expressions are in that line
    assert any("erfc" in text for text in equations) and len(equations) < 6
    browser.click("#stage-body .line", "softmax")  # and back: from an equation to lines
    browser.click("[data-tab=kernels]")
    assert any("exp(" in line for line in marked_lines(browser))
    browser.click(f"#source [data-line='{line_of('scores = q @ k')}']")
    assert "exp(" not in " ".join(marked_lines(browser))
    assert browser.errors() == []


@pytest.mark.parametrize(("form", "code"), [("llvm", "@lucid_erfc"), ("assembly", "ps ")])
def test_lines_of_llvm_and_assembly_lead_to_their_equation(
    browser: Browser, gpt: Path, form: str, code: str
) -> None:
    browser.open(gpt)
    browser.click("#stage-body .line", "erfc")
    browser.click("[data-tab=kernels]")
    browser.click(f"[data-form={form}]")
    lines = marked_lines(browser)
    assert lines and any(code in line for line in lines)
    assert len(lines) < len(browser.all("#kernel-body .line"))
    marked = browser.all("#kernel-body .selected")
    number = marked[len(marked) // 2].get_attribute("data-line")
    browser.run("window.lucid.select(null)")
    assert not marked_lines(browser)
    browser.click(f"#kernel-body [data-line='{number}']")
    assert marked_lines(browser) == lines
    assert "erfc" in browser.one("#status").text
    (source,) = browser.all("#source .selected")
    assert source.get_attribute("data-line") == line_of("self.mlp(self.norm2(x))")
    assert browser.all("#graph .selected")


def test_clicking_a_line_marks_all_that_it_became(browser: Browser, gpt: Path) -> None:
    browser.open(gpt)
    browser.click(f"#source [data-line='{line_of('self.qkv(x).reshape')}']")
    rows = selected(browser, "#stage-body")
    assert any("matmul" in row for row in rows) and any("qkv.weight" in row for row in rows)
    browser.click("[data-tab=memory]")
    assert browser.all("#memory-body rect.selected")
    browser.click("[data-tab=kernels]")
    assert any("matmul" in text for text in selected(browser, "#instruction-list"))


def test_a_stage_shows_its_difference_to_the_one_before(browser: Browser, gpt: Path) -> None:
    browser.open(gpt)
    browser.click("[data-stage=decomposed]")
    added, removed = browser.texts("#stage-body .add"), browser.texts("#stage-body .cut")
    assert any("softmax" in text for text in removed)
    assert any("exp" in text for text in added) and not any("softmax" in text for text in added)
    count = len(browser.all("#stage-body .line"))
    browser.click("#stage-body .gap")
    assert len(browser.all("#stage-body .line")) > count
    browser.click("#diff")
    assert not browser.all("#stage-body .add") and browser.texts("#stage-body .line")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("softmax", "softmax"),
        ("qkv.weight", "qkv.weight"),
        ("f32[1,2,8,8]", "f32[1,2,8,8]"),
        ("models.py:" + line_of("scores = q @ k"), "models.py"),
        ("blocks.0.norm1 rsqrt", "rsqrt"),
    ],
)
def test_search_finds_operations_names_lines_shapes_and_scopes(
    browser: Browser, gpt: Path, query: str, expected: str
) -> None:
    browser.open(gpt)
    field = browser.one("#search")
    field.send_keys(query)
    found = browser.texts("#stage-body .found")
    assert found and all(expected in text for text in found)
    assert browser.one("#hits").text == f"{len(found)} found"
    field.send_keys("\n")
    assert browser.one("#hits").text == f"1 of {len(found)}"
    assert len(selected(browser, "#stage-body")) == 1
    field.send_keys("nothing like it")
    assert browser.one("#hits").text == "0 found" and not browser.all("#stage-body .found")


def test_a_module_folds_and_unfolds(browser: Browser, gpt: Path) -> None:
    browser.open(gpt)
    before = browser.texts("#graph .node .op")
    assert not browser.all("#graph .node.group[data-label='blocks.0']")
    browser.click("#graph .cluster[data-scope='blocks.0'] .fold")
    folded = browser.texts("#graph .node .op")
    assert "blocks.0" in folded and len(folded) < len(before)
    browser.click("#graph .node.group[data-label='blocks.0'] .fold")
    assert sorted(browser.texts("#graph .node .op")) == sorted(before)
    browser.click("#graph .canvas-head button", "fold")
    assert browser.texts("#graph .node.group .op")[0] == "GPT"


def test_the_stages_fold_by_scope_too(browser: Browser, gpt: Path) -> None:
    browser.open(gpt)
    before = len(browser.all("#stage-body .line"))
    browser.click("#fold")
    assert len(browser.all("#stage-body .line")) < before / 4
    browser.click("#stage-body .scope[data-scope=GPT]")
    browser.click("#stage-body .scope[data-scope='blocks.0']")
    assert any("attn" in text for text in browser.texts("#stage-body .scope"))
    browser.click("#fold")
    assert len(browser.all("#stage-body .line")) == before
    assert browser.errors() == []


def test_gradient_and_forward_stand_side_by_side_and_mark_each_other(
    browser: Browser, gpt: Path
) -> None:
    browser.open(gpt)
    browser.click("[data-mode=both]")
    assert len(browser.all("#graph svg[data-program]")) == 2
    browser.click("#stage-body .line", "erfc")
    assert browser.all("svg[data-program='0'] .node.selected")
    assert browser.all("svg[data-program='1'] .node.related")


def test_the_body_of_a_loop_unfolds_and_belongs_to_its_instruction(
    browser: Browser, tmp_path: Path
) -> None:
    def total(xs: Any) -> Any:
        return lucid.func.scan(lambda c, x: (c + lucid.sin(x), c), lucid.tensor(0.0), xs)[0]

    browser.open(lucid.view(total, lucid.ones(5), path=tmp_path / "scan.html").path)
    browser.click("#stage-body .line", "sin")
    assert browser.texts("#graph .selected .op")[0] in ("sin", "scan")
    browser.click("[data-tab=kernels]")
    assert any("scan" in text for text in selected(browser, "#instruction-list"))
    assert browser.errors() == []


def test_hovering_marks_the_same_thing_elsewhere(browser: Browser, gpt: Path) -> None:
    from selenium.webdriver import ActionChains

    browser.open(gpt)
    ActionChains(browser.driver).move_to_element(browser.one("#stage-body .line")).perform()
    assert browser.all("#graph .hover") and browser.all("#source .hover")


def test_the_graph_zooms_and_moves(browser: Browser, gpt: Path) -> None:
    from selenium.webdriver import ActionChains

    browser.open(gpt)
    place = "return document.querySelector('#graph svg > g').getAttribute('transform')"
    before = browser.run(place)
    browser.click("#graph .canvas-head button", "+")
    zoomed = browser.run(place)
    svg = browser.one("#graph svg")
    ActionChains(browser.driver).drag_and_drop_by_offset(svg, 60, 40).perform()
    assert before != zoomed != browser.run(place)
    browser.click("#graph .canvas-head button", "fit")
    assert browser.run(place) == before


def test_a_training_step_of_two_thousand_equations_loads_in_three_seconds(
    browser: Browser, tmp_path: Path
) -> None:
    step, args = training_step_of_gpt(7)
    page = lucid.view(step, *args, path=tmp_path / "step.html")
    seconds = browser.open(page.path)
    equations = browser.run("return window.lucid.program.traced.rows.length")
    assert equations >= 2000 and seconds < 3.0
    assert page.path.stat().st_size < 1 << 20
    browser.click("[data-stage=cse]")
    browser.click("[data-tab=kernels]")
    browser.click("[data-tab=memory]")
    assert browser.errors() == []


HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def test_nothing_of_a_program_becomes_html(browser: Browser, tmp_path: Path) -> None:
    class Layer(lucid.nn.Module):
        def forward(self, x: Any) -> Any:
            with lucid.named_scope(HOSTILE):
                return x * 2.0  # </script><script>window.hacked = 3</script>

    Layer.__name__ = HOSTILE
    layer = Layer()

    def f(x: Any) -> Any:
        return layer(x[HOSTILE])

    f.__name__ = HOSTILE
    page = lucid.view(f, {HOSTILE: lucid.ones(3)}, path=tmp_path / "page.html")
    text = page.path.read_text()
    assert "window.hacked" not in text
    browser.open(page.path)
    browser.click("#stage-body .line")
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert any(HOSTILE in text for text in browser.texts("#graph text"))
    assert any("window.hacked = 3" in text for text in browser.texts("#source .line"))
    assert browser.errors() == []


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_narrow_screen_one_pane_is_shown_at_a_time(
    browser: Browser, gpt: Path, dark: bool
) -> None:
    browser.open(gpt, 640, 900, dark)
    shown = """return [...document.querySelectorAll('.pane')]
        .filter(e => getComputedStyle(e).visibility === 'visible').map(e => e.id)"""
    assert browser.run(shown) == ["graph"]
    browser.click("[data-narrow=memory]")
    assert browser.run(shown) == ["details"]
    assert browser.one("#memory-body").is_displayed()
    wide = "return document.documentElement.scrollWidth"
    assert browser.run(wide) <= 640
    back = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (int(back[4:].split(",")[0]) < 60) is dark
