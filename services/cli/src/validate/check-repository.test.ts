import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../testing/run-command.ts'
import { checkRepositories } from './check-repository.ts'

const FIXTURES = join(import.meta.dirname, '../../../../model_repository/.variants/fixtures')

/** `resource path reason` of each problem. */
async function problemsOf(repository: string): Promise<readonly string[]> {
  const { problems } = await checkRepositories([repository])
  return problems.map(({ resource, path, reason }) => `${resource} ${path} ${reason}`)
}

for (const name of ['basic', 'python', 'sequences', 'parity', 'gpu']) {
  await t.test(`the repository ${name}, which is served, has no problems`, async (t) => {
    t.same(await problemsOf(join(FIXTURES, name)), [])
  })
}

await t.test('every broken model is told, with its file, line and column', async (t) => {
  const repository = join(FIXTURES, 'broken')
  t.same(await problemsOf(repository), [
    'Ensemble/ens_cycle ensemble_scheduling.step[1] CycleDetected',
    'Ensemble/ens_dtype_mismatch ensemble_scheduling.step[0].input_map[x] DatatypeMismatch',
    'Ensemble/ens_missing_model ensemble_scheduling.step[0].model_name UnknownModel',
    'Ensemble/ens_mutual_a ensemble_scheduling.step[0].model_name CycleDetected',
    'Ensemble/ens_mutual_b ensemble_scheduling.step[0].model_name CycleDetected',
    'Model/missing_model_file default_model_filename ModelLoadFailed',
    'Model/missing_version version_policy ConfigInvalid',
    'Model/name_mismatch name ConfigInvalid',
    'Model/syntax_error  SyntaxError',
    'Model/unknown_platform platform ConfigInvalid',
  ])
  const { code, out } = await runCommand(['validate', `--model-repository=${repository}`])
  t.equal(code, 1)
  t.match(
    out,
    `${repository}/syntax_error/config.pbtxt:7:15: Model/syntax_error: got "TYPE_FP32", want ":" after field "data_type" (SyntaxError)\n`,
  )
  t.match(
    out,
    /ens_dtype_mismatch.config\.pbtxt:23:17: .*'good' takes FP32\[-1\], the input 'x' is/,
  )
  t.match(out, /^14 Models and Ensembles, 10 errors$/m)
})

const tensors = (name: string, type: string) =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ 4 ] }`
const model = (input: string, output: string) =>
  `backend: "python" input ${tensors(...pair(input))} output ${tensors(...pair(output))}`
const step = (
  name: string,
  inputs: Record<string, string>,
  outputs: Record<string, string>,
) => `step {
  model_name: "${name}"
  model_version: -1
${entries('input_map', inputs)}
${entries('output_map', outputs)}
}`

function pair(text: string): [name: string, type: string] {
  const [name = '', type = ''] = text.split(' ')
  return [name, type]
}

function entries(field: string, map: Record<string, string>): string {
  const lines = Object.entries(map).map(([k, v]) => `  ${field} { key: "${k}" value: "${v}" }`)
  return lines.join('\n')
}

const WRONG = `platform: "ensemble"
max_batch_size: 2
input [ ${tensors('image', 'FP32')}, ${tensors('idle', 'FP32')} ]
output [ ${tensors('boxes', 'FP32')}, ${tensors('words', 'FP32')} ]
ensemble_scheduling {
${step('detector', { x: 'imgae' }, { y: 'raw' })}
${step('detecter', { x: 'image' }, { y: 'other' })}
${step('detector', { z: 'image' }, { y: 'boxes' })}
${step('counter', { n: 'raw' }, { y: 'boxes', m: 'more' })}
}
`

await t.test('all problems of an ensemble are told at once, with what may be meant', async (t) => {
  const repository = t.testdir({
    detector: { 'config.pbtxt': model('x FP32', 'y FP32'), 1: { 'model.py': '' } },
    counter: { 'config.pbtxt': model('n INT32', 'm INT32'), 1: { 'model.py': '' } },
    torn: { 'config.pbtxt': 'input { nmae: "x" }', 1: { 'model.py': '' } },
    wrong: { 'config.pbtxt': WRONG, 1: {} },
  })
  const { problems } = await checkRepositories([repository])
  const lineOf = (part: string) => WRONG.slice(0, WRONG.indexOf(part)).split('\n').length
  const wanted: readonly (readonly [number, RegExp])[] = [
    [1, /got unknown field "nmae", want a field of ModelInput; did you mean "name"\? SyntaxError/],
    [
      lineOf('counter') + 3,
      /'boxes' is what .*step\[2\]\.output_map\[y\] makes.* MultipleProducers/,
    ],
    [
      lineOf('imgae'),
      /no step makes 'imgae', and it is no input; did you mean 'image'\? UnknownTensor/,
    ],
    [lineOf('"words"'), /no step makes 'words', .* UnknownTensor/],
    [lineOf('"idle"'), /no step reads 'idle'; want it read, or removed UnusedInput/],
    [lineOf('"other"'), /nothing reads 'other'; .* UnreachableStep/],
    [lineOf('"more"'), /nothing reads 'more'; .* UnreachableStep/],
    [lineOf('detecter'), /there is no model 'detecter'; did you mean 'detector'\? UnknownModel/],
    [lineOf('"z"'), /'detector' has no input 'z'; there is 'x' UnknownTensor/],
    [
      lineOf('"n"'),
      /'counter' takes INT32\[4\], 'raw' of .*output_map\[y\] is FP32\[4\] DatatypeMismatch/,
    ],
    [lineOf('counter') + 3, /'counter' has no output 'y'; .* UnknownTensor/],
  ]
  const told = problems.map(({ line, message, reason }) => `${line}: ${message} ${reason}`)
  for (const [line, text] of wanted) {
    t.ok(
      told.some((one) => one.startsWith(`${line}: `) && text.test(one)),
      `${line}: ${text.source}`,
    )
  }
  t.equal(problems.length, wanted.length, told.join('\n'))
})

const folder = (text: string) => ({ 'config.pbtxt': text, 1: { 'model.py': '' } })

await t.test('configurations are read as a server reads them', async (t) => {
  const config = model('x FP32', 'y FP32')
  const repository = t.testdir({
    latin: folder(''),
    lines: folder(`${config} default_model_filename: "a\nb"`),
    library: folder(`${config} runtime: "libtriton_x.so"`),
    python: folder(`${config} runtime: "libtriton_python.so"`),
  })
  await writeFile(join(repository, 'latin/config.pbtxt'), `# gr\xfc\xdfe\n${config}`, 'latin1')
  const { problems } = await checkRepositories([repository])
  t.match(problems, [
    {
      resource: 'Model/library',
      path: 'runtime',
      message: /^unable to find backend library 'libtriton_x.so' for model 'library', searched: /,
    },
    { resource: 'Model/lines', line: 1, reason: 'SyntaxError' },
  ])
})

