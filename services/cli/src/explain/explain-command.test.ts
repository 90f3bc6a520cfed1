import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensembleManifest, modelManifest } from '@tutti/api/testing'
import { explainPlan } from '@tutti/command-line/explain'
import { interpretEnsemble, randomEnsemble } from '@tutti/graph/testing'
import t from 'tap'
import { stringify } from 'yaml'
import { runCommand } from '../testing/run-command.ts'

const REPOSITORY = join(import.meta.dirname, '../../../../model_repository')

function explain(argv: readonly string[], input?: string) {
  return runCommand(['explain', ...argv], input === undefined ? {} : { input })
}

const typed = (name: string) => ({ name, datatype: 'FP32', shape: [4] })
const model = (name: string) =>
  modelManifest(name, {
    inputs: [typed('x')],
    outputs: [typed('y')],
    maxBatchSize: 8,
  })
const yaml = (...manifests: readonly unknown[]) =>
  manifests.map((one) => stringify(one, { version: '1.1' })).join('---\n')

/** `a` and `b` read the input, `c` reads what `a` makes, `b` waits for `a`. */
const FORKED = ensembleManifest('forked', {
  maxBatchSize: 8,
  inputs: [typed('in')],
  outputs: [
    { name: 'left', from: 'c.y' },
    { name: 'right', from: 'b.y' },
  ],
  steps: [
    { name: 'c', modelRef: { name: 'm' }, inputMap: { x: 'a.y' } },
    { name: 'a', modelRef: { name: 'n' }, inputMap: { x: 'in' } },
    { name: 'b', modelRef: { name: 'm' }, inputMap: { x: 'in' }, dependsOn: ['a'] },
  ],
})
const FILES = yaml(model('m'), model('n'), FORKED)

await t.test('items and built-ins have their tensors and options', async (t) => {
  const mapped = ensembleManifest('mapped', {
    inputs: [{ name: 'in', datatype: 'FP32', shape: [-1, 4] }],
    outputs: [
      { name: 'shares', from: 'each.output' },
      { name: 'counts', from: 'each.lengths' },
      { name: 'failed', from: 'each.failed' },
    ],
    steps: [
      { name: 'half', builtin: { name: 'clip', max: 0.5 }, inputMap: { input: 'in' } },
      {
        name: 'each',
        builtin: { name: 'softmax' },
        forEach: {
          items: { input: 'half.output' },
          maxItems: 9,
          gather: 'Concat',
          onItemError: { default: { output: { datatype: 'FP32', value: [0, 0, 0, 0] } } },
        },
      },
    ],
  })
  const { code, out } = await explain(['mapped', '-f', '-'], yaml(mapped))
  t.equal(code, 0)
  t.match(out, '1. half: runs builtin:clip, with max 0.5\n')
  t.match(out, '2. each: runs builtin:softmax, with axis -1, for each of input: at most 9 items')
  t.match(
    out,
    /output -> shares FP32 \[-1\]\n +lengths -> counts INT64 \[-1\]\n +failed -> failed BOOL \[-1\]/,
  )
})

await t.test('the steps of an Ensemble are shown in the order in which they begin', async (t) => {
  const { code, out } = await explain(['forked', '-f', '-'], FILES)
  t.equal(code, 0)
  t.equal(
    out,
    `forked: 3 steps
  input  in FP32 [-1,4]
  output left FP32 [-1,4]
  output right FP32 [-1,4]

1. a: runs n
     x <- in FP32 [-1,4]
     y -> a.y FP32 [-1,4]

2. c: runs m
     x <- a.y FP32 [-1,4]
     y -> left FP32 [-1,4]

2. b: runs m, after a
     x <- in FP32 [-1,4]
     y -> right FP32 [-1,4]

longest chain: a -> c
`,
  )
})

await t.test('the rules for the call of a step are said in words', async (t) => {
  const retry = { maxRetries: 2, retryOn: ['UNAVAILABLE', 'INTERNAL'] }
  const onError = { fallback: { modelRef: { name: 'n' }, timeout: '1s' } }
  const rules = { timeout: '300ms', retry, hedge: { after: '50ms' }, mayRunTwice: true, onError }
  const ruled = ensembleManifest('ruled', {
    maxBatchSize: 8,
    inputs: [typed('in')],
    outputs: [{ name: 'out', from: 'a.y' }],
    steps: [{ name: 'a', modelRef: { name: 'm' }, inputMap: { x: 'in' }, ...rules }],
  })
  const { code, out } = await explain(['ruled', '-f', '-'], yaml(model('m'), model('n'), ruled))
  t.equal(code, 0)
  t.match(
    out,
    '\n1. a: runs m, hedged after 50 ms, at most 2 retries on UNAVAILABLE, INTERNAL, may run twice, timeout 300 ms, falls back to n (timeout 1000 ms)\n',
  )
})

