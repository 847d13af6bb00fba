/** The page: the state is in the address, every change computes the view once and draws all of it. */

import { api } from "./api";
import { element, listenToControls, showControls } from "./controls";
import { readData } from "./data";
import { inIdleTime } from "./idle";
import { measureAblation, emptyAblation, emptyProfile, profile, type Setting } from "./live";
import { parseNoise } from "./noise";
import { fromAddress, toAddress, type State } from "./state";
import "./style.css";
import { listenToTheme } from "./theme";
import { computeView, modelStatistics, zooSubject, type Subject, type View } from "./view";
import { drawContext } from "./views/context";
import { drawDamping } from "./views/damping";
import { listenToFile, type FileModel } from "./views/file";
import { buildSwitches, drawAblation, drawMatrices, drawSwitches } from "./views/omegas";
import { drawPath } from "./views/path";
import { drawProfile, noiseStdsOf } from "./views/profile";
import { drawTable, listenToTable } from "./views/table";
import { drawTiles } from "./views/tiles";

const PROFILE_SEQUENCES = 400;
const ABLATION_SEQUENCES = 512;
const SINGLE_SEQUENCES = 256;
const ADDRESS_MS = 80; // delay after which the address follows the state
const REDRAW_MS = 120; // between drawings of losses that are being measured

const data = readData();
let state: State = fromAddress(location.hash, data);
let fileModel: FileModel | null = null;
let view: View;
let drawn: { model?: Subject["model"]; table?: string; measured?: string; measuredModel?: Subject["model"] } = {};
let stop: (() => void)[] = [];

const svg = (id: string) => element<SVGElement>(id);

function subject(): Subject {
  if (!fileModel) return zooSubject(state, data);
  const noiseText = fileModel.noise || state.noise;
  const curves = fileModel.model.dim === 10 && fileModel.model.context === 20 ? (data.curves[noiseText] ?? null) : null;
  return { name: fileModel.name, model: fileModel.model, noiseText, noise: parseNoise(noiseText), card: null, curves };
}

/** Compute and draw everything for the present state. */
function draw(): void {
  view = computeView(state, subject());
  showControls(view, data, fileModel?.name ?? null);
  drawTiles(element("tiles"), element("status"), view, data);
  drawDamping(element("damping"), view);
  drawContext(svg("scatter"), svg("steps"), view);
  drawPath(svg("plane"), svg("distance"), view);
  if (drawn.model !== view.subject.model) {
    buildSwitches(element("omegas"), view.subject.model, toggle);
    drawMatrices(element("matrices"), view.subject.model);
    drawn.model = view.subject.model;
  }
  const table = JSON.stringify([state.shade, fileModel ? "" : view.subject.name]);
  if (drawn.table !== table) {
    drawTable(element("table"), data, state);
    drawn.table = table;
  }
  measure();
}

let live = emptyProfile([]);
let ablation = emptyAblation();

/** Measure losses again if something that they depend on has changed. */
function measure(): void {
  const dependencies = JSON.stringify([view.subject.noiseText, state.numExamples, state.rescaled, state.damped, state.disabled]);
  if (drawn.measured !== dependencies || drawn.measuredModel !== view.subject.model) {
    drawn.measured = dependencies;
    drawn.measuredModel = view.subject.model; // files of one name may hold several models
    for (const stopOne of stop) stopOne();
    const { model, noise, curves } = view.subject;
    const rescaled = state.rescaled;
    const setting: Setting = {
      model,
      noise,
      tuning: curves?.tuned,
      numExamples: state.numExamples,
      damping: view.damping,
      disabled: new Set(state.disabled),
      modelStatistics: (stats) => modelStatistics(model, stats, rescaled),
    };
    live = emptyProfile(noiseStdsOf(view));
    ablation = emptyAblation();
    stop = [
      inIdleTime(redrawn(profile(setting, live.noiseStds, PROFILE_SEQUENCES, live))),
      inIdleTime(redrawn(measureAblation(setting, ABLATION_SEQUENCES, SINGLE_SEQUENCES, ablation))),
    ];
  }
  drawMeasured();
}

function drawMeasured(): void {
  drawProfile(svg("profile"), element("profile-note"), view, live);
  drawSwitches(element("omegas"), view, ablation);
  drawAblation(svg("ablation"), element("ablation-note"), view, ablation);
}

/** The same work, drawn at intervals. */
function* redrawn(work: Generator<void, void>): Generator<void, void> {
  let last = performance.now();
  while (!work.next().done) {
    if (performance.now() - last > REDRAW_MS) {
      drawMeasured();
      last = performance.now();
    }
    yield;
  }
  drawMeasured();
}

/** Apply changes of the state. */
function change(changes: Partial<State>): void {
  if ("family" in changes) fileModel = null;
  state = { ...state, ...changes };
  writeAddress();
  draw();
}

let writing: ReturnType<typeof setTimeout> | undefined;

/** Write the state to the address after a delay: browsers reject it at each step of a slider. */
function writeAddress(): void {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", `#${toAddress(state)}`), ADDRESS_MS);
}

function toggle(name: string): void {
  const disabled = state.disabled.includes(name) ? state.disabled.filter((other) => other !== name) : [...state.disabled, name];
  change({ disabled });
}

function openModel(name: string): void {
  const { family, layers, noise, heads } = data.models[name];
  history.pushState(null, "", location.hash); // so that the browser can go back
  change({ family, layers, noise, heads, layer: layers, disabled: [] });
}

function openFile(model: FileModel | null): void {
  fileModel = model;
  state = { ...state, layer: model ? model.model.layers : state.layers, disabled: [] };
  draw();
}

function start(): void {
  window.lintra = api(data, () => live, () => view);
  if (Object.keys(data.models).length === 0) {
    element("tiles").textContent = "This page has no models in it. Make one that has with: lintra explore";
    return;
  }
  listenToTheme();
  listenToControls(data, () => state, change);
  listenToTable(element("table"), openModel);
  listenToFile(openFile);
  element("restore").addEventListener("click", () => change({ disabled: [] }));
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
    fileModel = null;
    state = fromAddress(location.hash, data);
    draw();
  });
  history.replaceState(null, "", `#${toAddress(state)}`);
  draw();
  performance.mark("lintra-first-view");
}

start();
