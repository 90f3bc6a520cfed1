import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CHART } from '../chart/helm.ts'

export const FOLDER = join(CHART, 'files', 'dashboards')

/** A query of a panel. */
export interface Query {
  readonly expr: string
  readonly legendFormat: string
  /** Whether Grafana shows the traces that buckets name. */
  readonly exemplar?: boolean
}

interface Panel {
  readonly title: string
  readonly description: string
  readonly fieldConfig: { readonly defaults: { readonly unit: string } }
  readonly targets: readonly Query[]
}

interface Variable {
  readonly name: string
  readonly query: string
  readonly allValue?: string
}

/** Parts of a dashboard of the chart that tests read. */
export interface Dashboard {
  readonly file: string
  readonly title: string
  readonly uid: string
  readonly templating: { readonly list: readonly Variable[] }
  readonly panels: readonly Panel[]
}

/** All of the chart, by their files. */
export const DASHBOARDS: readonly Dashboard[] = readdirSync(FOLDER)
  .toSorted()
  .map((file) => ({ file, ...JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) }))

function dashboardOf(file: string): Dashboard {
  const found = DASHBOARDS.find((one) => one.file === file)
  if (found === undefined) throw new Error(`there is no dashboard ${file}`)
  return found
}

/** The expression as Grafana sends it with `All` in each variable. */
export function fillVariables(file: string, expr: string): string {
  const filled = dashboardOf(file).templating.list.reduce(
    (text, { name, allValue }) => (allValue ? text.replaceAll(`$${name}`, allValue) : text),
    expr,
  )
  if (filled.includes('$')) throw new Error(`${filled}: not a variable of the dashboard`)
  return filled
}

/** The queries of a panel. @throws Error if there is none. */
export function panelQueries(file: string, title: string): readonly Query[] {
  const found = dashboardOf(file).panels.find((panel) => panel.title === title)
  if (found === undefined) throw new Error(`${file} has no panel ${title}`)
  return found.targets
}
