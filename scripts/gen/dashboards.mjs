// Writes the dashboards of the chart, charts/tutti/files/dashboards, from their descriptions in dashboards/.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildDashboard } from './dashboards/build-dashboard.mjs'
import { ENSEMBLE } from './dashboards/ensemble.mjs'
import { MODEL } from './dashboards/model.mjs'
import { NATS } from './dashboards/nats.mjs'
import { OPERATOR } from './dashboards/operator.mjs'
import { OVERVIEW } from './dashboards/overview.mjs'
import { ROUTER } from './dashboards/router.mjs'

const DASHBOARDS = [OVERVIEW, ENSEMBLE, MODEL, ROUTER, NATS, OPERATOR]

/** @param root - of the checkout. */
export function writeDashboards(root) {
  const folder = join(root, 'charts', 'tutti', 'files', 'dashboards')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const description of DASHBOARDS) {
    const text = toText(buildDashboard(description))
    writeFileSync(join(folder, `${description.file}.json`), text)
  }
}

/** JSON with a line for each panel: a change of one shows as one line. */
function toText({ panels, ...rest }) {
  const head = JSON.stringify(rest).slice(0, -1)
  return `${head},"panels":[\n${panels.map((panel) => JSON.stringify(panel)).join(',\n')}\n]}\n`
}
