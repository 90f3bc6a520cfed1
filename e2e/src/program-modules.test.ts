// needs: nats
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNatsServer, startProcess } from '@tutti/chassis/testing'
import t from 'tap'
import { LOOPBACK, ROOT, runProgram } from './serving.ts'

/** Writes at the end of a process which files it has loaded. */
const REPORT = `
  import { registerHooks } from 'node:module'
  import { writeFileSync } from 'node:fs'
  const urls = new Set()
  registerHooks({ load: (url, context, next) => (urls.add(url), next(url, context)) })
  process.on('exit', () => writeFileSync(process.env.MODULES, JSON.stringify([...urls])))`

function environment(file: string): Readonly<Record<string, string | undefined>> {
  const report = `data:text/javascript,${encodeURIComponent(REPORT)}`
  return { ...process.env, MODULES: file, NODE_OPTIONS: `--import=${report}` }
}

/** Names of the packages that a process has loaded, those of this repository by their folders. */
function packagesIn(file: string): readonly string[] {
  const urls: readonly string[] = JSON.parse(readFileSync(file, 'utf8'))
  const names = urls.flatMap((url) => {
    if (!url.startsWith('file:')) return []
    const path = fileURLToPath(url)
    const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? []
    if (name !== undefined) return [name]
    return [path.slice(ROOT.length).replace(/\/dist\/.*|\/package\.json$/, '')]
  })
  return [...new Set(names)].toSorted()
}

await t.test('the list of commands and the version load no service', async (t) => {
  const kubectl = 'services/kubectl/dist/main.js'
  const tutti = 'services/cli/dist/main.js'
  const cases = [
    [tutti, '--version'],
    [tutti, '--help'],
    [kubectl, '--version'],
    [kubectl, '--help'],
  ] as const
  const shared = ['services/chassis', 'services/command-line', 'services/errors']
  for (const [i, [program, flag]] of cases.entries()) {
    const file = join(t.testdir(), `${i}.json`)
    const { code } = await runProgram(process.execPath, [join(ROOT, program), flag], {
      env: environment(file),
    })
    t.equal(code, 0)
    const own = program.replace('/dist/main.js', '')
    t.same(packagesIn(file), [...shared, own].toSorted(), program)
  }
})

/** Packages of rare settings, other processes, and clients. */
const RARE = [
  '@azure/identity',
  '@opentelemetry/sdk-trace',
  '@redis/client',
  '@kubernetes/client-node',
  'google-auth-library',
  'koffi',
  'onnxruntime-node',
  'pngjs',
  'services/backends',
  'services/cli',
  'services/kubeconfig',
  'services/step',
  'tar',
  'yaml',
]

await t.test('a router that is ready has loaded nothing that it does not use', async (t) => {
  const broker = await startNatsServer()
  t.teardown(() => broker.stop())
  const folder = t.testdir()
  const models = join(folder, 'models')
  mkdirSync(models)
  const file = join(folder, 'router.json')
  const program = join(ROOT, 'services/router/dist/main.js')
  const flags = [`--model-repository=${models}`, `--nats=${broker.url}`, ...LOOPBACK]
  const router = await startProcess(process.execPath, [program, ...flags], {
    env: environment(file),
    readyWhen: (line) => line.includes('"server ready"'),
  })
  t.teardown(() => router.stop('SIGKILL'))
  await router.stop()
  const loaded = packagesIn(file)
  t.ok(loaded.includes('services/router') && loaded.includes('nats'))
  t.same(
    loaded.filter((name) => RARE.includes(name)),
    [],
  )
})
