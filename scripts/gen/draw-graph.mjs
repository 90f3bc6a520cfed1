import { placeGraph, toPath } from '../../services/console/dist/page/graph-layout.js'

const STYLE = `text{font:13px system-ui,sans-serif;text-anchor:middle;fill:#1f2328}.type{font-size:11px;fill:#59636e}
.box{fill:#f6f8fa;stroke:#57606a}.tensor{fill:#ddf4ff;stroke:#0969da}.line{fill:none;stroke:#57606a}.call{stroke-dasharray:4 3}.back{fill:#fff}.tip{fill:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.type{fill:#9198a1}.box{fill:#151b23;stroke:#9198a1}.tensor{fill:#121d2f;stroke:#4493f8}.line{stroke:#9198a1}.back{fill:#0d1117}.tip{fill:#9198a1}}`

/**
 * A graph as a picture, from its inputs above to its outputs below.
 *
 * @param graph - `name`, `inputs`, `outputs` and `tensors` (name, datatype and shape, or a `note`), and `steps` (name, model, inputs and outputs:
 *   name and tensor). A tensor whose name begins with `calls ` is a call of a model: its line is dashed.
 * @returns the text of an SVG, the same for the same graph.
 */
export function drawGraph({ name, inputs, outputs, tensors, steps }) {
  const placed = placeGraph({ steps, tensors }, { inputs, outputs })
  const types = new Map(
    tensors.map((one) => [one.name, one.note ?? `${one.datatype} [${one.shape}]`]),
  )
  const [width, height] = [Math.ceil(placed.width), Math.ceil(placed.height)]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escape(name)}</title>`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8Z"/></marker></defs>',
    ...placed.edges.map((edge) => drawEdge(edge, types)),
    ...placed.nodes.map((node) => drawNode(node, steps, types)),
    '</svg>',
    '',
  ].join('\n')
}

function drawEdge({ tensor, points, label }, types) {
  const isCall = tensor.startsWith('calls ')
  const line = `<path class="line${isCall ? ' call' : ''}" d="${toPath(points)}" marker-end="url(#tip)"/>`
  if (label === undefined) return line
  const [first, second] = isCall ? ['calls', ''] : [tensor, types.get(tensor) ?? '']
  const width = Math.max(first.length, second.length) * 7.4
  const back = `<rect class="back" x="${round(label.x - width / 2)}" y="${round(label.y - 16)}" width="${round(width)}" height="32"/>`
  return line + back + write(label.x, label.y - 3, first) + write(label.x, label.y + 11, second, 'type')
}

function drawNode({ kind, step, label, x, y, width, height }, steps, types) {
  const isStep = kind === 'step'
  const below = isStep ? steps[step].model : types.get(label)
  const box = `<rect class="${isStep ? 'box' : 'tensor'}" x="${round(x)}" y="${round(y)}" width="${width}" height="${height}" rx="${isStep ? 8 : height / 2}"/>`
  const middle = [x + width / 2, y + height / 2]
  return box + write(middle[0], middle[1] - 3, label) + write(middle[0], middle[1] + 13, below, 'type')
}

function write(x, y, text, kind) {
  if (text === '') return ''
  return `<text${kind === undefined ? '' : ` class="${kind}"`} x="${round(x)}" y="${round(y)}">${escape(text)}</text>`
}

function round(value) {
  return Number(value.toFixed(1))
}

function escape(text) {
  return text.replace(/[&<>]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[one])
}