await t.test('what only code says is a note, and no code runs', async (t) => {
  const repository = t.testdir({
    py: { 1: { 'model.py': 'raise SystemExit(1)' } },
    e: {
      'config.pbtxt': `platform: "ensemble" input ${tensors('a', 'FP32')} output ${tensors('b', 'FP32')}
ensemble_scheduling { ${step('py', { x: 'a' }, { y: 'b' })} }`,
      1: {},
    },
  })
  const argv = ['validate', `--model-repository=${repository}`]
  t.match(await runCommand(argv), {
    code: 0,
    out: /known only once its code runs; .*\(SchemaPending\)\n2 Models and Ensembles, no errors, 1 note\n$/,
  })
  const { out } = await runCommand([...argv, '--format=json'])
  t.match(JSON.parse(out), { valid: true, checked: 2, problems: [], notes: [{ line: 3 }] })
})

await t.test('what the server refuses is an error beside the note', async (t) => {
  const field = 'model_namespace: "other"'
  const repository = t.testdir({
    py: { 1: { 'model.py': '' } },
    e: {
      'config.pbtxt': `platform: "ensemble" input ${tensors('a', 'FP32')} output ${tensors('b', 'FP32')}
ensemble_scheduling { ${step('py', { x: 'a' }, { y: 'b' }).replace('{', `{ ${field}`)} }`,
      1: {},
    },
  })
  t.match(await runCommand(['validate', `--model-repository=${repository}`]), {
    code: 1,
    out: /:2:\d+: .*'other' in step 0 .*, want '': model namespacing is off .*\n2 Models and Ensembles, 1 error, 1 note\n$/s,
  })
})

await t.test('what Triton checks twice is told once', async (t) => {
  const ends = `platform: "ensemble" input ${tensors('a', 'FP32')} output ${tensors('b', 'FP32')}`
  const steps = `ensemble_scheduling { ${step('one', { x: 'a' }, { y: 'b' })} }`
  const repository = t.testdir({
    one: { 'config.pbtxt': model('x FP32', 'y FP32'), 1: { 'model.py': '' } },
    backed: { 'config.pbtxt': `${ends} backend: "python" ${steps}`, 1: {} },
    bare: { 'config.pbtxt': ends, 1: {} },
  })
  t.same(await problemsOf(repository), [
    'Ensemble/backed platform ConfigInvalid',
    'Ensemble/bare ensemble_scheduling ConfigInvalid',
  ])
})

await t.test('a repository that cannot be read ends with 2', async (t) => {
  t.match(await runCommand(['validate', `--model-repository=${FIXTURES}/none`]), {
    code: 2,
    err: /--model-repository: .*none' cannot be read/,
  })
})
