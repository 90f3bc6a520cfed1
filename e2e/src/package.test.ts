// needs: python
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import t from 'tap'
import { type Ended, LOOPBACK, ROOT, runProgram, startTutti } from './serving.ts'

t.setTimeout(600_000)

const PYTHON = process.env['TUTTI_TEST_PYTHON'] ?? 'python3'
const BASIC = join(ROOT, 'model_repository/.variants/fixtures/basic')
const MODEL = `import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", r.inputs()[0].as_numpy() * 2)]) for r in requests]
`
const CONFIG = `backend: "python" input { name: "x" data_type: TYPE_FP32 dims: -1 }
output { name: "y" data_type: TYPE_FP32 dims: -1 }`

/** As on a machine with Node and nothing else: its programs are found first. */
const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`

const folder = await mkdtemp(join(tmpdir(), 'tutti-package-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))
const prefix = join(folder, 'installed')
const installed = join(prefix, 'lib')
const program = join(installed, 'node_modules/tutti/bin/tutti.js')
const linked = join(prefix, 'bin/tutti')

const infer = (model: string, port: number, input: string) =>
  runProgram(
    linked,
    ['infer', model, `--url=grpc://127.0.0.1:${port}`, '--format=json', '-i', input],
    {
      env: { ...process.env, PATH },
    },
  )

/** The values of the only output that an answer has. */
function dataOf({ out, err }: Ended): unknown {
  if (out === '') throw new Error(err)
  return JSON.parse(out).outputs[0].data
}

// Executes docs/kubectl.md: npm run package
await t.test(
  'the package installs as docs/quick-start.md and docs/kubectl.md say, for all users',
  async (t) => {
    const packed = await runProgram(process.execPath, [
      join(ROOT, 'scripts/package.mjs'),
      folder,
      '--source=https://git.example/some/tutti',
    ])
    t.equal(packed.code, 0, packed.err)
    t.match(packed.err, /^Packing tutti into \S+ \.\.\.\n[^]*Packed in \d+ s\n$/)
    const tarball = packed.out.trim()
    t.match(tarball, /tutti-\d+\.\d+\.\d+\.tgz$/)
    const command = 'npm install --global --ignore-scripts ./'
    for (const page of ['quick-start.md', 'kubectl.md']) {
      t.match(await readFile(join(ROOT, 'docs', page), 'utf8'), command, page)
    }
    const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
    const [, ...words] = command.split(' ')
    const npm = await runProgram('npm', [...words.slice(0, -1), ...quiet, tarball], {
      env: { ...process.env, PATH, npm_config_prefix: prefix },
      cwd: folder,
    })
    t.equal(npm.code, 0, npm.err)
    const workspaces = join(installed, 'node_modules/tutti/node_modules/@tutti')
    const own = await readFile(join(workspaces, '../../package.json'), 'utf8')
    const repository = { type: 'git', url: 'git+https://git.example/some/tutti.git' }
    t.same(JSON.parse(own).repository, repository, 'npm wants it for the provenance')
    for (const name of await readdir(workspaces)) {
      t.ok((await lstat(join(workspaces, name))).isDirectory(), `${name} is a copy`)
      const testing = await readdir(join(workspaces, name, 'dist', 'testing')).catch(() => [])
      t.same(testing, [], `${name} has no helpers of tests`)
    }
    t.notOk((await readdir(join(installed, 'node_modules'))).includes('onnxruntime-node'))
    const plugin = await runProgram(join(prefix, 'bin/kubectl-tutti'), ['--help'], {
      env: { ...process.env, PATH },
    })
    t.match(plugin, { code: 0, out: /^Usage: kubectl tutti COMMAND/ })
    const runtime = await readdir(join(workspaces, '..', 'onnxruntime-node'))
    for (const name of ['LICENSE', 'ThirdPartyNotices.txt']) t.ok(runtime.includes(name), name)
  },
)

