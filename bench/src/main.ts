import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import { benchCompare } from './compare.ts'
import { benchConsole } from './console.ts'
import { benchEdges } from './edges.ts'
import { benchEnsemble } from './ensemble.ts'
import { benchFraming } from './framing.ts'
import { benchGrowth } from './growth.ts'
import { findLosses, type History, type Ratios, record } from './history.ts'
import { benchIdle } from './idle.ts'
import { benchInterpreters } from './interpreters.ts'
import { benchItems } from './items.ts'
import { benchMemory } from './memory.ts'
import { benchOperator } from './operator.ts'
import { benchProcesses } from './processes.ts'
import { benchPythonEngine } from './python.ts'
import { benchReplicas } from './replicas.ts'
import { ROOT } from './servers.ts'
import { benchSmall } from './small.ts'
import { benchTriton } from './triton.ts'

/** A bench gives the ratios that history.json keeps, if it has any. */
type Bench = (nodeFlags: readonly string[]) => Promise<Ratios | void>

const BENCHES: Readonly<Record<string, Bench>> = {
  small: benchSmall,
  ensemble: benchEnsemble,
  memory: benchMemory,
  idle: benchIdle,
  edges: benchEdges,
  framing: benchFraming,
  processes: benchProcesses,
  replicas: benchReplicas,
  operator: benchOperator,
  growth: benchGrowth,
  console: benchConsole,
  python: benchPythonEngine,
  interpreters: benchInterpreters,
  items: benchItems,
  triton: benchTriton,
  compare: benchCompare,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'node-flag': { type: 'string', multiple: true, default: [] },
    record: { type: 'boolean', default: false },
  },
})
const wanted = positionals.length === 0 ? Object.keys(BENCHES) : positionals
for (const name of wanted) {
  if (!Object.hasOwn(BENCHES, name)) {
    console.error(`no bench '${name}', want one of ${Object.keys(BENCHES).join(', ')}`)
    process.exit(2)
  }
}
const FILE = join(ROOT, 'bench', 'history.json')
const history: History = JSON.parse(readFileSync(FILE, 'utf8'))
let recorded = history
for (const [name, bench] of Object.entries(BENCHES)) {
  if (!wanted.includes(name)) continue
  const ratios = (await bench(values['node-flag'])) ?? {}
  for (const line of findLosses(history, ratios)) console.log(`worse than before: ${line}`)
  if (!values.record) continue
  recorded = record(recorded, release(), ratios)
  // After each one: a later one may fail.
  writeFileSync(FILE, `${JSON.stringify(recorded, undefined, 2)}\n`)
}

function release() {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: ROOT })
  return {
    version: manifest.version,
    date: new Date().toISOString().slice(0, 10),
    commit: commit.toString().trim(),
  }
}