await t.test('for some outputs it says which steps do not execute', async (t) => {
  const { code, out } = await explain(['forked', '-f', '-', '--requested-output=right'], FILES)
  t.equal(code, 0)
  t.match(out, '  output left FP32 [-1,4], not asked for\n')
  t.match(out, /\n\n1\. b: runs m\n[^]*\nlongest chain: b\nnot executed for right: c, a\n$/)
  t.match(await explain(['forked', '-f', '-', '--requested-output=middle'], FILES), {
    code: 1,
    err: /unexpected inference output 'middle' for model 'forked'/,
  })
})

await t.test('JSON has the same', async (t) => {
  const argv = ['forked', '-f', '-', '--requested-output=right', '--format=json']
  const { code, out } = await explain(argv, FILES)
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    ensemble: 'forked',
    requestedOutputs: ['right'],
    decoupled: false,
    longestChain: ['b'],
    steps: [
      {
        name: 'c',
        stage: 2,
        executes: false,
        reads: [{ port: 'x', name: 'a.y', shape: [-1, 4] }],
      },
      { name: 'a', stage: 1, executes: false },
      { name: 'b', stage: 1, executes: true, makes: [{ port: 'y', name: 'right' }] },
    ],
  })
})

// Executes docs/manifests.md: ens_face_restoration_v2.1: 3 steps
await t.test(
  'an ensemble of a repository is explained, and an Ensemble over its models',
  async (t) => {
    const paths = `--model-repository=${REPOSITORY}`
    const { code, out } = await explain(['ens_face_restoration_v2.1', paths])
    t.equal(code, 0)
    t.match(out, '     output__0 -> preprocessed_image FP32 [1,3,-1,-1]\n')
    const page = await readFile(join(REPOSITORY, '../docs/manifests.md'), 'utf8')
    t.ok(page.includes(`\n${out}`), 'as docs/manifests.md shows it')
    t.match(out, 'chain: pre_gfpgan -> infer_face_restoration_v2.1 -> post_gfpgan\n')
    t.match(await explain(['text_detection', paths]), {
      code: 1,
      err: /'text_detection' is no ensemble; there is .*ens_face_restoration_v2\.1/,
    })
    const mine = ensembleManifest('mine', {
      inputs: [{ name: 'raw', datatype: 'UINT8', shape: [-1, -1, 3] }],
      outputs: [{ name: 'net_in', from: 'pre.output__0' }],
      steps: [
        {
          name: 'pre',
          modelRef: { name: 'pre_gfpgan' },
          inputMap: { input__0: 'raw' },
          outputMap: { output__0: 'net_in' },
        },
      ],
    })
    t.match(await explain(['mine', '-f', '-', paths], yaml(mine)), {
      code: 0,
      out: /1\. pre: runs pre_gfpgan\n {5}input__0 <- raw UINT8 \[-1,-1,3\]\n/,
    })
  },
)

await t.test('what is refused says why, all of it', async (t) => {
  const [left, ...others] = FORKED.spec.steps
  const wrong = ensembleManifest('forked', {
    ...FORKED.spec,
    steps: [
      { ...left, inputMap: { z: 'a.y' } },
      ...others,
      { name: 'e', modelRef: { name: 'o' }, inputMap: { x: 'in' } },
    ],
  })
  const { code, err } = await explain(['forked', '-f', '-'], yaml(model('m'), model('n'), wrong))
  t.equal(code, 1)
  t.match(err, /'forked' is not accepted: .*steps\[0\]\(c\)\.inputMap\[z\]: 'm' has no input 'z'/)
  t.match(err, /UnknownTensor\); also .*'o' yet.*\(SchemaPending\)/)
  t.match(err, /\(SchemaPending\); --model-repository DIR gives the signatures/)
  t.match(await explain(['forked', '-f', '-'], 'a: ['), { code: 1, err: /-:1:5: .*tutti validate/ })
  const twice = yaml(FORKED, { ...FORKED, metadata: { name: 'forked', namespace: 'other' } })
  t.match(await explain(['forked', '-f', '-'], twice), {
    code: 2,
    err: /'forked' is in default \(-\), other \(-\); want files with one of them/,
  })
})

