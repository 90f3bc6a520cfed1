// Checks an image while it is built, as its user: node check.mjs operator
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const APP = '/app'
/**
 * Megabytes of all files of a program; CUDA's provider, which is larger than all others, does not count. A step has the router's
 * packages too, 3 MB, since it runs parts of graphs.
 */
const LIMIT_MB = { operator: 70, router: 40, step: 125 }
const UNWANTED =
  /^(operator|services)\/.*\/(testing|tests)\/|node_modules\/(typescript|tap)\/|\.((test|soak|nightly)\.[a-z]+|[cm]?ts|map)$/

const [program] = process.argv.slice(2)
const hasRuntime = program === 'step'
const files = readdirSync(APP, { recursive: true, encoding: 'utf8' })

assert.deepEqual([process.getuid(), process.getgid()], [65532, 65532], 'user and group')
assert.deepEqual(
  files.filter((file) => UNWANTED.test(file)),
  [],
  'files that no program needs',
)
assert.ok(!existsSync('/usr/local/lib/node_modules'), 'npm')
assert.equal(existsSync(`${APP}/node_modules/onnxruntime-node`), hasRuntime, 'ONNX Runtime')
// `tutti serve` alone reads buckets with them.
for (const library of ['@azure', 'google-auth-library']) {
  assert.ok(!existsSync(`${APP}/node_modules/${library}`), library)
}

// Pods may run as any other user, which on OpenShift the namespace assigns.
assert.deepEqual(
  files.filter((file) => (lstatSync(`${APP}/${file}`).mode & 0o004) === 0),
  [],
  'files that only some users may read',
)

const bytes = files
  .filter((file) => !file.includes('providers_cuda'))
  .reduce((sum, file) => sum + lstatSync(`${APP}/${file}`).size, 0)
assert.ok(bytes < LIMIT_MB[program] * 1e6, `got ${bytes} bytes, want ${LIMIT_MB[program]} MB`)

const readJson = (path) => JSON.parse(readFileSync(`${APP}/${path}`, 'utf8'))
const { bomFormat, components } = readJson('sbom.cdx.json')
const listed = new Set(components.map(({ purl }) => decodeURIComponent(purl)))
const { packages } = readJson('node_modules/.package-lock.json')
// Links have no version; the workspaces that they name do.
const installed = Object.entries(packages).flatMap(([path, { name, version }]) => {
  return version ? `pkg:npm/${name ?? path.split('node_modules/').at(-1)}@${version}` : []
})
assert.equal(bomFormat, 'CycloneDX')
assert.deepEqual(
  installed.filter((purl) => !listed.has(purl)),
  [],
  'packages that the list lacks',
)

if (hasRuntime) {
  // As the engine loads it, without a model.
  const requireThere = createRequire(`${APP}/services/backends/package.json`)
  const library = `../bin/napi-v6/linux/${process.arch}/libonnxruntime.so.1`
  requireThere('koffi').load(join(dirname(requireThere.resolve('onnxruntime-node')), library))
  // And libvips, of which npm has installed that of the machine.
  assert.ok(requireThere('sharp').versions.vips)
}
const { status, stderr } = spawnSync(`tutti-${program}`, ['--help'], { encoding: 'utf8' })
assert.equal(status, 0, stderr)
