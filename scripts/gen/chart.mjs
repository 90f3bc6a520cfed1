// Writes what is generated of charts/tutti: its copy of the CRDs, the model of `helm test`, and the table of values in its README.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, parseDocument } from 'yaml'
import { renderTable } from './table.mjs'

const BEGIN = '<!-- values: generated from values.yaml -->'
const END = '<!-- end of values -->'

/** @param root - of the checkout. */
export function writeChartFiles(root) {
  const chart = join(root, 'charts', 'tutti')
  copyCrds(join(root, 'crds'), join(chart, 'files', 'crds'))
  const model = join(root, 'model_repository', '.variants', 'fixtures', 'basic', 'add_one')
  const archive = buildTar([
    ['config.pbtxt', Buffer.from(TEST_CONFIG)],
    ['1/model.onnx', readFileSync(join(model, '1', 'model.onnx'))],
  ])
  writeFileSync(join(chart, 'files', 'test', 'add-one.tar'), archive)
  const readme = join(chart, 'README.md')
  const values = readFileSync(join(chart, 'values.yaml'), 'utf8')
  writeFileSync(readme, withTable(readFileSync(readme, 'utf8'), describeValues(values)))
}

function copyCrds(from, to) {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from).toSorted()) {
    writeFileSync(join(to, name), readFileSync(join(from, name)))
  }
}

/** Without it the first dimension would be taken for a batch. */
const TEST_CONFIG = `platform: "onnxruntime_onnx"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
`

/** An archive (ustar) of files, with the same bytes wherever it is made. */
function buildTar(files) {
  return Buffer.concat([...files.flatMap(([name, bytes]) => tarEntry(name, bytes)), Buffer.alloc(1024)])
}

function tarEntry(name, bytes) {
  const header = Buffer.alloc(512)
  const octal = (value, digits) => value.toString(8).padStart(digits, '0')
  // name, mode, owner, group, size, time of change, checksum as blanks, type, magic
  header.write(name, 0)
  header.write(`${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100)
  header.write(`${octal(bytes.length, 11)} ${octal(0, 11)} ${' '.repeat(8)}0`, 124)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 6)}\0 `, 148)
  const padding = Buffer.alloc((512 - (bytes.length % 512)) % 512)
  return [header, bytes, padding]
}

/**
 * The values of a chart: what stands below a comment that begins with `--`.
 *
 * @param {string} text - of values.yaml.
 * @returns {{key: string, value: unknown, description: string}[]} in the order of the file.
 * @throws Error for a value that no comment describes.
 */
export function describeValues(text) {
  const rows = []
  const visit = (map, path) => {
    for (const [index, pair] of map.items.entries()) {
      const key = [...path, pair.key.value].join('.')
      // The comment above the first key of a map belongs to the map.
      const comment = (index === 0 && path.length > 0 ? map.commentBefore : pair.key.commentBefore) ?? ''
      const description = /(?:^|\n) -- ([\s\S]+)$/.exec(comment)?.[1]
      if (description !== undefined) {
        rows.push({ key, value: pair.value.toJSON(), description: description.replace(/\n\s*/g, ' ') })
      } else if (isMap(pair.value) && pair.value.items.length > 0) {
        visit(pair.value, [...path, pair.key.value])
      } else {
        throw new Error(`values.yaml: ${key} has no description`)
      }
    }
  }
  visit(parseDocument(text).contents, [])
  return rows
}

function withTable(readme, rows) {
  const [before, rest] = readme.split(BEGIN)
  const after = rest?.split(END)[1]
  if (after === undefined) throw new Error(`README.md of the chart: want ${BEGIN} and ${END}`)
  const cells = [
    ['value', 'default', 'what it is'],
    ...rows.map(({ key, value, description }) => [`\`${key}\``, toCode(value), description]),
  ]
  return `${before}${BEGIN}\n\n${renderTable(cells)}\n\n${END}${after}`
}

function toCode(value) {
  return `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``
}
