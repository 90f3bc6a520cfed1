// Writes docs/compatibility.md and docs/compatibility-names.md from the tables in scripts/gen/compatibility, a file for each group, and
// docs/start-lines.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ENGINES, modelsOf } from '../../services/backends/src/descriptors.ts'

const START_LINES = join('services', 'cli', 'src', 'serve', 'testing', 'start-lines.yaml')
const FOLDER = join('scripts', 'gen', 'compatibility')
/** The files of the tables, in the order of the pages. */
const GROUPS = [
  'repositories',
  'configuration',
  'batching',
  'ensembles',
  'sequences',
  'cache-and-limiter',
  'requests',
  'shared-memory',
  'listeners',
  'logs-traces-metrics',
  'python',
  'backends',
]
/** Kinds of names of Triton, and how a page calls them. */
const KINDS = {
  rpc: 'gRPC',
  rest: 'REST',
  parameter: 'parameters',
  field: 'fields',
  metric: 'metrics',
  flag: 'flags',
  pb_utils: 'pb_utils',
  backend: 'backends',
}
/** Words of the tables that stand for the engines of the list. */
const LISTED = {
  MODELS: modelsOf(() => true),
  ENGINES: ENGINES.map(({ backend }) => backend)
    .toSorted()
    .join(' '),
}
/** The members that a row has beside its names, for each answer. */
const MEMBERS = {
  same: { needs: [], may: ['notes'] },
  better: { needs: ['notes'], may: [] },
  different: { needs: ['triton', 'tutti'], may: ['why'] },
  'not here': { needs: ['notes'], may: [] },
}

/**
 * @param {string} root - of the checkout.
 * @throws Error for a row that is not complete, and for a test that is not there.
 */
export function writeCompatibility(root) {
  const groups = readCompatibility(root)
  writeFileSync(join(root, 'docs', 'compatibility.md'), renderPage(groups))
  writeFileSync(join(root, 'docs', 'compatibility-names.md'), renderNames(groups))
  const startLines = parse(readFileSync(join(root, START_LINES), 'utf8'))
  writeFileSync(join(root, 'docs', 'start-lines.md'), renderStartLines(startLines))
}

/**
 * The groups, each with its title and rows. A row has `names`, the names of each kind written out.
 *
 * @throws as `writeCompatibility`.
 */
export function readCompatibility(root) {
  return GROUPS.map((group) => {
    const file = join(FOLDER, `${group}.yaml`)
    const text = readFileSync(join(root, file), 'utf8')
    const listed = text.replace(/(?<=: )(MODELS|ENGINES)$/gm, (word) => LISTED[word])
    const { title, rows } = parse(listed)
    return { title, rows: rows.map((row) => readRow(root, `${file}: ${row.what}`, row)) }
  })
}

/**
 * @param {string} place - in messages.
 * @throws as `writeCompatibility`.
 */
export function readRow(root, place, row) {
  const members = MEMBERS[row.answer]
  if (members === undefined) {
    throw new Error(`${place}: got answer ${row.answer}, want ${Object.keys(MEMBERS).join(', ')}`)
  }
  const lacking = ['what', ...members.needs, 'tests'].find((key) => !row[key])
  if (lacking !== undefined) throw new Error(`${place}: has no ${lacking}`)
  const known = ['what', 'answer', 'tests', ...members.needs, ...members.may, ...Object.keys(KINDS)]
  const unknown = Object.keys(row).find((key) => !known.includes(key))
  if (unknown !== undefined) throw new Error(`${place}: ${row.answer} with ${unknown}`)
  const tests = Object.entries(row.tests).flatMap(([file, titles]) =>
    [titles].flat().map((title) => [file, title]),
  )
  checkTests(root, place, tests)
  const kinds = Object.keys(KINDS).filter((kind) => kind in row)
  const names = Object.fromEntries(kinds.map((kind) => [kind, expandNames(row[kind])]))
  return { ...row, names, tests }
}

function checkTests(root, place, tests) {
  for (const [file, title] of tests) {
    const path = join(root, file)
    if (!existsSync(path)) throw new Error(`${place}: there is no ${file}`)
    if (!readFileSync(path, 'utf8').includes(title)) {
      throw new Error(`${place}: ${file} has no test "${title}"`)
    }
  }
}

/** `a.{b,c} d` -> a.b, a.c, d. */
function expandNames(text) {
  return text.trim().split(/\s+/).flatMap(expand)
}