await t.test('without signatures it says where they can come from', async (t) => {
  const files = yaml(modelManifest('m', {}), model('n'), FORKED)
  const hint =
    /'m' is not known yet.*\(SchemaPending\); --model-repository DIR gives the signatures/
  t.match(await explain(['forked', '-f', '-'], files), { code: 1, err: hint })
  const given = await explain(['forked', '-f', '-', `--model-repository=${REPOSITORY}`], files)
  t.match(given, { code: 1, err: /'m' is not known yet/ })
  t.notMatch(given.err, /--model-repository/)
})

await t.test('what is not understood ends with 2', async (t) => {
  for (const [argv, err] of [
    [[], /got 0 ensemble names, want one/],
    [['a', 'b'], /got 2 ensemble names, want one/],
    [['a'], /got neither -f nor --model-repository, want one/],
    [['a', '--model-repository=/missing'], /--model-repository: /],
  ] as const) {
    t.match(await explain(argv), { code: 2, err }, argv.join(' '))
  }
  t.match(await explain(['x', '-f', '-'], FILES), {
    code: 1,
    err: /no ensemble 'x'; there is forked/,
  })
})

await t.test('what it says executes, and in which order, is what a run does', (t) => {
  for (let seed = 0; seed < 300; seed += 1) {
    const ensemble = randomEnsemble(seed, 0, { hasDependencies: seed % 2 === 1 })
    const { plan } = ensemble
    const requested = plan.outputs.filter((_, i) => (seed >> i) % 2 === 0).map(({ name }) => name)
    const inputs = Object.fromEntries(plan.inputs.map(({ name }) => [name, name]))
    const { invocations } = interpretEnsemble(ensemble, inputs, requested)
    const explanation = explainPlan(plan, ensemble.modelOf, requested)
    const executed = explanation.steps.filter((step) => step.executes).map(({ name }) => name)
    const ran = invocations.map((text) => text.slice(0, text.indexOf('(')))
    t.strictSame(executed.toSorted(), ran.toSorted(), `seed ${seed}`)
    t.ok(
      explanation.longestChain.every((name) => executed.includes(name)),
      `seed ${seed}`,
    )
    const waits = explanation.steps.filter((step) => step.executes)
    t.ok(
      waits.every(({ dependsOn }) => dependsOn.every((name) => executed.includes(name))),
      `seed ${seed}: nothing waits for what does not execute`,
    )
    const stageOf = new Map(explanation.steps.map(({ name, stage }) => [name, stage]))
    for (const { name, stage, reads, dependsOn } of explanation.steps) {
      const makers = explanation.steps.filter(({ makes }) =>
        makes.some((made) => reads.some((read) => read.name === made.name)),
      )
      const before = [...makers.map((maker) => maker.name), ...dependsOn]
      const latest = Math.max(0, ...before.map((other) => stageOf.get(other) ?? 0))
      t.equal(stage, latest + 1, `seed ${seed}, ${name}`)
    }
  }
  t.end()
})

const ports = (input: string, output: string) => `
    input [{ name: "${input}", data_type: TYPE_FP32, dims: [4] }]
    output [{ name: "${output}", data_type: TYPE_FP32, dims: [4] }]`

await t.test('a chain may be longer than a stack, with its last step first', async (t) => {
  const last = 3999
  const steps = Array.from({ length: last + 1 }, (_, i) => {
    const [from, to] = [i === last ? 'in' : `t${i + 1}`, i === 0 ? 'out' : `t${i}`]
    return `{ model_name: "m", model_version: -1,
      input_map { key: "x", value: "${from}" }, output_map { key: "y", value: "${to}" } }`
  })
  const folder = t.testdir({
    m: { 1: {}, 'config.pbtxt': `name: "m" backend: "python" ${ports('x', 'y')}` },
    long: {
      1: {},
      'config.pbtxt': `name: "long" platform: "ensemble" ${ports('in', 'out')}
        ensemble_scheduling { step [${steps.join(',')}] }`,
    },
  })
  const { code, out, err } = await explain(['long', `--model-repository=${folder}`])
  t.equal(code, 0, err)
  t.match(out, `\n${last + 1}. m#0: runs m\n`)
  t.match(out, new RegExp(`longest chain: m#${last} -> .* -> m#1 -> m#0\n`))
  const program = join(import.meta.dirname, '../main.ts')
  const argv = [program, 'explain', 'long', `--model-repository=${folder}`]
  const piped = spawn(process.execPath, argv)
  let said = ''
  piped.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  // It prints more than a pipe holds.
  piped.stdout.once('data', () => piped.stdout.destroy())
  const [status] = await once(piped, 'close')
  t.same([status, said], [141, ''], 'a reader that has enough, as head, ends it quietly')
})
