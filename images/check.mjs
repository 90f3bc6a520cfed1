// Checks an image while it is built, as its user: node check.mjs operator
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const APP = '/app'
/**
 * Megabytes of all files of a program; CUDA's libraries are elsewhere. A step has the router's packages too, 3 MB, since it runs
 * parts of graphs.
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

const bytes = files.reduce((sum, file) => sum + lstatSync(`${APP}/${file}`).size, 0)
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
  const path = join(dirname(requireThere.resolve('onnxruntime-node')), library)
  requireThere('koffi').load(path)
  const provider = join(dirname(path), 'libonnxruntime_providers_cuda.so')
  if (existsSync(provider)) checkCuda(requireThere('koffi'), provider)
  // And libvips, of which npm has installed that of the machine.
  assert.ok(requireThere('sharp').versions.vips)
}
const { status, stderr } = spawnSync(`tutti-${program}`, ['--help'], { encoding: 'utf8' })
assert.equal(status, 0, stderr)

/** Loads CUDA's libraries, which needs no device. The driver alone comes from the node. */
function checkCuda(koffi, provider) {
  const { stdout } = spawnSync('ldd', [provider], { encoding: 'utf8' })
  const absent = stdout.match(/\S+(?= => not found)/g)
  assert.deepEqual(absent, ['libcuda.so.1'], `what ${provider} lacks:\n${stdout}`)
  const names = [
    'cudart.so.13',
    'cublas.so.13',
    'cublasLt.so.13',
    'cufft.so.12',
    'curand.so.10',
    'nvrtc.so.13',
    'cudnn.so.9',
    'cudnn_graph.so.9',
    'cudnn_ops.so.9',
    'cudnn_cnn.so.9',
    'cudnn_heuristic.so.9',
    'cudnn_engines_precompiled.so.9',
    'cudnn_engines_runtime_compiled.so.9',
  ]
  const libraries = new Map(names.map((name) => [name, koffi.load(`lib${name}`)]))
  const version = new Int32Array(1)
  libraries.get('cudart.so.13').func('int cudaRuntimeGetVersion(void*)')(version)
  assert.ok(version[0] >= 13_000 && version[0] < 14_000, `got CUDA ${version[0]}, want 13`)
  const cudnn = libraries.get('cudnn.so.9').func('size_t cudnnGetVersion()')()
  assert.ok(cudnn >= 90_000 && cudnn < 100_000, `got cuDNN ${cudnn}, want 9`)
}
