import { parseArgs } from 'node:util'
import { benchEdges } from './edges.ts'
import { benchEnsemble } from './ensemble.ts'
import { benchMemory } from './memory.ts'
import { benchOperator } from './operator.ts'
import { benchProcesses } from './processes.ts'
import { benchPythonEngine } from './python.ts'
import { benchReplicas } from './replicas.ts'
import { benchSmall } from './small.ts'
import { benchTriton } from './triton.ts'

const BENCHES = {
  small: benchSmall,
  ensemble: benchEnsemble,
  memory: benchMemory,
  edges: benchEdges,
  processes: benchProcesses,
  replicas: benchReplicas,
  operator: benchOperator,
  python: benchPythonEngine,
  triton: benchTriton,
} as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'node-flag': { type: 'string', multiple: true, default: [] } },
})
const wanted = positionals.length === 0 ? Object.keys(BENCHES) : positionals
for (const name of wanted) {
  if (!Object.hasOwn(BENCHES, name)) {
    console.error(`no bench '${name}', want one of ${Object.keys(BENCHES).join(', ')}`)
    process.exit(2)
  }
}
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.includes(name)) await bench(values['node-flag'])
}
