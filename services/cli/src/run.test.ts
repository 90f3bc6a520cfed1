import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { renderSettingTable, TracingSettings } from '@tutti/chassis'
import { parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import manifest from '../package.json' with { type: 'json' }
import { run } from './run.ts'

const FIXTURES = fileURLToPath(
  new URL('../../../model_repository/.variants/fixtures/', import.meta.url),
)

async function command(...argv: string[]) {
  const printed = { out: '', err: '' }
  const code = await run(argv, {
    env: {},
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}

await t.test('without a command, or with an unknown one, the commands are listed', async (t) => {
  t.match(await command(), { code: 2, out: /serve .*\n.*config / })
  t.match(await command('--help'), { code: 0, out: /Usage: tutti COMMAND[^]*tutti --version/ })
  t.match(await command('sevre'), { code: 2, err: /unknown command 'sevre'/ })
})

await t.test('output that cannot be written is told', async (t) => {
  const script = '"$0" "$1" --help > /dev/full'
  const programs = { 'main.ts': 'tutti', '../../kubectl/src/main.ts': 'kubectl tutti' }
  for (const [file, name] of Object.entries(programs)) {
    const main = fileURLToPath(new URL(file, import.meta.url))
    const ended = promisify(execFile)('sh', ['-c', script, process.execPath, main])
    const stderr = new RegExp(`^${name}: standard output cannot be written: ENOSPC[^\\n]*\\n$`)
    await t.rejects(ended, { code: 1, stderr }, name)
  }
  const out = '--output-dir=/dev/null/x'
  t.match(await command('import', 'triton', `${FIXTURES}basic`, out), {
    code: 2,
    err: /--output-dir: \/dev\/null\/x cannot be written: ENOTDIR/,
  })
})

await t.test('the version is that of the package', async (t) => {
  t.match(await command('--version'), { code: 0, out: /^tutti \d+\.\d+\.\d+\n$/ })
  const programs = { serve: 'tutti', step: 'tutti-step', router: 'tutti-router' }
  for (const [name, program] of Object.entries(programs)) {
    const out = `${program} ${manifest.version}\n`
    t.match(await command(name, '--version'), { code: 0, out }, name)
  }
})

await t.test('every command explains its flags', async (t) => {
  for (const name of ['serve', 'config']) {
    t.match(await command(name, '--help'), { code: 0, out: /--model-repository/ }, name)
  }
})

await t.test('what is not understood ends with 2 and says what was wanted', async (t) => {
  const cases: [string[], RegExp][] = [
    [['serve'], /--model-repository: got none, want at least one folder/],
    [['serve', '--grpc-prt=1'], /unknown flag --grpc-prt; did you mean --grpc-port\?/],
    [['step', '--model-namespacing=true'], /--model-namespacing: only tutti serve has it: steps/],
    [['router', '--model-namespacing'], /--model-namespacing: only tutti serve has it: steps/],
    [['serve', 'models'], /got 'models', want flags only/],
    [['serve', '--model-control-mode=all'], /--model-control-mode: "all", want one of none, poll/],
    [['serve', '--model-repository=.', '--grpc-port=x'], /--grpc-port: "x"/],
    [['import', 'triton', ''], /got 'triton ', want triton DIR/],
    [['config'], /got 0 model names, want one/],
    [['config', 'a'], /--model-repository: got none, want at least one folder/],
    [['config', 'a', '--model-repository='], /--model-repository: got none, want/],
    [['config', 'a', 'b'], /got 2 model names, want one/],
  ]
  for (const [argv, text] of cases) {
    t.match(await command(...argv), { code: 2, err: text }, argv.join(' '))
  }
})

await t.test('backend settings with a wrong value are refused', async (t) => {
  const cases: [string, RegExp][] = [
    ['onnxruntime', /want BACKEND,SETTING=VALUE/],
    ['python,shm-default-byte-size=many', /'many', want a whole number from 0 to 1099511627776/],
    ['python,shm-max-byte-size=1', /'1', want a whole number from 1048576 to 1099511627776/],
    ['python,interpreter=', /want a program on PATH or a path/],
    ['onnxruntime,default-max-batch-size=-1', /'-1', want a whole number/],
    ['onnxruntime,library=libonnxruntime.so', /want the absolute path of a library/],
    ['onnxruntime,max-strings=0', /'0', want a whole number from 1 to/],
  ]
  for (const [text, wanted] of cases) {
    const got = await command(
      'config',
      'add_one',
      `--model-repository=${FIXTURES}basic`,
      `--backend-config=${text}`,
    )
    t.match(got, { code: 2, err: wanted }, text)
  }
})

await t.test('config prints the completed configuration, and it parses back', async (t) => {
  const repository = `--model-repository=${FIXTURES}basic`
  const { code, out } = await command('config', 'add_one_matrix', repository)
  t.equal(code, 0)
  const config = parseModelConfig(out, 'printed')
  t.match(config, { name: 'add_one_matrix', backend: 'onnxruntime', max_batch_size: 0 })
  t.equal(config.input[0]?.data_type, 'TYPE_FP32')
  const json = await command('config', 'add_one_matrix', repository, '--format=json')
  t.match(JSON.parse(json.out), { name: 'add_one_matrix', platform: 'onnxruntime_onnx' })
})

await t.test('the default batch size of completed models is a setting', async (t) => {
  const repository = `--model-repository=${FIXTURES}basic`
  const setting = '--backend-config=onnxruntime,default-max-batch-size=7'
  const { out } = await command('config', 'add_one', repository, setting)
  t.equal(parseModelConfig(out, 'printed').max_batch_size, 7)
})

await t.test('config prints ensembles too, and says why a model has none', async (t) => {
  const ensemble = await command('config', 'ens_chain', `--model-repository=${FIXTURES}basic`)
  t.equal(parseModelConfig(ensemble.out, 'printed').ensemble_scheduling?.step.length, 2)
  const broken = `--model-repository=${FIXTURES}broken`
  t.match(await command('config', 'missing', broken), {
    code: 1,
    err: /no model 'missing'; the repositories hold /,
  })
  t.match(await command('config', 'syntax_error', broken), { code: 1, err: /line 7, column 15/ })
  t.match(await command('config', 'ens_cycle', broken), { code: 1, err: /is not written/ })
})

await t.test('config says what a load would fail at', async (t) => {
  const text = `backend: "onnxruntime"
    input { name: "x" data_type: TYPE_FP32 dims: 1 }
    output { name: "y" data_type: TYPE_FP32 dims: 1 label_filename: "absent.txt" }`
  const repository = t.testdir({ m: { 'config.pbtxt': text, 1: { 'model.onnx': '' } } })
  t.match(await command('config', 'm', `--model-repository=${repository}`), {
    code: 1,
    out: '',
    err: /failed to open text file for read .*absent\.txt/,
  })
})

await t.test('a repository that is not there is named', async (t) => {
  t.match(await command('config', 'a', '--model-repository=/no/such/folder'), {
    code: 2,
    err: /--model-repository: .*\/no\/such\/folder/,
  })
})

await t.test('README.md lists every setting', async (t) => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  t.ok(readme.includes(renderSettingTable(TracingSettings)))
})