await t.test('the package comes with an SBOM of all that it installs', async (t) => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const sbom = JSON.parse(await readFile(join(folder, `tutti-${version}.cdx.json`), 'utf8'))
  t.match(sbom.metadata.component, { name: 'tutti', version, purl: `pkg:npm/tutti@${version}` })
  for (const { licenses, purl } of sbom.components)
    t.match(JSON.stringify(licenses), /id|expr/, purl)
  const purls: string[] = sbom.components.map(({ purl }: { purl: string }) => purl)
  t.notOk(
    purls.some((purl) => /esbuild|typescript|biome/.test(purl)),
    'nothing of development',
  )
  const manifest = join(installed, 'node_modules/tutti/package.json')
  const { dependencies } = JSON.parse(await readFile(manifest, 'utf8'))
  for (const [name, wanted] of Object.entries(dependencies)) {
    if (name.startsWith('@tutti/')) continue
    t.ok(purls.includes(`pkg:npm/${name.replace('@', '%40')}@${String(wanted)}`), name)
  }
})

await t.test('it serves an ensemble of ONNX models, a Python model, and the console', async (t) => {
  const python = join(folder, 'models')
  await mkdir(join(python, 'double', '1'), { recursive: true })
  await writeFile(join(python, 'double', 'config.pbtxt'), CONFIG)
  await writeFile(join(python, 'double', '1', 'model.py'), MODEL)
  const args = [
    'serve',
    `--model-repository=${BASIC}`,
    `--model-repository=${python}`,
    '--model-control-mode=explicit',
    '--load-model=ens_chain',
    '--load-model=double',
    `--python=${PYTHON}`,
    '--exit-on-error',
    '--console-port=0',
    '--console-address=127.0.0.1',
    ...LOOPBACK,
  ]
  const { serving, ready } = await startTutti(args, { program, env: { PATH } })
  t.teardown(() => serving.process.stop('SIGKILL'))
  const values = Array.from({ length: 16 }, (_, i) => i)
  const chain = await infer('ens_chain', serving.grpcPort, `X=${JSON.stringify([values])}`)
  t.same(dataOf(chain), [values.map((value) => value + 2)])
  t.same(dataOf(await infer('double', serving.grpcPort, 'x=[1,2.5]')), [2, 5])
  const page = await fetch(`http://127.0.0.1:${Number(ready['consolePort'])}/console`)
  t.equal(page.status, 200)
  t.match(await page.text(), /<script/)
})

/** A Node that says that it is older than it is. */
const OLD = 'data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"20.1.0"}})'

await t.test('a Node that is too old installs a newer one, once', async (t) => {
  const cache = join(folder, 'cache')
  const env = { ...process.env, PATH, XDG_CACHE_HOME: cache }
  const ask = (...args: readonly string[]) =>
    runProgram(process.execPath, ['--import', OLD, program, ...args], { env })
  const [first, other] = await Promise.all([ask('--version'), ask('--version')])
  for (const { code, out, err } of [first, other]) {
    t.equal(code, 0, err)
    t.match(out, /\d+\.\d+\.\d+/)
    // The other one may be done before it begins.
    t.match(
      err,
      /^$|^tutti: got Node 20\.1\.0; installing Node 24\.\d+\.\d+ into \S+ \(once\) \.\.\.\n(?:tutti: installing Node 24\S+: \d+ s\n)*tutti: installed Node 24\.\d+\.\d+ in \d+ s\n$/,
    )
  }
  t.ok(first.err || other.err, 'one of them says that it installs')
  t.equal((await readdir(join(cache, 'tutti'))).length, 1)
  const second = await ask('infer', 'none', '--url=grpc://127.0.0.1:1', '-i', 'x=[1]')
  t.equal(second.code, 1)
  t.notMatch(second.err, /Node/)
})

await t.test('it says what is wanted where npm gives none', async (t) => {
  const env = {
    ...process.env,
    PATH,
    XDG_CACHE_HOME: join(folder, 'none'),
    npm_execpath: '/dev/null/npm-cli.js',
  }
  const { code, err } = await runProgram(
    process.execPath,
    ['--import', OLD, program, '--version'],
    { env },
  )
  t.equal(code, 1)
  t.match(
    err,
    /\ntutti: got Node 20\.1\.0, want 24 or newer, and node-\S+ could not be installed \(.*\); install Node from https:\/\/nodejs\.org\n$/,
  )
})
