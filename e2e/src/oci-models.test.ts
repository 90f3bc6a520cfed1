// needs: registry
import { copyFile, cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import t from 'tap'
import { startRegistry, withoutRegistry } from './release/registry.ts'
import { ROOT, runProgram, runTutti } from './serving.ts'

const skip = withoutRegistry()
const MODEL = join(ROOT, 'model_repository/.variants/fixtures/basic/add_one_batch')

await t.test('tutti fetch reads from a registry what oras has pushed', { skip }, async (t) => {
  const folder = t.testdir({ registry: {}, secret: {}, pushed: {} })
  const registry = await startRegistry(t, join(folder, 'registry'))
  const pushed = join(folder, 'pushed')
  await cp(MODEL, join(pushed, 'model'), { recursive: true })
  const docker = join(folder, 'registry/docker/config.json')
  await copyFile(docker, join(folder, 'secret/.dockerconfigjson'))
  const push = async (tag: string, cwd: string, ...paths: readonly string[]) => {
    const target = `${registry.address}/models/add:${tag}`
    const argv = ['push', '--plain-http', '--no-tty', target, ...paths]
    const result = await runProgram(env['TUTTI_ORAS'] ?? '', argv, { cwd, env: registry.env })
    t.equal(result.code, 0, result.err)
  }
  const files = (await readdir(join(pushed, 'model'), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(pushed, 'model/').length))
  await push('files', join(pushed, 'model'), ...files)
  await push('folder', pushed, 'model')
  await writeFile(join(pushed, 'index.txt'), '')
  await mkdir(join(folder, 'to'))
  const fetchIt = async (reference: string, ...more: readonly string[]) =>
    await runTutti([
      'fetch',
      `--uri=oci://${registry.address}/models/add${reference}`,
      `--to=${join(folder, 'to', reference.replace(/\W/g, '_'))}`,
      '--print-digest',
      '--log-info=false',
      '--attempts=1',
      ...more,
    ])
  const secret = `--secret-dir=${join(folder, 'secret')}`
  const asFiles = await fetchIt(':files', secret)
  t.match(asFiles, { code: 0, out: /^sha256:[0-9a-f]{64}\n$/ }, asFiles.err)
  const asFolder = await fetchIt(':folder', secret)
  t.equal(asFolder.out, asFiles.out, 'both are the same tree')
  const argv = [
    'manifest',
    'index',
    'create',
    '--plain-http',
    `${registry.address}/models/add:index`,
  ]
  const index = await runProgram(env['TUTTI_ORAS'] ?? '', [...argv, 'files'], { env: registry.env })
  t.equal(index.code, 0, index.err)
  t.equal((await fetchIt(':index', secret)).out, asFiles.out, 'also by an index')
  t.match(await fetchIt(':files/1'), { code: 11, err: /answered 401.*asked without credentials/ })
  t.match(await fetchIt(':none', secret), { code: 10, err: /MANIFEST_UNKNOWN/ })
})
