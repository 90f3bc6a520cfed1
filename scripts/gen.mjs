// Writes what is generated and committed: the message types of services/protocol from its .proto files, the CRDs and their
// reference and the JSON Schemas for editors from the schemas of services/api, those of the results of commands from services/cli, the page of conditions from the operator's code,
// that of errors from the catalogue of services/errors, those of built-in steps from the catalogue of services/builtins, the pages of compatibility from their tables, what the chart has of the CRDs and its values, its dashboards, the licences of the packages in the
// images, the graphs of the examples, the picture of ARCHITECTURE.md, and the tables of flags in READMEs.
// With --check it exits with 1 if that changes a file.
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { argv } from 'node:process'
import { writeArchitecture } from './gen/architecture.mjs'
import { writeBuiltins } from './gen/builtins.mjs'
import { writeChartFiles } from './gen/chart.mjs'
import { writeCompatibility } from './gen/compatibility.mjs'
import { writeConditions } from './gen/conditions.mjs'
import { writeDashboards } from './gen/dashboards.mjs'
import { writeErrors } from './gen/errors.mjs'
import { writeExampleGraphs } from './gen/examples.mjs'
import { writeLicences } from './gen/licences.mjs'
import { writeStepKinds } from './gen/step-kinds.mjs'

const root = join(import.meta.dirname, '..')
const protocol = join(root, 'services', 'protocol')
const generator = createRequire(join(protocol, 'package.json'))
  .resolve('@grpc/proto-loader/package.json')
  .replace(/package\.json$/, join('build', 'bin', 'proto-loader-gen-types.js'))
const out = join(protocol, 'src', 'gen')

const GENERATED = [
  'services/protocol/src/gen/**/*.ts',
  'services/{cli,router,step}/README.md',
  'operator/README.md',
  'crds/*',
  'schemas/**/*.json',
  'docs/builtins.md',
  'docs/builtins/*.md',
  'docs/compatibility.md',
  'docs/compatibility-names.md',
  'docs/conditions.md',
  'docs/errors.md',
  'docs/start-lines.md',
  'docs/custom-resources.md',
  'charts/tutti/README.md',
  'charts/tutti/files/**/*.*',
  'images/licences.md',
  'docs/images/architecture.svg',
  'examples/*/graph.svg',
]
const isCheck = argv.includes('--check')
const before = readGenerated()

// The flags say what PROTO_OPTIONS in services/protocol/src/services.ts says to the runtime loader.
rmSync(out, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [
    generator,
    '--keepCase',
    '--longs=String',
    '--enums=String',
    '--defaults',
    '--oneofs',
    '--grpcLib=@grpc/grpc-js',
    '--importFileExtension=.ts',
    `--includeDirs=${join(protocol, 'proto')}`,
    `--outDir=${out}`,
    '--',
    'grpc_service.proto',
    'health.proto',
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] },
)

// The generator names source files by absolute path, which differs from one checkout to the next.
for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const file = join(entry.parentPath, entry.name)
  const text = readFileSync(file, 'utf8')
  writeFileSync(
    file,
    text.replace(/^\/\/ Original file: .*\/proto\//gm, '// Original file: proto/'),
  )
}

const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const built = ['operator', 'services/protocol', 'services/cli'].map((folder) => join(root, folder))
execFileSync(process.execPath, [compiler, '-b', ...built], { stdio: 'inherit' })
const { buildGeneratedFiles } = await import('../operator/dist/index.js')
rmSync(join(root, 'crds'), { recursive: true, force: true })
const { buildResultSchemas } = await import('../services/cli/dist/result-schemas.js')
rmSync(join(root, 'schemas'), { recursive: true, force: true })
for (const [path, text] of [...buildGeneratedFiles(), ...(await buildResultSchemas())]) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

const { buildFlagTables, replaceFlagTable } = await import('../services/cli/dist/flag-tables.js')
for (const [path, table] of await buildFlagTables((name) =>
  readFileSync(join(root, name), 'utf8'),
)) {
  writeFileSync(join(root, path), table)
}

const { OPERATOR_FLAGS } = await import('../operator/dist/operator-flags.js')
const guide = join(root, 'operator', 'README.md')
const text = readFileSync(guide, 'utf8')
writeFileSync(guide, replaceFlagTable(text, 'tutti-operator', OPERATOR_FLAGS))

writeChartFiles(root)
writeDashboards(root)
writeCompatibility(root)
writeLicences(root)
writeExampleGraphs(root)
writeArchitecture(root)

const { BUILTINS, toOptionsSchema } = await import('../services/builtins/dist/index.js')
writeBuiltins(root, BUILTINS, toOptionsSchema)
const { STEP_KINDS } = await import('../services/backends/dist/testing/step-kinds/index.js')
writeStepKinds(root, STEP_KINDS)

const { ACCEPTED_REASONS } = await import('../services/graph/dist/index.js')
const { ENSEMBLE_CONDITIONS, MODEL_CONDITIONS, ROUTER_CONDITIONS } = await import(
  '../services/api/dist/index.js'
)
writeConditions(root, {
  types: { Model: MODEL_CONDITIONS, Ensemble: ENSEMBLE_CONDITIONS, Router: ROUTER_CONDITIONS },
  graph: Object.keys(ACCEPTED_REASONS),
})

const { REASONS, ServeError } = await import('../services/errors/dist/index.js')
const { toHttpStatus } = await import('../services/protocol/dist/index.js')
const withStatus = Object.entries(REASONS).map(([reason, { code, meaning }]) => [
  reason,
  { code, meaning, status: toHttpStatus(new ServeError(reason, '')) },
])
writeErrors(root, Object.fromEntries(withStatus))

if (isCheck) {
  const after = readGenerated()
  const paths = [...new Set([...before.keys(), ...after.keys()])]
  const changed = paths.filter((path) => before.get(path) !== after.get(path))
  for (const path of changed) console.error(`${path} was not as it is generated; it is now`)
  if (changed.length > 0) process.exitCode = 1
}

/** The text of each generated file that is there, by path. */
function readGenerated() {
  const paths = globSync(GENERATED, { cwd: root })
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'latin1')]))
}
