import { execFileSync, spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { test } from 'tap'

const SCRIPT = resolve(import.meta.dirname, '..', 'images.mjs')
const FLAGS = ['--engine=buildah', '--make-base', '--no-cache', '--only=router', '--tag=nightly']

const isThere = (program) => spawnSync(program, ['--version']).status === 0
const canBuild = process.getuid?.() === 0 && isThere('buildah') && isThere('mmdebstrap')
const skip = !canBuild && 'it needs root, buildah and mmdebstrap'

/** The digests of the layers that a build makes, in their order. */
function buildInto(out) {
  execFileSync(process.execPath, [SCRIPT, ...FLAGS, `--out=${out}`], { maxBuffer: 1 << 26 })
  const read = (entry) => JSON.parse(execFileSync('tar', ['-xOf', join(out, 'router.tar'), entry]))
  const [{ digest }] = read('index.json').manifests
  return read(`blobs/${digest.replace(':', '/')}`).layers.map((layer) => layer.digest)
}

await test('two builds of the same files have the same layers', { skip }, (t) => {
  const folder = t.testdir()
  const first = buildInto(join(folder, 'first'))
  t.same(buildInto(join(folder, 'second')), first)
  t.end()
})
