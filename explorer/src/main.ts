/** The page: the state is in the address, every change computes the view once and draws all of it. */

import { api } from "./api";
import { element, listenToControls, showControls } from "./controls";
import { readData } from "./data";
import { inIdleTime } from "./idle";
import { damage, emptyDamage, emptyProfile, profile, type Setting } from "./live";
import { parseNoise } from "./noise";
import { fromAddress, toAddress, type State } from "./state";
import "./style.css";
import { listenToTheme } from "./theme";
import { computeView, shownTo, zooSubject, type Subject, type View } from "./view";
import { drawContext } from "./views/context";
import { listenToFile, type OwnModel } from "./views/file";
import { buildSwitches, drawDamage, drawMatrices, drawSwitches } from "./views/omegas";
import { drawPath } from "./views/path";
import { drawProfile, levelsOf } from "./views/profile";
import { drawTable, listenToTable } from "./views/table";
import { drawTiles } from "./views/tiles";

const PROFILE_SEQUENCES = 400;
const DAMAGE_SEQUENCES = 512;
const SINGLE_SEQUENCES = 256;
const ADDRESS = 80; // milliseconds after which the address follows the state
const REDRAW = 120; // milliseconds between drawings of what is being measured

const data = readData();
let state: State = fromAddress(location.hash, data);
let own: OwnModel | null = null;
let view: View;
let drawn: { model?: Subject["model"]; table?: string; measured?: string } = {};
let stop: (() => void)[] = [];

const svg = (id: string) => element<SVGElement>(id);

function subject(): Subject {
  if (!own) return zooSubject(state, data);
  const noiseText = own.noise || state.noise;
  const curves = own.model.dim === 10 && own.model.context === 20 ? (data.curves[noiseText] ?? null) : null;
  return { name: own.name, model: own.model, noiseText, noise: parseNoise(noiseText), card: null, curves };
}

/** Compute and draw everything for the present state. */
function draw(): void {
  view = computeView(state, subject());
  showControls(view, data, own?.name ?? null);
  drawTiles(element("tiles"), element("status"), view, data);
  drawContext(svg("scatter"), svg("steps"), view);
  drawPath(svg("plane"), svg("distance"), view);
  if (drawn.model !== view.subject.model) {
    buildSwitches(element("omegas"), view.subject.model, toggle);
    drawMatrices(element("matrices"), view.subject.model);
    drawn.model = view.subject.model;
  }
  const table = JSON.stringify([state.shade, own ? "" : view.subject.name]);
  if (drawn.table !== table) {
    drawTable(element("table"), data, state);
    drawn.table = table;
  }
  measure();
}

let live = emptyProfile([]);
let broken = emptyDamage();

/** Measure losses anew, where what they depend on has changed. */
function measure(): void {
  const depends = JSON.stringify([view.subject.name, state.count, state.rescaled, state.off]);
  if (drawn.measured !== depends) {
    drawn.measured = depends;
    for (const halt of stop) halt();
    const { model, noise, curves } = view.subject;
    const rescaled = state.rescaled;
    const setting: Setting = {
      model,
      noise,
      tuning: curves?.tuned,
      count: state.count,
      off: new Set(state.off),
      shownTo: (stats) => shownTo(model, stats, rescaled),
    };
    live = emptyProfile(levelsOf(view));
    broken = emptyDamage();
    stop = [
      inIdleTime(watched(profile(setting, live.levels, PROFILE_SEQUENCES, live))),
      inIdleTime(watched(damage(setting, DAMAGE_SEQUENCES, SINGLE_SEQUENCES, broken))),
    ];
  }
  drawMeasured();
}

function drawMeasured(): void {
  drawProfile(svg("profile"), element("profile-note"), view, live);
  drawSwitches(element("omegas"), view, broken);
  drawDamage(svg("damage"), element("damage-note"), view, broken);
}

/** The same work, drawn now and then. */
function* watched(work: Generator<void, void>): Generator<void, void> {
  let last = performance.now();
  while (!work.next().done) {
    if (performance.now() - last > REDRAW) {
      drawMeasured();
      last = performance.now();
    }
    yield;
  }
  drawMeasured();
}

/** Take over a change. */
function change(wanted: Partial<State>): void {
  if ("family" in wanted) own = null;
  state = { ...state, ...wanted };
  writeAddress();
  draw();
}

let writing: ReturnType<typeof setTimeout> | undefined;

/** Put the state into the address, soon: browsers refuse to do it at every step of a slider. */
function writeAddress(): void {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", `#${toAddress(state)}`), ADDRESS);
}

function toggle(flow: string): void {
  const off = state.off.includes(flow) ? state.off.filter((other) => other !== flow) : [...state.off, flow];
  change({ off });
}

function openModel(name: string): void {
  const { family, layers, noise, heads } = data.models[name];
  history.pushState(null, "", location.hash); // so that there is a way back
  change({ family, layers, noise, heads, after: layers, off: [] });
}

function openOwn(model: OwnModel | null): void {
  own = model;
  state = { ...state, after: model ? model.model.layers : state.layers, off: [] };
  draw();
}

function start(): void {
  window.lintra = api(data, () => live);
  if (Object.keys(data.models).length === 0) {
    element("tiles").textContent = "This page has no models in it. Make one that has with: lintra explore";
    return;
  }
  listenToTheme();
  listenToControls(data, () => state, change);
  listenToTable(element("table"), openModel);
  listenToFile(openOwn);
  element("restore").addEventListener("click", () => change({ off: [] }));
  element("skip").addEventListener("click", (event) => {
    event.preventDefault();
    element("views").focus();
  });
  element("share").addEventListener("click", async () => {
    history.replaceState(null, "", `#${toAddress(state)}`);
    await navigator.clipboard.writeText(location.href).catch(() => prompt("The address of this view:", location.href));
    element("status").textContent = "The address of this view is copied.";
  });
  window.addEventListener("popstate", () => {
    clearTimeout(writing);
    own = null;
    state = fromAddress(location.hash, data);
    draw();
  });
  history.replaceState(null, "", `#${toAddress(state)}`);
  draw();
  performance.mark("lintra-first-view");
}

start();