function expand(word) {
  const [, before, list, after] = /^([^{]*){([^}]*)}(.*)$/.exec(word) ?? []
  if (list === undefined) return [word]
  return list.split(',').flatMap((part) => expand(`${before}${part}${after}`))
}

function renderPage(groups) {
  const sections = groups.map(({ title, rows }) => {
    const cells = rows
      .filter(({ answer }) => answer !== 'different')
      .map(({ what, answer, notes = '' }) => [what, answer, notes])
    if (cells.length === 0) return ''
    return `## ${title}\n\n${renderTable([['what', 'here', 'notes'], ...cells])}\n`
  })
  const differences = groups.map(({ title, rows }) => {
    const cells = rows
      .filter(({ answer }) => answer === 'different')
      .map(({ what, triton, tutti, why = '' }) => [what, triton, tutti, why])
    if (cells.length === 0) return ''
    return `### ${title}\n\n${renderTable([['what', 'Triton', 'Tutti', 'why'], ...cells])}\n`
  })
  return `# Compatibility with Triton

After reading this page you can tell whether your Triton clients, models and start lines work with Tutti, and where they behave
differently.

Replace the word \`tritonserver\` in your start line by \`tutti serve\` ([how to run it](quick-start.md)). What this page calls "same" works unchanged, "better" does too. What
is "not here" gives an error that names it, or the log says what happens instead. [Differences on purpose](#differences-on-purpose) are at the end.
[Names](compatibility-names.md) lists every call, path, field, parameter, flag, metric and member of \`pb_utils\`, and the
tests that hold it.

Behaviour follows Triton's sources of 2026 and, where the two differ, a running Triton 2.51. Recorded answers of a Triton 2.51 are part of the [tests](../e2e/src/triton-parity). [Published start lines](start-lines.md) have been tried.
\`npm run gen\` writes this page from [tables](../scripts/gen/compatibility).

${sections.filter((text) => text !== '').join('\n')}
## Differences on purpose

${differences.filter((text) => text !== '').join('\n')}`
}

function renderNames(groups) {
  const sections = groups.map(({ title, rows }) => {
    const cells = rows.map((row) => [row.what, row.answer, renderRowNames(row), renderTests(row)])
    return `## ${title}\n\n${renderTable([['what', 'here', 'names', 'held by'], ...cells])}\n`
  })
  return `# Names of Triton

After reading this page you can find a call, path, parameter, field, flag, metric or member of \`pb_utils\`, whether it is here, and which test
holds it. [Compatibility](compatibility.md) says how each row behaves.

\`npm run gen\` writes this page from [tables](../scripts/gen/compatibility). \`a.{b,c}\` stands for \`a.b\` and \`a.c\`.

${sections.join('\n')}`
}

/** Not aligned: a change of a row is one of its line alone, so that changes of several rows merge. */
function renderTable(rows) {
  const [head, ...body] = rows.map((cells) => `| ${cells.join(' | ')} |`)
  return [head, `|${' - |'.repeat(rows[0].length)}`, ...body].join('\n')
}

function renderRowNames(row) {
  const parts = Object.entries(KINDS).filter(([kind]) => kind in row)
  const words = parts.map(([kind, called]) => {
    const names = row[kind].trim().split(/\s+/)
    const written = kind === 'flag' ? names.map((name) => `--${name}`) : names
    return `${called}: ${written.map((name) => `\`${name}\``).join(' ')}`
  })
  return words.join('; ')
}

function renderTests({ tests }) {
  return tests.map(([file, title]) => `[${title.replaceAll('|', '\\|')}](../${file})`).join(', ')
}

function renderStartLines({ lines, configs }) {
  const cells = (list, column) =>
    list.map((one) => {
      const [, place] = /^https:\/\/(?:github\.com\/)?(.*)$/.exec(one.source)
      const here = one.missing === undefined ? 'serves' : `missing: ${one.missing}`
      return [`\`${column(one).replaceAll('|', '\\|')}\``, here, `[${place}](${one.source})`]
    })
  return `# Published start lines

After reading this page you can tell whether a start line or a configuration like yours has been tried. Others have published those below; a
[test](../services/cli/src/serve/start-lines.test.ts) starts each one, with models of its own.

\`npm run gen\` writes this page from a [table](../services/cli/src/serve/testing/start-lines.yaml). Flags without effect are logged with what happens instead
([their table](../services/cli/README.md)).

## Start lines

${renderTable([['tritonserver ...', 'here', 'source'], ...cells(lines, ({ flags }) => flags)])}

## Configurations

${renderTable([['model', 'here', 'source'], ...cells(configs, ({ name }) => name)])}
`
}
