const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }
const [COLUMNS, WIDTH, HEIGHT] = [2, 12, 8]

/** Series, and the label of each, from which a variable takes its values. */
export const VARIABLES = {
  namespace: ['tutti_server_ready', 'namespace'],
  ensemble: ['tutti_step_compute_seconds_count{namespace=~"$namespace", ensemble!=""}', 'ensemble'],
  model: ['nv_inference_request_success{namespace=~"$namespace"}', 'model'],
  router: ['tutti_members{namespace=~"$namespace", role="step"}', 'pod'],
  job: ['leader_election_master_status', 'job'],
}

/**
 * A dashboard of Grafana from its description.
 *
 * @param {{ file: string, title: string, variables: readonly (keyof typeof VARIABLES)[], panels: readonly {
 *   title: string, unit: string, hint: string, queries: readonly (readonly [expr: string, legend: string])[] }[] }} o -
 *   `hint`: what to look for. `$in` in a query is the selector of the namespaces that are looked at.
 */
export function buildDashboard({ file, title, variables, panels }) {
  return {
    title,
    uid: file === 'tutti' ? 'tutti' : `tutti-${file}`,
    tags: ['tutti'],
    schemaVersion: 39,
    editable: true,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    links: [{ type: 'dashboards', title: 'Tutti', tags: ['tutti'], keepTime: true, asDropdown: true }],
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }, ...variables.map(buildVariable)],
    },
    panels: panels.map(buildPanel),
  }
}

function buildVariable(name) {
  const [series, label] = VARIABLES[name]
  return {
    name,
    type: 'query',
    datasource: DATASOURCE,
    query: `label_values(${series}, ${label})`,
    refresh: 2,
    sort: 1,
    includeAll: true,
    allValue: '.*',
    multi: true,
    current: { text: ['All'], value: ['$__all'] },
  }
}

function buildPanel({ title, unit, hint, queries }, i) {
  return {
    id: i + 1,
    type: 'timeseries',
    title,
    description: hint,
    datasource: DATASOURCE,
    gridPos: { h: HEIGHT, w: WIDTH, x: (i % COLUMNS) * WIDTH, y: Math.floor(i / COLUMNS) * HEIGHT },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], at) => ({
      refId: String.fromCodePoint('A'.codePointAt(0) + at),
      expr: expr.replaceAll('$in', 'namespace=~"$namespace"'),
      legendFormat,
      // The traces of single requests, where buckets name them.
      ...(/^histogram_quantile\(.*\btutti_step_/.test(expr) && { exemplar: true }),
    })),
  }
}
